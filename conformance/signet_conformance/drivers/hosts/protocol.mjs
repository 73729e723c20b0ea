// The driver protocol signet-driver/1 for a host in JavaScript: reads requests from standard input, one JSON object per
// line, performs them one after the other, and answers on standard output. docs/driver-protocol.md specifies it.

import { writeSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { format } from "node:util";

import { interceptVendor } from "./model_wire.mjs";
import { watchSent } from "./sent.mjs";
import { watchStrays } from "./strays.mjs";

export const PROTOCOL = "signet-driver/1";
const SETTLE_MS = 400;
const FLUSH_MS = 25_000;
const QUIET_MS = 10;

/** Thrown if this host cannot perform a request; its message is for the reader of the kit's error. */
export class StepError extends Error {
  name = "StepError";
}

/** Thrown if a harness cannot load the connector; the message is that of the harness or the runtime. */
export class NotLoaded extends Error {
  /** Return what `load()` returns; anything that it throws becomes a NotLoaded that begins with `problem`. */
  static async guard(problem, load) {
    try {
      return await load();
    } catch (error) {
      if (error instanceof NotLoaded) throw error;
      throw new NotLoaded(`${problem}: ${String(error?.stack ?? error).split("\n").slice(0, 2).join(" ").replace(/\s+/g, " ")}`);
    }
  }
}

/** Thrown if the connector or its harness has no counterpart for a step: answered with `skipped`, not an error. */
export class Skipped extends Error {}

/** The events that the kit has asked for in its `hello`. */
let wantedEvents = [];
/** The functions that let the host continue, one per event whose `go` has not come. */
const awaitingGo = [];

/** Send an event, and wait for the kit's `go`. */
function send(event) {
  write(event);
  return new Promise((resolve) => awaitingGo.push(resolve));
}

/** Send an event of a session, if the kit has asked for it, and wait for its `go`. */
async function sendIfWanted(event, session, more) {
  if (wantedEvents.includes(event)) await send({ event, session, ...more });
}

/** The member `given` of the event `model`: a row for each text. `sources` maps the face's names of sources to texts. */
export function givenRows(sources) {
  const rows = Object.entries(sources).flatMap(([source, texts]) => [texts].flat().map((text) => ({ source, text })));
  return rows.filter(({ text }) => typeof text === "string" && text !== "");
}

/**
 * Report that the host would now call its model.
 *
 * `more` is for the kit's record of that request: the texts `given` for it, what the user `said` if the connector
 * changed it, and the requests sent `beside` it.
 */
export const modelTurn = (session, more = {}) => sendIfWanted("model", session, more);

/** Report the arguments that a tool of the connector is about to get. */
export const handOver = (session, args) => sendIfWanted("handover", session, { arguments: args });

/** Report, during a step, what the answer to `hello` could not say about the connector yet. */
export async function reportAbout(about) {
  if (wantedEvents.includes("model")) await send({ event: "hello", about });
}

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function write(message) {
  const line = Buffer.from(`${JSON.stringify(message)}\n`);
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

/** Return and forget what the connector has printed so far, up to a limit, as a member of an answer. */
function takePrinted() {
  const text = printed;
  printed = "";
  return text === "" ? {} : { printed: text };
}

/** Reserve standard output for answers: what a connector prints goes to standard error, and is kept for the answer. */
function redirectOutput() {
  const write = process.stderr.write.bind(process.stderr);
  process.stderr.write = (chunk, ...rest) => {
    if (printed.length < MOST_PRINTED) printed += (typeof chunk === "string" ? chunk : Buffer.from(chunk).toString()).slice(0, MOST_PRINTED);
    return write(chunk, ...rest);
  };
  const log = (...parts) => process.stderr.write(`${format(...parts)}\n`);
  for (const name of ["log", "info", "debug", "warn", "error", "trace"]) console[name] = log;
  process.stdout.write = (...args) => process.stderr.write(...args);
}

let inFlight = 0;
let begun = 0;

/** Count the requests of `fetch`, so that `settle` knows whether any is under way. */
function countRequests() {
  const original = globalThis.fetch;
  const counted = async (...args) => {
    inFlight += 1;
    begun += 1;
    try {
      return await original(...args);
    } finally {
      inFlight -= 1;
    }
  };
  globalThis.fetch = Object.assign(counted, original);
}

/** Wait until no request has been under way for QUIET_MS, at most `limit` ms. */
export async function settle(limit = SETTLE_MS) {
  const deadline = performance.now() + limit;
  for (;;) {
    const before = begun;
    await sleep(QUIET_MS);
    if ((inFlight === 0 && begun === before) || performance.now() > deadline) return;
  }
}

const PLACE = /(?:^|[\s(])(?:file:\/\/)?(\/[^\s()]+?:\d+)(?::\d+)?\)?$/gm;

/** Where in the host's own code an error arose; undefined if code outside its folder was involved. */
function ownPlace(error, own) {
  const places = [...String(error?.stack).matchAll(PLACE)].map(([, place]) => place);
  if (!places.every((place) => place.startsWith(own))) return undefined;
  return places[0]?.slice(own.length);
}

/**
 * Serve standard input until `exit` or its end.
 *
 * `open()` loads the connector and returns `{about, perform(step), close()}`. It is called at the first `hello`, so
 * nothing reaches the daemon before. After each step the host waits until the connector's background requests have
 * ended, at most SETTLE_MS, as a user reads the answer before writing again. `face.ends_on_stray_errors` says that an
 * uncaught error ends the harness.
 */
export async function serve(open, face) {
  redirectOutput();
  const own = fileURLToPath(new URL(".", import.meta.url));
  const takeSent = watchSent(own);
  countRequests();
  interceptVendor();
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
      wantedEvents = Array.isArray(request.events) ? request.events : [];
      try {
        host ??= await open();
      } catch (error) {
        if (!(error instanceof NotLoaded)) throw error;
        return { protocol: PROTOCOL, loaded: false, words: error.message };
      }
      await settle();
      const tells = wantedEvents.filter((event) => event === "handover");
      return { protocol: PROTOCOL, tells, ...host.about, ...takePrinted() };
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
    wantedEvents = [];
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
  let incomplete = "";
  process.stdin.setEncoding("utf8");
  for await (const chunk of process.stdin) {
    const lines = (incomplete + chunk).split("\n");
    incomplete = lines.pop();
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
