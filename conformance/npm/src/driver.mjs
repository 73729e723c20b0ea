// A driver of signet-driver/1: the harness of a connector, played on standard input and output.

import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { format } from "node:util";

import { Lateness } from "./lateness.mjs";
import { watchSent } from "./sent.mjs";

const PROTOCOL = "signet-driver/1";
const STEPS = ["start", "prompt", "sessionless_prompt", "tool", "compact", "pre_compaction", "compaction_complete", "clear", "resume", "end"];
/** Functions that do not play a step. */
const OTHERS = ["load", "answered", "flush", "exit", "folder", "tools"];
/** What a compaction is played by where it has no function of its own. */
const HALVES = ["pre_compaction", "compaction_complete"];
const LINES_OF_A_STACK = 4;
const MOST_PRINTED = 8000;

/** The step could not be performed for a reason that is the driver's own and not the connector's. */
class StepError extends Error {
  name = "StepError";
}

/**
 * Answer the kit until it says exit. `handlers` has a function for each step that the connector has a counterpart for;
 * each is given the step and what `start` or `resume` returned for its session.
 *
 * What a handler throws is the connector's: a harness survives it, so the step is answered and the kit is told.
 * The promise is fulfilled when the kit has left.
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
 * Keep what is printed on standard error, up to a limit, and return the function that takes it. With `ours`, standard
 * output is the protocol's alone: what is printed there goes to standard error.
 */
function keepPrinted(ours) {
  const write = process.stderr.write.bind(process.stderr);
  let kept = "";
  process.stderr.write = (chunk, ...rest) => {
    if (kept.length < MOST_PRINTED) kept += (typeof chunk === "string" ? chunk : Buffer.from(chunk).toString()).slice(0, MOST_PRINTED);
    return write(chunk, ...rest);
  };
  if (ours) {
    process.stdout.write = (...parts) => process.stderr.write(...parts);
    // Bun's console writes to neither stream.
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
      const result = await this.#perform(await this.#handedOver(step));
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
      return { ...about, loaded: false, words: told(error) };
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
    let made;
    try {
      made = await handler(step, session);
    } catch (error) {
      call.thrown = told(error);
    }
    Object.assign(call, { late_ms: lateness.end(), ms: performance.now() - began });
    if (opens) this.#sessions.set(step.session, (made ??= session ?? {}));
    const result = { calls: [call], ...(call.thrown ? {} : opens ? opened(made) : resultOf(step, made)) };
    if ((step.step === "prompt" || alone) && result.turn !== false) {
      await this.#modelTurn(step.session);
      await this.#handlers.answered?.(step, this.#sessions.get(step.session));
    }
    return result;
  }

  /** The step as its function is given it, of a tool the arguments that its schema offers; the kit is told before. */
  async #handedOver(step) {
    const { folder, tools } = this.#handlers;
    if (step.step === "start" && (folder || tools)) {
      const path = await folder?.(step);
      await this.#tell("handover", step.session, typeof path === "string" ? { folder: path } : {});
    }
    const offered = step.step === "tool" ? tools?.[step.tool] : undefined;
    if (offered === undefined) return step;
    const given = Object.fromEntries(Object.entries(step.arguments ?? {}).filter(([name]) => offered.includes(name)));
    await this.#tell("handover", step.session, { arguments: given });
    return { ...step, arguments: given };
  }

  /** Tell the kit that the model would be called now. */
  async #modelTurn(session) {
    await this.#tell("model", session);
  }

  /** Tell the kit of an event that it has asked for, and wait until its mark is written. */
  async #tell(event, session, more = {}) {
    if (!this.#events.includes(event)) return;
    this.#send({ event, session, ...more });
    await this.#lines.next();
  }
}

/** A compaction by its halves. */
function compactOf(handlers) {
  return async (step, session) => {
    for (const half of HALVES) await handlers[half]({ ...step, step: half }, session);
  };
}

function opened(session) {
  const { key, injected } = session;
  return { ...(typeof key === "string" ? { key } : {}), ...(typeof injected === "string" ? { injected } : {}) };
}

/** A text is what was injected, of a tool its answer; an object is a result of the protocol as it is. */
function resultOf(step, made) {
  if (made === undefined || made === null) return {};
  if (typeof made === "string") return step.step === "tool" ? { content: { text: made } } : { injected: made };
  return made;
}

function told(error) {
  return error instanceof Error && error.stack ? error.stack.split("\n").slice(0, LINES_OF_A_STACK).join("\n") : String(error);
}
