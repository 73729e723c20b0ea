// Finds the kit, which is a Python program, or makes an environment for it.

import { spawn, spawnSync } from "node:child_process";
import { accessSync, constants, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createHash } from "node:crypto";
import { homedir } from "node:os";
import { delimiter, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

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
 * `tell` hears what is made, line by line; a line with `passing` takes the place of the one before it. What is installed
 * is what SIGNET_CONFORMANCE_SOURCE names (a wheel, a folder, or a requirement as pip takes it), else the clone that this
 * package lies in, else what another shell named, else the release of this package's version. Throws KitError.
 */
export async function findKit(environment = process.env, folder = process.cwd(), tell = tellOnStderr) {
  const named = environment.SIGNET_CONFORMANCE;
  if (named) {
    if (runs(named)) return named;
    throw new KitError(`SIGNET_CONFORMANCE: ${named} is not a program\ntry: name the signet-conformance of a Python environment, or unset it`);
  }
  return inVirtualEnvironment(folder) ?? onPath(environment) ?? (await inOwnEnvironment(environment, tell));
}

/** How the reader of a message calls the kit: it stands on no search path of theirs. */
export function runnerOf(environment) {
  const manager = /^(pnpm|yarn|bun)\b/.exec(environment.npm_config_user_agent ?? "")?.[1];
  return { pnpm: "pnpm exec", yarn: "yarn", bun: "bunx" }[manager] ?? "npx";
}

function tellOnStderr(line, { passing = false } = {}) {
  // Drawn over in a terminal, so that waiting leaves no lines behind.
  const live = process.stderr.isTTY;
  process.stderr.write(live && passing ? `\r\x1b[K${line}` : `${live ? "\r\x1b[K" : ""}${line}\n`);
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

/** The environment that was made for what is asked for, or a new one. */
async function inOwnEnvironment(environment, tell) {
  const source = environment.SIGNET_CONFORMANCE_SOURCE || clone() || madeBefore(environment) || `signet-conformance==${version}`;
  const place = placeOf(source, environment);
  const program = join(place, SCRIPTS, PROGRAM);
  const whole = join(place, WHOLE);
  if (existsSync(whole) && runs(program)) return program;
  const python = has("uv", environment) ? undefined : oldEnoughPython(environment);
  rmSync(place, { recursive: true, force: true });
  mkdirSync(dirname(place), { recursive: true });
  const progress = new Progress(tell);
  progress.say(`signet-conformance: the first run makes a Python environment for the kit, in ${place}`);
  progress.say(`  from ${source}; once, in about a minute`);
  // A clone is a kit that is worked on: what changes in it counts at once.
  const what = source === clone() ? ["--editable", source] : [source];
  if (python === undefined) {
    await progress.step("1 of 2: environment", "uv", ["venv", "--python", `>=${OLDEST.join(".")}`, place], environment);
    await progress.step("2 of 2: kit", "uv", ["pip", "install", "--python", place, ...what], environment, source);
  } else {
    await progress.step("1 of 2: environment", python, ["-m", "venv", place], environment);
    const pip = ["-m", "pip", "install", "--disable-pip-version-check", "--progress-bar", "off", ...what];
    await progress.step("2 of 2: kit", join(place, SCRIPTS, "python"), pip, environment, source);
  }
  writeFileSync(whole, `${source}\n${version}\n`);
  return program;
}

/** Written last into an environment, with what was installed and by which version: one that was left half made is made anew. */
const WHOLE = "whole";

function placeOf(source, environment) {
  return join(cacheFolder(environment), createHash("sha256").update(source).digest("hex").slice(0, 16));
}

/** The clone of the kit in which this package lies, also where npm has linked it from there. */
function clone() {
  const folder = fileURLToPath(new URL("../../..", import.meta.url)).replace(/[/\\]$/, "");
  return existsSync(join(folder, "pyproject.toml")) && existsSync(join(folder, "conformance", "signet_conformance")) ? folder : undefined;
}

/** What another shell named by SIGNET_CONFORMANCE_SOURCE for this version, the last time that an environment was made. */
function madeBefore(environment) {
  const made = filesIn(cacheFolder(environment)).map((name) => join(cacheFolder(environment), name, WHOLE)).filter((it) => existsSync(it));
  made.sort((one, other) => statSync(other).mtimeMs - statSync(one).mtimeMs);
  return made.map((it) => readFileSync(it, "utf8").split("\n")).find(([source, by]) => by === version && runs(join(placeOf(source, environment), SCRIPTS, PROGRAM)))?.[0];
}

function filesIn(folder) {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

const A_SECOND = 1000, A_WHILE = 10_000, LAST_WORDS = 12;

/** What is being made, and for how long already: a line that is drawn over in a terminal, one now and then in a log. */
class Progress {
  #tell;

  constructor(tell) {
    this.#tell = tell;
  }

  say(line) {
    this.#tell(line);
  }

  /** Run a program to its end; what it says last is shown while it runs, and in full when it fails. Throws KitError. */
  async step(name, program, words, environment, source) {
    const began = Date.now(), said = [];
    const seconds = () => Math.round((Date.now() - began) / A_SECOND);
    const show = () => this.#tell(`  ${name}, ${seconds()} s${said.length ? `: ${said.at(-1).trim().slice(0, 60)}` : ""}`, { passing: true });
    const live = process.stderr.isTTY;
    const clock = setInterval(show, live ? A_SECOND : A_WHILE);
    const child = spawn(program, words, { env: environment, stdio: ["ignore", "pipe", "pipe"] });
    const hear = (chunk) => said.push(...String(chunk).split(/[\r\n]+/).filter((line) => line.trim()));
    child.stdout.on("data", hear);
    child.stderr.on("data", hear);
    const why = await new Promise((resolve) => {
      child.on("error", (error) => resolve(error.message));
      child.on("close", (status, signal) => resolve(status === 0 ? undefined : `status ${status ?? signal}`));
    });
    clearInterval(clock);
    if (why === undefined) return this.say(`  ${name}, done in ${seconds()} s`);
    const remedy = source === undefined ? "see what it said above" : "where the kit is on no index you can reach, name a wheel or a folder of it by SIGNET_CONFORMANCE_SOURCE";
    for (const line of said.slice(-LAST_WORDS)) this.say(`  ${line}`);
    throw new KitError(`${program} ${words[0]} ended with ${why}\ntry: ${remedy}`);
  }
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
