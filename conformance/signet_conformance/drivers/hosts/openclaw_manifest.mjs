// The manifest that OpenClaw requires of a plugin: finds it, and checks it as OpenClaw does.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

export const MANIFEST = "openclaw.plugin.json";

/** The text of openclaw.plugin.json beside the module, or in the nearest folder above it; undefined if there is none. */
export function manifestOf(module) {
  const folder = foldersOf(module).find((each) => existsSync(join(each, MANIFEST)));
  return folder === undefined ? undefined : readFileSync(join(folder, MANIFEST), "utf8");
}

/** Whether a module without a manifest above it is in a package for OpenClaw that has none in a subfolder either. */
export function lacksManifest(module) {
  const root = foldersOf(module).find((folder) => {
    const about = packageIn(folder);
    return [about, about?.peerDependencies].some((each) => each?.openclaw !== undefined);
  });
  return root !== undefined && !readdirSync(root).some((name) => existsSync(join(root, name, MANIFEST)));
}

/** The contents of a folder's package.json; undefined if it cannot be read. */
function packageIn(folder) {
  try {
    return JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  } catch {
    return undefined;
  }
}

/** The folder of a file and all above it. */
function foldersOf(file) {
  const folder = dirname(file);
  return folder === file ? [] : [folder, ...foldersOf(folder)];
}

/** Parse the manifest of a plugin whose module exports `id`: `{data}`, with `{words}` of refusal if the host refuses it. */
export function readManifest(text, id) {
  let data;
  try {
    data = JSON.parse(text);
  } catch (error) {
    return { words: `failed to parse plugin manifest: ${error.message}` };
  }
  if (typeof data !== "object" || data === null || Array.isArray(data)) return { words: "plugin manifest must be an object" };
  if (typeof data.id !== "string" || data.id.trim() === "") return { words: "plugin manifest requires id" };
  if (id !== undefined && id !== data.id) return { words: `plugin id mismatch (config uses "${data.id}", export uses "${id}")`, data };
  return { data };
}
