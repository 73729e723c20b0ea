// Writes the events that a harness passes to a plugin to a file in the home folder, one line each: the names of their
// members, and the values of those few that the kit asks for because they show which kind of event it is.

import { appendFileSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

const folder = join(homedir(), ".signet-conformance-observed");

/**
 * The events to observe, the tools to offer to a played host, the events of which only the first of a row is written,
 * and the members whose values are written.
 */
export const { events, tools, rows, kinds } = JSON.parse(readFileSync(join(folder, "asked.json"), "utf8"));

let last;

const membersOf = (object) => Object.keys(object ?? {}).filter((name) => object[name] !== undefined);

/** Write one event: the members of its argument `given`, and of the output that the plugin may change. */
export function write(event, given, output, cwd) {
  const again = event === last && rows.includes(event);
  last = event;
  if (again) return;
  const members = [...membersOf(given), ...membersOf(output).map((name) => `output.${name}`)].sort();
  const args = kinds.flatMap((path) => {
    const value = path.split(".").reduce((bag, name) => bag?.[name], given);
    return value === undefined || typeof value === "object" ? [] : [`${path}=${value}`];
  });
  appendFileSync(join(folder, "events.jsonl"), `${JSON.stringify({ event, members, args, cwd: cwd ?? null })}\n`);
}
