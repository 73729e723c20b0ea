// A plugin host for node and bun: `node_host.mjs FACE.json MODULE OPTIONS.json`.
//
// FACE.json says what a release of a harness fires, in which order and with which members; the module of the
// same folder that it names knows how that harness treats a plugin. MODULE is the connector, loaded as it is.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

import { serve, StepError } from "./protocol.mjs";

const [facePath, modulePath, optionsText = "{}"] = process.argv.slice(2);

await serve(async () => {
  const face = JSON.parse(readFileSync(facePath, "utf8"));
  const { open } = await import(new URL(face.code, import.meta.url));
  let connector;
  try {
    connector = await import(pathToFileURL(modulePath).href);
  } catch (error) {
    throw new StepError(`the connector ${modulePath} cannot be loaded: ${error?.stack ?? error}`);
  }
  return open(face, connector, { ...JSON.parse(optionsText), module: modulePath });
});
