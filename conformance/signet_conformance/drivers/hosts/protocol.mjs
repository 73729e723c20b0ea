// The driver protocol signet-driver/1 for a host in JavaScript: reads requests from standard input, one JSON
// object a line, performs them one after the other, answers on standard output. docs/driver-protocol.md is
// the specification.

import { writeSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { format } from "node:util";

import { keepFromVendor } from "./model_wire.mjs";
import { watchSent } from "./sent.mjs";
import { watchStrays } from "./strays.mjs";

export const PROTOCOL = "signet-driver/1";
const SETTLE_MS = 400;
const FLUSH_MS = 25_000;
const QUIET_MS = 10;

/** A request that this host cannot perform; its message is for the reader of the kit's error. */
export class StepError extends Error {
  name = "StepError";
}

/** A connector that its harness cannot load: what was wrong, in the harness's or the runtime's words. */
export class NotLoaded extends Error {
  /** What became of loading it: `load()`, and everything it throws counts as the connector's. */
  static async guard(what, load) {
    try {
      return await load();
    } catch (error) {
      if (error instanceof NotLoaded) throw error;
      throw new NotLoaded(`${what}: ${String(error?.stack ?? error).split("\n").slice(0, 2).join(" ").replace(/\s+/g, " ")}`);
    }
  }
}

/** A step that the connector or its harness has no counterpart for: answered with `skipped`, never an error. */
export class Skipped extends Error {}

let tells = [];
const awaitingGo = [];

/** Tell the kit of an event, if it has asked for such, and wait until it lets the host go on. */
function tell(event, session, more = {}) {
  if (!tells.includes(event)) return Promise.resolve();
  write({ event, session, ...more });
  return new Promise((resolve) => awaitingGo.push(resolve));
}

/** The texts that a connector gave for the model, as the kit takes them: `sources` maps names of the face to texts. */
export function givenFor(sources) {
  const rows = Object.entries(sources).flatMap(([source, texts]) => [texts].flat().map((text) => ({ source, text })));
  return rows.filter(({ text }) => typeof text === "string" && text !== "");
}

/**
 * Say that the model's turn of a session begins.
 *
 * `more` is what the kit writes the host's request from: what was `given` for it, what the user `said` where the
 * connector changed it, and the requests that go `beside` it.
 */
export const modelTurn = (session, more = {}) => tell("model", session, more);

/** Say which arguments a tool of the connector is about to be given. */
export const handOver = (session, given) => tell("handover", session, { arguments: given });

/** Say what shows of the connector only while a step is performed, as `about` says it at first. */
export function tellAbout(about) {
  if (!tells.includes("model")) return Promise.resolve();
  write({ event: "hello", about });
  return new Promise((resolve) => awaitingGo.push(resolve));
}

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function write(answer) {
  const line = Buffer.from(`${JSON.stringify(answer)}\n`);
  let sent = 0;
  while (sent < line.length) {
    try {
      sent += writeSync(1, line, sent);
    } catch (error) {
      if (error.code === "EPIPE") return;
      if (error.code !== "EAGAIN") throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    }
  }
}

const MOST_PRINTED = 16_000;
let printed = "";

/** What the connector has printed since it was last asked, up to a limit; as a member of an answer. */
function takePrinted() {
  const told = printed;
  printed = "";
  return told === "" ? {} : { printed: told };
}

/** Standard output is for answers: whatever a connector prints goes to standard error, and is told to the kit. */
function keepStandardOutput() {
  const write = process.stderr.write.bind(process.stderr);
  process.stderr.write = (chunk, ...rest) => {
    if (printed.length < MOST_PRINTED) printed += (typeof chunk === "string" ? chunk : Buffer.from(chunk).toString()).slice(0, MOST_PRINTED);
    return write(chunk, ...rest);
  };
  const complain = (...parts) => process.stderr.write(`${format(...parts)}\n`);
  for (const name of ["log", "info", "debug", "warn", "error", "trace"]) console[name] = complain;
  process.stdout.write = (...args) => process.stderr.write(...args);
}

let inFlight = 0;
let began = 0;

/** Count requests under way, so that 'all background work is done' can be told; what is sent stays as it is. */
function countRequests() {
  const original = globalThis.fetch;
  const counted = async (...args) => {
    inFlight += 1;
    began += 1;
    try {
      return await original(...args);
    } finally {
      inFlight -= 1;
    }
  };
  globalThis.fetch = Object.assign(counted, original);
}

/** Wait until no request has been under way for a moment, at most `limit` ms. */
export async function settle(limit = SETTLE_MS) {
  const deadline = performance.now() + limit;
  for (;;) {
    const seen = began;
    await sleep(QUIET_MS);
    if ((inFlight === 0 && began === seen) || performance.now() > deadline) return;
  }
}

const PLACE = /(?:^|[\s(])(?:file:\/\/)?(\/[^\s()]+?:\d+)(?::\d+)?\)?$/gm;

/** Where in the host's code an error arose; nothing if code outside its folder was involved. */
function ownPlace(error, own) {
  const places = [...String(error?.stack).matchAll(PLACE)].map(([, place]) => place);
  if (!places.every((place) => place.startsWith(own))) return undefined;
  return places[0]?.slice(own.length);
}

/**
 * Serve standard input until `exit` or its end.
 *
 * `open()` loads the connector and returns `{about, perform(step), close()}`; it is called by the first
 * `hello`, so nothing reaches the daemon before. After each step the host waits for requests that the
 * connector left in the background, as a user who reads the answer does, but never longer than SETTLE_MS.
 * `face` tells whether an error that nobody catches ends the harness.
 */
export async function serve(open, face) {
  keepStandardOutput();
  const own = fileURLToPath(new URL(".", import.meta.url));
  const takeSent = watchSent(own);
  countRequests();
  keepFromVendor();
  const takeStrays = watchStrays(own, face?.ends_on_stray_errors === true);
  let host;
  const answer = async (request) => {
    const start = performance.now();
    try {
      const result = await perform(request);
      write({ id: request.id, ok: true, ms: Math.round((performance.now() - start) * 1000) / 1000, result });
    } catch (error) {
      const type = error instanceof StepError ? error.name : (error?.name ?? "Error");
      if (!(error instanceof StepError)) console.error(error);
      const at = error instanceof StepError ? undefined : ownPlace(error, own);
      write({ id: request.id, ok: false, error: { type, message: String(error?.message ?? error), at } });
    }
  };
  const perform = async (request) => {
    if (request.op === "hello") {
      tells = Array.isArray(request.events) ? request.events : [];
      try {
        host ??= await open();
      } catch (error) {
        if (!(error instanceof NotLoaded)) throw error;
        return { protocol: PROTOCOL, loaded: false, words: error.message };
      }
      await settle();
      return { protocol: PROTOCOL, tells: tells.filter((event) => event === "handover"), ...host.about, ...takePrinted() };
    }
    if (host === undefined) throw new StepError("say hello first");
    if (request.op === "flush") {
      await settle(FLUSH_MS);
      return {};
    }
    if (request.op !== "step" || typeof request.step !== "object" || request.step === null) {
      throw new StepError(`the op ${JSON.stringify(request.op)} is unknown or lacks its step: use hello, step, flush, go, exit`);
    }
    try {
      const result = await host.perform(request.step);
      await settle();
      const sent = takeSent();
      const strays = takeStrays();
      return {
        ...result,
        ...(sent.length === 0 ? {} : { sent }),
        ...(strays.length === 0 ? {} : { calls: [...(result.calls ?? []), ...strays] }),
        ...takePrinted(),
      };
    } catch (error) {
      if (!(error instanceof Skipped)) throw error;
      return { skipped: error.message };
    }
  };
  const leave = async (request) => {
    tells = [];
    for (const go of awaitingGo.splice(0)) go();
    await queue;
    try {
      await host?.close();
      await settle();
    } catch (error) {
      console.error(error);
    }
    if (request !== undefined) write({ id: request.id, ok: true, ms: 0, result: {} });
    process.exit(0);
  };
  let queue = Promise.resolve();
  let rest = "";
  process.stdin.setEncoding("utf8");
  for await (const chunk of process.stdin) {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (line.trim() === "") continue;
      let request;
      try {
        request = JSON.parse(line);
      } catch (error) {
        write({ id: null, ok: false, error: { type: "StepError", message: `the line is not JSON: ${error.message}` } });
        continue;
      }
      if (request?.op === "go") awaitingGo.shift()?.();
      else if (request?.op === "exit") await leave(request);
      else queue = queue.then(() => answer(request ?? {}));
    }
  }
  await leave();
}
