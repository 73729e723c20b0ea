// A plugin host for node and bun: `node_host.mjs FACE.json MODULE OPTIONS.json`.
//
// FACE.json describes a release of a harness: its events, their order and members. Its `code` names the module of this
// folder that plays the harness. MODULE is the connector, loaded unchanged.

import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";
import { setFlagsFromString } from "node:v8";

// Imported first, so that it tracks every timer that the connector starts.
import "./clock.mjs";
import { NotLoaded, serve } from "./protocol.mjs";

const PLACE = /(?:^|[\s(])(?:file:\/\/)?(\/[^\s()]+?:\d+(?::\d+)?)\)?$/m;

const [facePath, modulePath, optionsText = "{}"] = process.argv.slice(2);

/** The place of the error in a module that cannot be loaded, as `file:line:column`; undefined if the runtime does not say. */
function placeOf(error, url) {
  // bun gives the place of a syntax error as a member, and has a list of errors if there are several.
  const { position } = error?.errors?.[0] ?? error ?? {};
  if (position) return `${position.file}:${position.line}:${position.column}`;
  // A stack that begins in this host only shows where the module was loaded.
  const own = fileURLToPath(import.meta.url);
  const found = PLACE.exec(error?.stack ?? "")?.[1];
  if (found && !found.startsWith(own)) return decodeURI(found);
  if (!(error instanceof SyntaxError) || process.versions.bun) return undefined;
  // node prints the place of a syntax error only if it is uncaught. No code of the module runs, since it does not parse.
  const load = ["--input-type=module", "--eval", `await import(${JSON.stringify(url)})`];
  const { stderr } = spawnSync(process.execPath, load, { encoding: "utf8", timeout: 10_000, env: {} });
  const printed = PLACE.exec(stderr ?? "")?.[1];
  return printed && decodeURI(printed);
}

function cannotBeLoaded(error, url) {
  const first = error?.errors?.[0] ?? error;
  // bun's errors of the classes BuildMessage and ResolveMessage have no useful name.
  const kind = first instanceof Error && !first.name.endsWith("Message") ? `${first.name}: ` : "";
  const text = `${kind}${first?.message ?? first}`;
  const place = placeOf(error, url);
  return new NotLoaded(`the connector ${modulePath} cannot be loaded: ${text}${place ? `, at ${place}` : ""}`);
}

// node parses HTTP in WebAssembly. In a process as short as a host, optimising that code would take a quarter of the CPU
// time. The flag is set here because one on the command line makes node drop the code cache of its own modules.
if (!process.versions.bun) setFlagsFromString("--liftoff-only");

const face = JSON.parse(readFileSync(facePath, "utf8"));
await serve(async () => {
  const { open } = await import(new URL(face.code, import.meta.url));
  const { href } = pathToFileURL(modulePath);
  let connector;
  try {
    connector = await import(href);
  } catch (error) {
    throw cannotBeLoaded(error, href);
  }
  return open(face, connector, { ...JSON.parse(optionsText), module: modulePath });
}, face);
