// A plugin host for node and bun: `node_host.mjs FACE.json MODULE OPTIONS.json`.
//
// FACE.json says what a release of a harness fires, in which order and with which members; the module of the
// same folder that it names knows how that harness treats a plugin. MODULE is the connector, loaded as it is.

import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";
import { setFlagsFromString } from "node:v8";

// First of all: it counts every timer that a connector starts.
import "./clock.mjs";
import { NotLoaded, serve } from "./protocol.mjs";

const PLACE = /(?:^|[\s(])(?:file:\/\/)?(\/[^\s()]+?:\d+(?::\d+)?)\)?$/m;

const [facePath, modulePath, optionsText = "{}"] = process.argv.slice(2);

/** Where a module is broken, as `file:line`; nothing where the runtime does not say. */
function placeOf(error, url) {
  // bun gives the place of a syntax error apart, or one error for each of several.
  const { position } = error?.errors?.[0] ?? error ?? {};
  if (position) return `${position.file}:${position.line}:${position.column}`;
  // A stack that begins in this host says where it was loaded, not what is wrong with it.
  const own = fileURLToPath(import.meta.url);
  const found = PLACE.exec(error?.stack ?? "")?.[1];
  if (found && !found.startsWith(own)) return decodeURI(found);
  if (!(error instanceof SyntaxError) || process.versions.bun) return undefined;
  // node tells the place of a syntax error only when nobody catches it. Nothing runs: the module does not parse.
  const load = ["--input-type=module", "--eval", `await import(${JSON.stringify(url)})`];
  const { stderr } = spawnSync(process.execPath, load, { encoding: "utf8", timeout: 10_000, env: {} });
  const told = PLACE.exec(stderr ?? "")?.[1];
  return told && decodeURI(told);
}

function cannotBeLoaded(error, url) {
  const said = error?.errors?.[0] ?? error;
  // bun's own kinds of message name themselves and not the error.
  const kind = said instanceof Error && !said.name.endsWith("Message") ? `${said.name}: ` : "";
  const text = `${kind}${said?.message ?? said}`;
  const place = placeOf(error, url);
  return new NotLoaded(`the connector ${modulePath} cannot be loaded: ${text}${place ? `, at ${place}` : ""}`);
}

// node parses HTTP in WebAssembly. A host lives for a moment: making that faster meanwhile costs a quarter of its CPU time.
// Set here, not on the command line, where a flag makes node drop the code cache of its own modules.
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
