// What the hosts share: calling a connector's handlers as a harness does, and reading what a tool gave back.

import { advance, waitBeside } from "./clock.mjs";
import { Lateness } from "./lateness.mjs";
import { handOver, Skipped, StepError } from "./protocol.mjs";

const UUID = /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/i;

/** Only the named members of a bag of values; a member that the bag lacks is left out, as hosts do. */
export function pick(bag, members) {
  return Object.fromEntries(members.filter((name) => bag[name] !== undefined).map((name) => [name, bag[name]]));
}

/** Time passes: the program's clock is put forward. */
async function wait({ seconds }) {
  await advance(seconds * 1000);
  return {};
}

/** The steps of a host's table, and those that every host performs. */
export const listed = (steps) => [...Object.keys(steps), "wait"];

/** The data of an image that a user attaches: a PNG of one red dot. */
export const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";

/** What performs a step, from a host's table of them. */
export function performerOf(steps, step) {
  if (step.step === "wait") return wait;
  const performer = steps[step.step];
  if (performer === undefined) throw new StepError(`there is no step ${JSON.stringify(step.step)}`);
  return performer;
}

/** A command of the harness itself, which never reaches a plugin: `/status` and the like. */
export function keepBack({ text }) {
  if (/^\/(status|help)$/.test(text)) throw new Skipped(`${text} is a command of the harness, which keeps it back`);
}

/** The sessions of a host by the names that steps give them. */
export class Sessions extends Map {
  #kept;

  /** `kept(step)` finds a session that an earlier process of the host has written down; undefined where none has. */
  constructor(kept = () => undefined) {
    super();
    this.#kept = kept;
  }

  of(step) {
    const found = this.get(step.session) ?? this.#kept(step);
    if (found !== undefined) this.set(step.session, found);
    else throw new StepError(`session ${JSON.stringify(step.session)} is not known: start it first`);
    return found;
  }
}

/** Whether an error comes of a mistake in the code. That of a failed fetch is a TypeError too, and has a cause. */
const isDefect = (error) => error instanceof ReferenceError || (error instanceof TypeError && error.cause === undefined);

/** Handlers by event, and what became of each call: the host's own measure of 'fails open' and 'blocked how long'. */
export class Calls {
  #calls = [];
  #budgets;
  #catches;

  /** With `catches` the harness is known to catch what a handler throws, and to go on with the turn. */
  constructor(budgets = {}, { catches = false } = {}) {
    this.#budgets = budgets;
    this.#catches = catches;
  }

  /** Whether the last call threw, of a harness that is known to catch nothing there: the user's turn is lost with it. */
  lost() {
    const last = this.#calls.at(-1);
    if (last?.thrown === undefined) return false;
    last.lost = true;
    return true;
  }

  /** What the last call threw. */
  words() {
    return this.#calls.at(-1)?.thrown;
  }

