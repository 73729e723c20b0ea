// Shared by the hosts: calling a connector's handlers as a harness does, choosing a tool's arguments, reading its answer.

import { advance, afterRealTime } from "./clock.mjs";
import { Lateness } from "./lateness.mjs";
import { handOver, Skipped, StepError } from "./protocol.mjs";

const UUID = /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/i;

/** The named members of an object, without those that are undefined. */
export function pick(object, members) {
  return Object.fromEntries(members.filter((name) => object[name] !== undefined).map((name) => [name, object[name]]));
}

/** Let time pass: advance the program's clock. */
async function wait({ seconds }) {
  await advance(seconds * 1000);
  return {};
}

/** The names of the steps that a host performs: those of its table, and those of every host. */
export const stepNames = (steps) => [...Object.keys(steps), "wait"];

/** The data of an image that a user attaches: a PNG of one red dot. */
export const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";

/** The function that performs a step, from a host's table. */
export function performerOf(steps, step) {
  if (step.step === "wait") return wait;
  const performer = steps[step.step];
  if (performer === undefined) throw new StepError(`there is no step ${JSON.stringify(step.step)}`);
  return performer;
}

/** Skip a prompt that is a command of the harness itself, such as `/status`: no plugin ever gets it. */
export function skipHarnessCommand({ text }) {
  if (/^\/(status|help)$/.test(text)) throw new Skipped(`${text} is a command of the harness, which does not pass it on`);
}

/** The sessions of a host by the names that steps give them. */
export class Sessions extends Map {
  #read;

  /** `read(step)` returns a session that an earlier process of the host has written to disk; undefined if there is none. */
  constructor(read = () => undefined) {
    super();
    this.#read = read;
  }

  of(step) {
    const session = this.get(step.session) ?? this.#read(step);
    if (session === undefined) throw new StepError(`session ${JSON.stringify(step.session)} is not known: start it first`);
    this.set(step.session, session);
    return session;
  }
}

/** Whether an error shows a mistake in the code. A failed fetch throws a TypeError too, but that has a cause. */
const isDefect = (error) => error instanceof ReferenceError || (error instanceof TypeError && error.cause === undefined);

/** Calls handlers and tools of the connector, and notes of each call how long it took and what it threw. */
export class Calls {
  #calls = [];
  #budgets;
  #catches;

  /** `budgets` has the harness's time limits per event in ms. With `catches` an error of a handler does not end a turn. */
  constructor(budgets = {}, { catches = false } = {}) {
    this.#budgets = budgets;
    this.#catches = catches;
  }

  /** Note that the user's turn is lost if the last call threw, since the harness catches nothing there. Return whether it is. */
  lost() {
    const last = this.#calls.at(-1);
    if (last?.thrown === undefined) return false;
    last.lost = true;
    return true;
  }

  /** What the last call threw. */
  lastError() {
    return this.#calls.at(-1)?.thrown;
  }

