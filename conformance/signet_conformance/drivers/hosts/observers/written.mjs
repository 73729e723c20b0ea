// Writes down what a harness tells a plugin: a line for each event, in a folder of the home. Values are left out, but
// for the few that the kit asks for by name: they say which kind of event it is.

import { appendFileSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

const folder = join(homedir(), ".signet-conformance-observed");

/**
 * Which events a plugin takes part in, the tools that it offers to a played host, the events that come in rows, and the
 * members whose values are kept.
 */
export const { events, tools, rows, kinds } = JSON.parse(readFileSync(join(folder, "asked.json"), "utf8"));

let last;

const named = (bag) => Object.keys(bag ?? {}).filter((name) => bag[name] !== undefined);

/** Write down one event: the members of what it was given, and of the output that the plugin may change. */
export function write(event, given, output, cwd) {
  const again = event === last && rows.includes(event);
  last = event;
  if (again) return;
  const members = [...named(given), ...named(output).map((name) => `output.${name}`)].sort();
  const args = kinds.flatMap((path) => {
    const value = path.split(".").reduce((bag, name) => bag?.[name], given);
    return value === undefined || typeof value === "object" ? [] : [`${path}=${value}`];
  });
  appendFileSync(join(folder, "events.jsonl"), `${JSON.stringify({ event, members, args, cwd: cwd ?? null })}\n`);
}
