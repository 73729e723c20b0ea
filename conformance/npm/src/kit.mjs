// Finds the kit, which is a Python program, or installs it into an environment of its own.

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

/** An error that the user can fix; printed without a stack. */
export class KitError extends Error {}

/**
 * Find the program to run, the first of: the path in SIGNET_CONFORMANCE, a virtual environment in this folder or one
 * above it, PATH, and an environment of our own, which is made if necessary. Throws KitError.
 *
 * Installed into that environment is what SIGNET_CONFORMANCE_SOURCE names (a wheel, a folder, or a requirement for pip),
 * or else the clone with this package, or else what another shell named there, or else the release of this package's
 * version. `tell` gets the lines of progress; a line with `passing` replaces the one before it.
 */
export async function findKit(environment = process.env, folder = process.cwd(), tell = tellOnStderr) {
  const named = environment.SIGNET_CONFORMANCE;
  if (named) {
    if (runs(named)) return named;
    throw new KitError(`SIGNET_CONFORMANCE: ${named} is not a program\ntry: name the signet-conformance of a Python environment, or unset it`);
  }
  return inVirtualEnvironment(folder) ?? onPath(environment) ?? (await inOwnEnvironment(environment, tell));
}

/** The command prefix with which users call the kit, which is not on their PATH. */
export function runnerOf(environment) {
  const manager = /^(pnpm|yarn|bun)\b/.exec(environment.npm_config_user_agent ?? "")?.[1];
  return { pnpm: "pnpm exec", yarn: "yarn", bun: "bunx" }[manager] ?? "npx";
}

function tellOnStderr(line, { passing = false } = {}) {
  // A terminal shows passing lines in one place.
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

/** The kit on PATH, without this package's command of the same name, which npm adds to the PATH of its scripts. */
function onPath(environment) {
  const folders = (environment.PATH ?? "").split(delimiter).filter((it) => it && !it.includes("node_modules"));
  return folders.map((it) => join(it, PROGRAM)).find((it) => runs(it) && !isNodeScript(it));
}

function isNodeScript(path) {
  return /^#!.*\bnode\b/.test(readFileSync(path).subarray(0, 80).toString("latin1"));
}

/** The kit in the environment for the wanted source, which is made if it does not exist. */
async function inOwnEnvironment(environment, tell) {
  const source = environment.SIGNET_CONFORMANCE_SOURCE || clone() || madeBefore(environment) || `signet-conformance==${version}`;
  const place = placeOf(source, environment);
  const program = join(place, SCRIPTS, PROGRAM);
  const whole = join(place, WHOLE);
  if (existsSync(whole) && runs(program)) return program;
  const python = has("uv", environment) ? undefined : newEnoughPython(environment);
  rmSync(place, { recursive: true, force: true });
  mkdirSync(dirname(place), { recursive: true });
  const progress = new Progress(tell);
  progress.say(`signet-conformance: the first run makes a Python environment for the kit, in ${place}`);
  progress.say(`  from ${source}; once, in about a minute`);
  // Editable, so that changes in the clone take effect at once.
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

/** The file that is written last into an environment, with its source and our version; without it the environment is made again. */
const WHOLE = "whole";

function placeOf(source, environment) {
  return join(cacheFolder(environment), createHash("sha256").update(source).digest("hex").slice(0, 16));
}

/** The folder of the clone that contains this package, also if npm has linked the package; undefined without a clone. */
function clone() {
  const folder = fileURLToPath(new URL("../../..", import.meta.url)).replace(/[/\\]$/, "");
  return existsSync(join(folder, "pyproject.toml")) && existsSync(join(folder, "conformance", "signet_conformance")) ? folder : undefined;
}

/** The source of the latest environment of this version, which another shell named by SIGNET_CONFORMANCE_SOURCE. */
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

const A_SECOND = 1000, A_WHILE = 10_000, LAST_LINES = 12;

/** Shows the progress of an installation: in a terminal one line that changes, in a log a line every A_WHILE. */
class Progress {
  #tell;

  constructor(tell) {
    this.#tell = tell;
  }

  say(line) {
    this.#tell(line);
  }

  /** Run a program; show its last line while it runs, and its last lines if it fails. Throws KitError. */
  async step(name, program, words, environment, source) {
    const began = Date.now(), lines = [];
    const seconds = () => Math.round((Date.now() - began) / A_SECOND);
    const show = () => this.#tell(`  ${name}, ${seconds()} s${lines.length ? `: ${lines.at(-1).trim().slice(0, 60)}` : ""}`, { passing: true });
    const live = process.stderr.isTTY;
    const clock = setInterval(show, live ? A_SECOND : A_WHILE);
    const child = spawn(program, words, { env: environment, stdio: ["ignore", "pipe", "pipe"] });
    const addLines = (chunk) => lines.push(...String(chunk).split(/[\r\n]+/).filter((line) => line.trim()));
    child.stdout.on("data", addLines);
    child.stderr.on("data", addLines);
    const why = await new Promise((resolve) => {
      child.on("error", (error) => resolve(error.message));
      child.on("close", (status, signal) => resolve(status === 0 ? undefined : `status ${status ?? signal}`));
    });
    clearInterval(clock);
    if (why === undefined) return this.say(`  ${name}, done in ${seconds()} s`);
    const remedy = source === undefined ? "read its output above" : "if no index that you can reach has the kit, name its wheel or folder by SIGNET_CONFORMANCE_SOURCE";
    for (const line of lines.slice(-LAST_LINES)) this.say(`  ${line}`);
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

/** The first Python that is new enough for the kit. Throws KitError. */
function newEnoughPython(environment) {
  const check = `import sys; sys.exit(sys.version_info < (${OLDEST.join(", ")}))`;
  const found = ["python3", "python"].find((it) => spawnSync(it, ["-c", check], { env: environment, stdio: "ignore" }).status === 0);
  if (found) return found;
  throw new KitError(`the kit needs Python ${OLDEST.join(".")} or later, or uv, which brings one; neither is here\ntry: install uv, or name the kit of another environment by SIGNET_CONFORMANCE`);
}