  /** Note that the harness itself ends the user's turn with this error, because of what the last call left behind. */
  refuse(message) {
    Object.assign(this.#calls.at(-1), { thrown: message, lost: true });
  }

  /** Note that the last call handled the user's prompt itself, so that no turn follows. */
  block() {
    this.#calls.at(-1).blocked = true;
  }

  /**
   * Run a tool. With `throws`, a tool of this harness reports a failure to the model by throwing: the error's message is
   * its answer. An error that shows a defect is noted, as for any handler.
   */
  async tool(name, run, throws) {
    const running = async () => {
      try {
        return await run();
      } catch (error) {
        if (!throws || isDefect(error)) throw error;
        return { content: [{ type: "text", text: String(error?.message ?? error) }], isError: true };
      }
    };
    return this.call(`tool ${name}`, running);
  }

  /** Call one handler. An error or an exceeded time limit is noted; the result is then undefined. */
  async call(event, handler, ...args) {
    const start = performance.now();
    const budget = this.#budgets[event];
    const note = { event };
    this.#calls.push(note);
    const lateness = new Lateness(afterRealTime);
    let timer;
    try {
      const running = Promise.resolve(handler(...args));
      if (budget === undefined) return await running;
      running.catch(() => {});
      const late = new Promise((resolve) => {
        timer = setTimeout(() => {
          note.timed_out = true;
          resolve(undefined);
        }, budget);
      });
      return await Promise.race([running, late]);
    } catch (error) {
      note.thrown = String(error?.stack ?? error).slice(0, 2000);
      if (this.#catches) note.lost = false;
      return undefined;
    } finally {
      clearTimeout(timer);
      note.late_ms = lateness.end();
      note.ms = Math.round((performance.now() - start) * 1000) / 1000;
    }
  }

  /** Return and forget the calls noted so far, for the answer to a step. */
  take() {
    return this.#calls.splice(0);
  }
}

/**
 * When a harness compacts: only if there are messages since the last compaction, and it ends only what it has begun.
 * `session.uncompacted` counts the messages since the last compaction.
 */
export const compaction = {
  begin(session) {
    if (!session.uncompacted) throw new Skipped("nothing was said since the last compaction, so the harness compacts nothing");
    session.compacting = true;
  },
  end(session) {
    if (!session.compacting) throw new Skipped("no compaction is under way");
    Object.assign(session, { compacting: false, uncompacted: 0 });
  },
};

/** A call of a tool of the host itself, made if the connector lacks the tool of the step, and its answer. */
export const HOST_TOOL_CALL = { name: "grep", input: { pattern: "retryLimit" }, text: "src/ledger.ts:12: export const retryLimit = 3;" };

/** The text of a tool's result. */
export function toolText(result) {
  if (typeof result === "string") return result;
  const content = result?.content;
  if (typeof content === "string") return content;
  const texts = (Array.isArray(content) ? content : []).map((part) => part?.text);
  return texts.filter((text) => typeof text === "string").join("\n");
}

/** A tool's result as the `{text, content, is_error}` of an answer. `content` has the memory's id if the result has one. */
export function toolAnswer(result) {
  const text = toolText(result);
  const details = typeof result === "object" && result !== null ? (result.details ?? {}) : {};
  const id = details.id ?? details.memoryId ?? details.memory?.id ?? text.match(UUID)?.[0];
  return { text, content: { ...details, ...(id === undefined ? {} : { id }) }, is_error: result?.isError === true };
}

/** Keywords by which a schema may accept members beyond its `properties`. */
const OPEN_KEYWORDS = ["additionalProperties", "patternProperties", "$ref", "allOf", "anyOf", "oneOf"];

/** A value in the type that the tool wants: scenarios separate tags by commas, and the tool may take a list. */
const convertLists = (value, schema) =>
  typeof value === "string" && schema?.type === "array" ? value.split(",").map((part) => part.trim()) : value;

/** The arguments that a tool's schema accepts, converted to its types; all if it lists no members or is open. */
function acceptedArguments(schema, args) {
  const properties = schema?.properties;
  if (typeof properties !== "object" || properties === null) return args;
  const isOpen = OPEN_KEYWORDS.some((name) => schema[name]);
  const accepted = Object.entries(args).filter(([name]) => isOpen || Object.hasOwn(properties, name));
  return Object.fromEntries(accepted.map(([name, value]) => [name, convertLists(value, properties[name])]));
}

/** A plausible value for each type of member. */
const sampleValues = (text) => ({ string: text, array: [text], number: 1, integer: 1, boolean: false, object: {} });

/** Values for the members that the tool requires and the step does not name; a model would make some up. */
function inventMissing(schema, args) {
  const texts = Object.values(args).filter((value) => typeof value === "string" && value !== "");
  const missing = (schema?.required ?? []).filter((name) => !Object.hasOwn(args, name) && schema.properties?.[name] !== undefined);
  const valueFor = ({ enum: choices, type }) => (Array.isArray(choices) ? choices[0] : sampleValues(texts[0] ?? "billing")[type]);
  const values = missing.map((name) => [name, valueFor(schema.properties[name])]);
  return Object.fromEntries(values.filter(([, value]) => value !== undefined));
}

/** By tool, the arguments without which a call has no purpose: what it stores, looks for or changes, which memories it forgets. */
const PURPOSE = {
  memory_store: ["content"],
  memory_search: ["query"],
  memory_get: ["id"],
  secret_exec: ["command"],
  memory_modify: ["content", "type", "tags", "importance", "pinned"],
  memory_forget: ["id", "ids", "query", "type", "tags", "who", "source_type", "since", "until", "scope"],
};

/**
 * Whether a call still has a purpose with the arguments that the tool accepts; no model would make another. A tool may
 * use another name for the one text that it requires, but not for the members that it changes.
 */
function isSensible(tool, args, schema) {
  const hasPurpose = (call) => (PURPOSE[tool] ?? []).some((member) => call[member] !== undefined);
  const accepted = acceptedArguments(schema, args);
  if (accepted.patches !== undefined || !hasPurpose(args) || hasPurpose(accepted)) return true;
  const mayBeRenamed = tool === "memory_forget" ? args.id !== undefined : tool !== "memory_modify";
  return mayBeRenamed && Object.keys(inventMissing(schema, args)).length > 0;
}

/** The arguments of each call of a step's tool. A step may name several memories, while most tools take one. */
function argumentsOfCalls({ tool, arguments: args = {} }, name, schema) {
  const offers = (member) => schema?.properties?.[member] !== undefined;
  let calls = [args];
  if (Array.isArray(args.patches) && !offers("patches")) calls = args.patches;
  else if (Array.isArray(args.ids) && !offers("ids")) calls = args.ids.map((id) => ({ id, reason: args.reason }));
  const sensible = calls.filter((call) => isSensible(tool, call, schema));
  if (sensible.length === 0) {
    const wanted = PURPOSE[tool].filter((member) => calls[0][member] !== undefined);
    throw new Skipped(`${name} takes none of the arguments that the step is about: ${wanted.join(", ")}`);
  }
  return sensible.map((call) => ({ ...inventMissing(schema, call), ...acceptedArguments(schema, call) }));
}

/** The arguments of all calls of a tool step, merged into the form of the step. */
function mergeCalls({ arguments: args }, calls) {
  if (calls.length === 1) return calls[0];
  if (Array.isArray(args.patches)) return { patches: calls };
  const [{ reason } = {}] = calls;
  return { ids: calls.map((call) => call.id), ...(reason === undefined ? {} : { reason }) };
}

/**
 * Perform a tool step through `run(name, arguments)`. If it takes several calls, the answer is that of the last.
 *
 * `schemaOf(name)` is undefined if the connector has no such tool. `map` is from the scenarios' names of tools to the
 * target's own, `known` has the names of all its tools.
 */
export async function useTool(step, schemaOf, map, known, run) {
  const name = map?.[step.tool] ?? step.tool;
  const schema = schemaOf(name);
  if (schema === undefined) throw new Skipped(`the connector has no tool ${name}`);
  const calls = argumentsOfCalls(step, name, schema);
  await handOver(step.session, mergeCalls(step, calls));
  let answer;
  for (const call of calls) answer = toolAnswer(await run(name, call));
  return { ...answer, offered: offeredMembers(known, schemaOf, map) };
}

/** The members that each tool's schema lists, by the scenarios' name of the tool. */
function offeredMembers(known, schemaOf, map) {
  const scenarioNames = Object.fromEntries(Object.entries(map ?? {}).map(([name, own]) => [own, name]));
  return Object.fromEntries(known.map((own) => [scenarioNames[own] ?? own, Object.keys(schemaOf(own)?.properties ?? {})]));
}
