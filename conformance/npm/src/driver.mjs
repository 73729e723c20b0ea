// A driver for signet-driver/1: plays the harness of a connector, on standard input and output.

import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { format } from "node:util";

import { Lateness } from "./lateness.mjs";
import { watchSent } from "./sent.mjs";

const PROTOCOL = "signet-driver/1";
const STEPS = ["start", "prompt", "sessionless_prompt", "tool", "compact", "pre_compaction", "compaction_complete", "clear", "resume", "end"];
/** Handlers that are not for a step. */
const OTHERS = ["load", "answered", "flush", "exit", "folder", "tools"];
/** The handlers that play a compaction if there is none for the whole. */
const HALVES = ["pre_compaction", "compaction_complete"];
const LINES_OF_A_STACK = 4;
const MOST_PRINTED = 8000;

/** Thrown if a step cannot be performed because of the driver, not of the connector. */
class StepError extends Error {
  name = "StepError";
}

/**
 * Answer the kit until it sends `exit`. `handlers` has a function for each step with a counterpart in the connector; it
 * gets the step, and what `start` or `resume` returned for the session.
 *
 * An error of a handler counts as the connector's. A harness survives such errors, so the step is answered, and the
 * answer reports the error. The promise is fulfilled after `exit`.
 */
export async function createDriver(handlers, { input = process.stdin, output = process.stdout } = {}) {
  const unknown = Object.keys(handlers).filter((name) => !STEPS.includes(name) && !OTHERS.includes(name));
  if (unknown.length > 0) throw new TypeError(`createDriver: ${unknown[0]} is not a step; steps are ${STEPS.join(", ")}, and beside them ${OTHERS.join(", ")}`);
  const write = output.write.bind(output);
  const send = (message) => write(`${JSON.stringify(message)}\n`);
  const takePrinted = keepPrinted(output === process.stdout);
  const lines = createInterface({ input })[Symbol.asyncIterator]();
  const driver = new Driver(handlers, send, lines, takePrinted);
  for await (const line of { [Symbol.asyncIterator]: () => lines }) {
    const { id, op, step, events } = JSON.parse(line);
    const began = performance.now();
    try {
      const result = await driver.answer(op, step, events);
      send({ id, ok: true, ms: performance.now() - began, result });
    } catch (error) {
      send({ id, ok: false, error: { type: error.name ?? "Error", message: String(error.message ?? error) } });
    }
    if (op === "exit") break;
  }
  if (output === process.stdout) process.exit(0);
}

/**
 * Keep what is printed on standard error, up to a limit, and return a function that takes it. With `redirects`, standard
 * output is reserved for the protocol: what the connector prints there goes to standard error.
 */
function keepPrinted(redirects) {
  const write = process.stderr.write.bind(process.stderr);
  let kept = "";
  process.stderr.write = (chunk, ...rest) => {
    if (kept.length < MOST_PRINTED) kept += (typeof chunk === "string" ? chunk : Buffer.from(chunk).toString()).slice(0, MOST_PRINTED);
    return write(chunk, ...rest);
  };
  if (redirects) {
    process.stdout.write = (...parts) => process.stderr.write(...parts);
    // The console of bun bypasses both streams.
    const log = (...parts) => process.stderr.write(`${format(...parts)}\n`);
    for (const name of ["log", "info", "debug", "warn", "error", "trace"]) console[name] = log;
  }
  return () => {
    const printed = kept;
    kept = "";
    return printed;
  };
}

class Driver {
  #handlers;
  #send;
  #lines;
  #takePrinted;
  #sessions = new Map();
  #events = [];
  #takeSent = watchSent(fileURLToPath(new URL(".", import.meta.url)));

  constructor(handlers, send, lines, takePrinted) {
    this.#handlers = handlers.compact || !HALVES.every((half) => handlers[half]) ? handlers : { ...handlers, compact: compactOf(handlers) };
    this.#send = send;
    this.#lines = lines;
    this.#takePrinted = takePrinted;
  }