  /** The harness itself ends the user's turn over what the last call left behind, with these words. */
  refuse(words) {
    Object.assign(this.#calls.at(-1), { thrown: words, lost: true });
  }

  /** The last call dealt with what the user said, so the harness gives the user no turn. */
  block() {
    this.#calls.at(-1).blocked = true;
  }

  /**
   * Run a tool. With `throws` the harness has its tools throw to tell the model of a failure, and hands it the error's
   * words; an error of the code itself is noted as that of any handler.
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

  /** Call one handler; what it throws, and a budget it outruns, is noted and never stops the turn. */
  async call(event, handler, ...args) {
    const start = performance.now();
    const budget = this.#budgets[event];
    const noted = { event };
    this.#calls.push(noted);
    const lateness = new Lateness(waitBeside);
    let timer;
    try {
      const running = Promise.resolve(handler(...args));
      if (budget === undefined) return await running;
      running.catch(() => {});
      const late = new Promise((resolve) => {
        timer = setTimeout(() => {
          noted.timed_out = true;
          resolve(undefined);
        }, budget);
      });
      return await Promise.race([running, late]);
    } catch (error) {
      noted.thrown = String(error?.stack ?? error).slice(0, 2000);
      if (this.#catches) noted.lost = false;
      return undefined;
    } finally {
      clearTimeout(timer);
      noted.late_ms = lateness.end();
      noted.ms = Math.round((performance.now() - start) * 1000) / 1000;
    }
  }

  /** The calls since the last time, for the answer to a step. */
  take() {
    return this.#calls.splice(0);
  }
}

/**
 * What a harness allows of compactions: one only where something was said since the last, its end only after its
 * beginning. `state` is the session's own object; `said` counts its messages since the last compaction.
 */
export const compaction = {
  begin(state) {
    if (!state.said) throw new Skipped("nothing was said since the last compaction, so the harness compacts nothing");
    state.compacting = true;
  },
  end(state) {
    if (!state.compacting) throw new Skipped("no compaction is under way");
    Object.assign(state, { compacting: false, said: 0 });
  },
};

/** The call of a tool of the host's own, in place of one that the connector lacks, and what it gives back. */
export const OWN_CALL = { name: "grep", input: { pattern: "retryLimit" }, text: "src/ledger.ts:12: export const retryLimit = 3;" };

/** The words of what a tool gave back. */
export function toolText(given) {
  if (typeof given === "string") return given;
  const content = given?.content;
  if (typeof content === "string") return content;
  const texts = (Array.isArray(content) ? content : []).map((part) => part?.text);
  return texts.filter((text) => typeof text === "string").join("\n");
}

/** What a tool gave back as `{text, content}`: `content` is an object, with the id of a memory where one is told. */
export function toolAnswer(given) {
  const text = toolText(given);
  const told = typeof given === "object" && given !== null ? (given.details ?? {}) : {};
  const id = told.id ?? told.memoryId ?? told.memory?.id ?? text.match(UUID)?.[0];
  return { text, content: { ...told, ...(id === undefined ? {} : { id }) }, is_error: given?.isError === true };
}

/** Members of a schema by which it may offer other members than its properties. */
const TAKES_MORE = ["additionalProperties", "patternProperties", "$ref", "allOf", "anyOf", "oneOf"];

/** A member's value as a model writes it: scenarios name tags with commas between, and a tool may want a list. */
const inForm = (value, schema) =>
  typeof value === "string" && schema?.type === "array" ? value.split(",").map((part) => part.trim()) : value;

/** The arguments that a tool's schema offers, in its form; all where it names no members or takes any. */
function offered(schema, given) {
  const properties = schema?.properties;
  if (typeof properties !== "object" || properties === null) return given;
  const takesMore = TAKES_MORE.some((name) => schema[name]);
  const kept = Object.entries(given).filter(([name]) => takesMore || Object.hasOwn(properties, name));
  return Object.fromEntries(kept.map(([name, value]) => [name, inForm(value, properties[name])]));
}

/** What a model writes into a member that the tool requires and the step does not name, by the type of the member. */
const plausible = (text) => ({ string: text, array: [text], number: 1, integer: 1, boolean: false, object: {} });

/** Values for the members that the tool requires and the step does not name: the model would write some. */
function required(schema, given) {
  const texts = Object.values(given).filter((value) => typeof value === "string" && value !== "");
  const missing = (schema?.required ?? []).filter((name) => !Object.hasOwn(given, name) && schema.properties?.[name] !== undefined);
  const value = ({ enum: choices, type }) => (Array.isArray(choices) ? choices[0] : plausible(texts[0] ?? "billing")[type]);
  const told = missing.map((name) => [name, value(schema.properties[name])]);
  return Object.fromEntries(told.filter(([, each]) => each !== undefined));
}

/** The members of a step that say what it stores, looks for or changes, and which memories it forgets. */
const ASKS = {
  memory_store: ["content"],
  memory_search: ["query"],
  memory_get: ["id"],
  secret_exec: ["command"],
  memory_modify: ["content", "type", "tags", "importance", "pinned"],
  memory_forget: ["id", "ids", "query", "type", "tags", "who", "source_type", "since", "until", "scope"],
};

/**
 * Whether the tool can do any of what a call asks for. No model calls it with what is left of the others. A tool may have
 * another name for the one text that it requires, but not for what it changes.
 */
function isSensible(tool, given, schema) {
  const asks = (call) => (ASKS[tool] ?? []).some((member) => call[member] !== undefined);
  const kept = offered(schema, given);
  if (kept.patches !== undefined || !asks(given) || asks(kept)) return true;
  const mayBeRenamed = tool === "memory_forget" ? given.id !== undefined : tool !== "memory_modify";
  return mayBeRenamed && Object.keys(required(schema, given)).length > 0;
}

/** The arguments of each call of a scenario's tool. Scenarios speak of batches; most tools are for one memory. */
function argumentsOfCalls({ tool, arguments: given = {} }, name, schema) {
  const offers = (member) => schema?.properties?.[member] !== undefined;
  let calls = [given];
  if (Array.isArray(given.patches) && !offers("patches")) calls = given.patches;
  else if (Array.isArray(given.ids) && !offers("ids")) calls = given.ids.map((id) => ({ id, reason: given.reason }));
  const sensible = calls.filter((call) => isSensible(tool, call, schema));
  if (sensible.length === 0) {
    const asked = ASKS[tool].filter((member) => calls[0][member] !== undefined);
    throw new Skipped(`${name} takes none of the arguments that the step is about: ${asked.join(", ")}`);
  }
  return sensible.map((call) => ({ ...required(schema, call), ...offered(schema, call) }));
}

/** What all calls of a tool step hand to the connector, as the step would say it. */
function asOne({ arguments: given }, calls) {
  if (calls.length === 1) return calls[0];
  if (Array.isArray(given.patches)) return { patches: calls };
  const [{ reason } = {}] = calls;
  return { ids: calls.map((call) => call.id), ...(reason === undefined ? {} : { reason }) };
}

/**
 * Perform a tool step through `run(name, arguments)`; several calls are answered by the last.
 *
 * `schemaOf(name)` is undefined where the connector has no such tool; `map` is the target's own naming, `known` are
 * the names of all its tools.
 */
export async function useTool(step, schemaOf, map, known, run) {
  const name = map?.[step.tool] ?? step.tool;
  const schema = schemaOf(name);
  if (schema === undefined) throw new Skipped(`the connector has no tool ${name}`);
  const calls = argumentsOfCalls(step, name, schema);
  await handOver(step.session, asOne(step, calls));
  let answer;
  for (const call of calls) answer = toolAnswer(await run(name, call));
  return { ...answer, offered: offeredMembers(known, schemaOf, map) };
}

/** The members that the schema of each tool names, by the scenarios' own names of tools. */
function offeredMembers(known, schemaOf, map) {
  const wanted = Object.fromEntries(Object.entries(map ?? {}).map(([name, own]) => [own, name]));
  return Object.fromEntries(known.map((own) => [wanted[own] ?? own, Object.keys(schemaOf(own)?.properties ?? {})]));
}
