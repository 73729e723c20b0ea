// Finds the kit, which is a Python program, or makes an environment for it.

import { spawnSync } from "node:child_process";
import { accessSync, constants, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createHash } from "node:crypto";
import { homedir } from "node:os";
import { delimiter, dirname, join, resolve } from "node:path";

const WINDOWS = process.platform === "win32";
const PROGRAM = WINDOWS ? "signet-conformance.exe" : "signet-conformance";
const SCRIPTS = WINDOWS ? "Scripts" : "bin";
const OLDEST = [3, 11];

export const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));

/** What a user can mend: said without a stack. */
export class KitError extends Error {}

/**
 * The program to run, by the first of these that there is: SIGNET_CONFORMANCE (its path), a virtual environment in this
 * folder or one above it, the search path, an environment of our own that was made before or is made now.
 *
 * `tell` hears what is made. SIGNET_CONFORMANCE_SOURCE names what to install in place of the release of this package's
 * version: a wheel, a folder, or a requirement as pip takes it. Throws KitError.
 */
export function findKit(environment = process.env, folder = process.cwd(), tell = () => {}) {
  const named = environment.SIGNET_CONFORMANCE;
  if (named) {
    if (runs(named)) return named;
    throw new KitError(`SIGNET_CONFORMANCE: ${named} is not a program\ntry: name the signet-conformance of a Python environment, or unset it`);
  }
  return inVirtualEnvironment(folder) ?? onPath(environment) ?? inOwnEnvironment(environment, tell);
}

function runs(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function inVirtualEnvironment(folder) {
  for (let at = resolve(folder); ; at = dirname(at)) {
    const path = join(at, ".venv", SCRIPTS, PROGRAM);
    if (runs(path)) return path;
    if (existsSync(join(at, ".git")) || dirname(at) === at) return undefined;
  }
}

/** This package's own command stands on the path of npm's scripts under the same name: it is passed over. */
function onPath(environment) {
  const folders = (environment.PATH ?? "").split(delimiter).filter((it) => it && !it.includes("node_modules"));
  return folders.map((it) => join(it, PROGRAM)).find((it) => runs(it) && !isNodeScript(it));
}

function isNodeScript(path) {
  return /^#!.*\bnode\b/.test(readFileSync(path).subarray(0, 80).toString("latin1"));
}

function inOwnEnvironment(environment, tell) {
  const source = environment.SIGNET_CONFORMANCE_SOURCE || `signet-conformance==${version}`;
  const place = join(cacheFolder(environment), createHash("sha256").update(source).digest("hex").slice(0, 16));
  const program = join(place, SCRIPTS, PROGRAM);
  // Written last: an environment that was left half made is made anew.
  const whole = join(place, "whole");
  if (existsSync(whole) && runs(program)) return program;
  const python = has("uv", environment) ? undefined : oldEnoughPython(environment);
  rmSync(place, { recursive: true, force: true });
  mkdirSync(dirname(place), { recursive: true });
  tell(`signet-conformance: installing ${source} into ${place}`);
  if (python === undefined) {
    demand("uv", ["venv", "--quiet", "--python", `>=${OLDEST.join(".")}`, place], environment);
    demand("uv", ["pip", "install", "--quiet", "--python", place, source], environment, source);
  } else {
    demand(python, ["-m", "venv", place], environment);
    demand(join(place, SCRIPTS, "python"), ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", source], environment, source);
  }
  writeFileSync(whole, `${source}\n`);
  return program;
}

function cacheFolder(environment) {
  const cache = environment.XDG_CACHE_HOME || (WINDOWS && environment.LOCALAPPDATA) || join(environment.HOME || homedir(), ".cache");
  return join(cache, "signet-conformance", "python");
}

function has(program, environment) {
  return spawnSync(program, ["--version"], { env: environment, stdio: "ignore" }).status === 0;
}

function oldEnoughPython(environment) {
  const asked = `import sys; sys.exit(sys.version_info < (${OLDEST.join(", ")}))`;
  const found = ["python3", "python"].find((it) => spawnSync(it, ["-c", asked], { env: environment, stdio: "ignore" }).status === 0);
  if (found) return found;
  throw new KitError(`the kit needs Python ${OLDEST.join(".")} or later, or uv, which brings one; neither is here\ntry: install uv, or name the kit of another environment by SIGNET_CONFORMANCE`);
}

function demand(program, words, environment, source) {
  const done = spawnSync(program, words, { env: environment, stdio: ["ignore", "inherit", "inherit"] });
  if (done.status === 0) return;
  const remedy = source === undefined ? "see what it said above" : "where the kit is on no index you can reach, name a wheel or a folder of it by SIGNET_CONFORMANCE_SOURCE";
  throw new KitError(`${program} ${words[0]} ended with ${done.error?.message ?? `status ${done.status}`}\ntry: ${remedy}`);
}