  async answer(op, step, events = []) {
    if (op === "hello") return this.#hello(events);
    if (op === "step") {
      const result = await this.#perform(await this.#handOver(step));
      const [sent, printed] = [this.#takeSent(), this.#takePrinted()];
      return { ...(printed.trim() === "" ? {} : { printed }), ...result, ...(sent.length === 0 ? {} : { sent }) };
    }
    await this.#handlers[op]?.();
    return {};
  }

  async #hello(events) {
    this.#events = events;
    const tells = events.includes("handover") && (this.#handlers.folder || this.#handlers.tools) ? { tells: ["handover"] } : {};
    const about = { protocol: PROTOCOL, steps: STEPS.filter((name) => this.#handlers[name]), ...tells };
    try {
      return { ...about, ...(await this.#handlers.load?.()) };
    } catch (error) {
      return { ...about, loaded: false, words: textOf(error) };
    }
  }

  async #perform(step) {
    const handler = this.#handlers[step.step];
    if (!handler) return { skipped: `the connector has no counterpart of ${step.step}` };
    const { tools } = this.#handlers;
    if (step.step === "tool" && tools && !tools[step.tool]) return { skipped: `the connector has no tool ${step.tool}` };
    const opens = step.step === "start" || step.step === "resume";
    const alone = step.step === "sessionless_prompt";
    if (!opens && !alone && !this.#sessions.has(step.session)) throw new StepError(`session ${step.session} is not open`);
    const session = this.#sessions.get(step.session);
    const call = { event: step.step };
    const [began, lateness] = [performance.now(), new Lateness()];
    let value;
    try {
      value = await handler(step, session);
    } catch (error) {
      call.thrown = textOf(error);
    }
    Object.assign(call, { late_ms: lateness.end(), ms: performance.now() - began });
    if (opens) this.#sessions.set(step.session, (value ??= session ?? {}));
    const result = { calls: [call], ...(call.thrown ? {} : opens ? openingOf(value) : resultOf(step, value)) };
    if ((step.step === "prompt" || alone) && result.turn !== false) {
      await this.#sendIfWanted("model", step.session);
      await this.#handlers.answered?.(step, this.#sessions.get(step.session));
    }
    return result;
  }

  /** Report the arguments or the folder that a handler is about to get. Return the step, with only arguments that its tool has. */
  async #handOver(step) {
    const { folder, tools } = this.#handlers;
    if (step.step === "start" && (folder || tools)) {
      const path = await folder?.(step);
      await this.#sendIfWanted("handover", step.session, typeof path === "string" ? { folder: path } : {});
    }
    const offered = step.step === "tool" ? tools?.[step.tool] : undefined;
    if (offered === undefined) return step;
    const args = Object.fromEntries(Object.entries(step.arguments ?? {}).filter(([name]) => offered.includes(name)));
    await this.#sendIfWanted("handover", step.session, { arguments: args });
    return { ...step, arguments: args };
  }

  /** Send an event, if the kit has asked for it, and wait until its mark is written. */
  async #sendIfWanted(event, session, more = {}) {
    if (!this.#events.includes(event)) return;
    this.#send({ event, session, ...more });
    await this.#lines.next();
  }
}

/** A handler for a whole compaction that calls those of its halves. */
function compactOf(handlers) {
  return async (step, session) => {
    for (const half of HALVES) await handlers[half]({ ...step, step: half }, session);
  };
}

/** The members of an answer about a session that was opened. */
function openingOf(session) {
  const { key, injected } = session;
  return { ...(typeof key === "string" ? { key } : {}), ...(typeof injected === "string" ? { injected } : {}) };
}

/** The result for a handler's value: a text is a tool's answer, or else the injected text; an object is the result itself. */
function resultOf(step, value) {
  if (value === undefined || value === null) return {};
  if (typeof value === "string") return step.step === "tool" ? { content: { text: value } } : { injected: value };
  return value;
}

/** The beginning of an error's stack; for any other thrown value, its text. */
function textOf(error) {
  return error instanceof Error && error.stack ? error.stack.split("\n").slice(0, LINES_OF_A_STACK).join("\n") : String(error);
}
