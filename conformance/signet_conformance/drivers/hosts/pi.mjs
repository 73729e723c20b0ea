// Plays pi and oh-my-pi for an extension: one program with one session at a time, kept in a file. The agent is the one
// that the program was started with. The face says how releases differ.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { randomUUID } from "node:crypto";

import { givenRows, modelTurn, NotLoaded, Skipped, StepError } from "./protocol.mjs";
import { Registry } from "./registry.mjs";
import { Calls, compaction, stepNames, HOST_TOOL_CALL, performerOf, pick, PIXEL, useTool } from "./turns.mjs";

const MODEL = { provider: "scripted", model: "scripted-model", api: "scripted" };
const NO_PROJECT = "/workspace";
const SYSTEM_PROMPT = "You are an expert coding assistant.";

const newCallId = () => `call_${randomUUID().slice(0, 8)}`;

/** The text of a message's content. */
const textOf = (content) => (typeof content === "string" ? content : [content ?? []].flat().map((part) => part?.text ?? "").join("\n"));

class Session {
  constructor(face, cwd, stored) {
    this.cwd = cwd;
    this.id = stored?.id ?? randomUUID();
    this.entries = stored?.entries ?? [];
    this.file = stored?.file ?? join(Session.folder(face, cwd), `${new Date().toISOString().replaceAll(/[:.]/g, "-")}_${this.id}.jsonl`);
  }

  /** The folder of a project's sessions, created if it does not exist. */
  static folder(face, cwd) {
    const folder = join(homedir(), face.session_folder, `--${cwd.replace(/^\//, "").replaceAll("/", "-")}--`);
    mkdirSync(folder, { recursive: true });
    return folder;
  }

  /** The stored session with an id, or a new one if there is none. */
  static find(face, cwd, id) {
    const folder = Session.folder(face, cwd);
    const name = readdirSync(folder).find((file) => file.endsWith(`_${id}.jsonl`));
    if (name === undefined) return new Session(face, cwd);
    const file = join(folder, name);
    const [header, ...entries] = readFileSync(file, "utf8").trimEnd().split("\n").map((line) => JSON.parse(line));
    return new Session(face, header.cwd, { id: header.id, entries, file });
  }

  get header() {
    return { type: "session", version: 3, id: this.id, timestamp: new Date().toISOString(), cwd: this.cwd };
  }

  get messages() {
    return this.entries.flatMap((entry) => (entry.type === "message" ? [structuredClone(entry.message)] : []));
  }

  /** Add an entry. The file is written from the model's first answer on, not before. */
  add(entry) {
    const parentId = this.entries.at(-1)?.id ?? null;
    this.entries.push({ id: randomUUID().slice(0, 8), parentId, timestamp: new Date().toISOString(), ...entry });
    if (!this.entries.some(({ message }) => message?.role === "assistant")) return;
    writeFileSync(this.file, [this.header, ...this.entries].map((line) => `${JSON.stringify(line)}\n`).join(""));
  }
}

class Program {
  #face;
  #options;
  #calls;
  #handlers = new Map();
  #tools = new Map();
  #flags = new Map();
  #registry;
  #registered;
  #session;
  /** The scenario's name of the open session. */
  #sessionName;
  /** The session that a clear or a fork has left. */
  #previous;
  #turn;

  constructor(face, options) {
    this.#face = face;
    this.#options = options;
    this.#registry = new Registry(face, options.tools);
    this.#calls = new Calls(face.budgets_ms, { catches: true });
  }

  get about() {
    const { harness, version, attachments } = this.#face;
    const steps = [...stepNames(STEPS), ...(attachments ? ["attached_prompt"] : [])];
    const loaded = { tools: [...this.#tools.keys()], events: [...this.#handlers.keys()], steps };
    return { harness, face: `${harness}-${version}`, ...loaded, installed: this.#registry.refused, registered: [this.#registered] };
  }

  async load(connector) {
    const extension = connector.default ?? connector;
    const factory = this.#registry.registrar(extension);
    if (factory === undefined) throw new NotLoaded(this.#registry.noExport ?? "the module's default export is not a function of (pi)");
    const counts = { tools: 0, refused: 0, others: 0 };
    const ui = this.#ui();
    const api = {
      ui,
      on: (event, handler) => this.#handlers.set(event, [...(this.#handlers.get(event) ?? []), handler]),
      registerFlag: (name, flag) => {
        counts.others += 1;
        this.#flags.set(name, flag.default);
      },
      getFlag: (name) => this.#flags.get(name),
      registerCommand: () => void (counts.others += 1),
      registerShortcut: () => void (counts.others += 1),
      sendMessage: () => {},
      appendEntry: (customType, data) => this.#session?.add({ type: "custom", customType, data }),
    };
    if (this.#face.tools) {
      api.registerTool = (tool) => {
        if (this.#registry.takesTool(tool?.name, tool, this.#tools)) this.#tools.set(tool.name, tool);
        else counts.refused += 1;
      };
    }
    await NotLoaded.guard("the extension threw", () => factory(api));
    const events = [...this.#handlers.keys()];
    const handlers = events.filter((event) => this.#registry.knows(event, events));
    const count = (names) => names.reduce((sum, event) => sum + this.#handlers.get(event).length, 0);
    const refused = counts.refused + count(events) - count(handlers);
    this.#registered = { ...counts, tools: this.#tools.size, handlers: count(handlers), refused };
  }

  #ui() {
    const notify = (message) => console.error(`[notify] ${message}`);
    return { theme: { fg: (_color, text) => text }, notify, setStatus: () => {}, setWidget: () => {} };
  }

  #context() {
    const session = this.#session;
    const sessionManager = {
      getBranch: () => structuredClone(session.entries),
      getEntries: () => structuredClone(session.entries),
      getHeader: () => session.header,
      getSessionFile: () => session.file,
      getSessionId: () => session.id,
      getCwd: () => session.cwd,
    };
    return { cwd: session.cwd, hasUI: true, ui: this.#ui(), sessionManager, isIdle: () => true };
  }

  /** Call an event's handlers in the order of their registration, and return the last answer that is not empty. */
  async #fire(type, bag = {}) {
    const members = this.#face.events[type];
    let answer;
    if (members === undefined) return answer;
    const event = { type, ...pick(bag, members) };
    for (const handler of this.#handlers.get(type) ?? []) {
      answer = (await this.#calls.call(type, handler, event, this.#context())) ?? answer;
    }
    return answer;
  }

  async perform(step) {
    const performer = performerOf(STEPS, step);
    const opens = ["start", "resume", "restart_host"].includes(step.step);
    if (this.#session === undefined ? !opens : step.session !== this.#sessionName) {
      const open = this.#session === undefined ? "none" : JSON.stringify(this.#sessionName);
      const words = `${this.#face.harness} has one session in a program, in this one ${open} is open`;
      throw new StepError(`${words}, and not ${JSON.stringify(step.session)}: write processes = "session" in the settings`);
    }
    this.#sessionName = step.session;
    let result;
    try {
      result = await performer.call(this, step);
    } finally {
      if (step.step === "tool" && !step.more) await this.#endTurn();
    }
    return { session: step.session, key: this.#session?.id, ...result, calls: this.#calls.take() };
  }

  async start(step) {
    this.#session = new Session(this.#face, step.project ?? NO_PROJECT);
    await this.#fire("session_start", { reason: "startup" });
    return { opened: true };
  }

  /** Pass the user's text through the handlers of `input`, which may change it; undefined if one has handled it itself. */
  async #filterInput(original, images) {
    const members = this.#face.events.input;
    const handlers = members === undefined ? [] : (this.#handlers.get("input") ?? []);
    const byAction = this.#face.input_answers === "action";
    let text = original;
    for (const handler of handlers) {
      const event = { type: "input", ...pick({ text, images, source: "interactive" }, members) };
      const answer = await this.#calls.call("input", handler, event, this.#context());
      if (byAction ? answer?.action === "handled" : answer?.handled) return undefined;
      if (byAction ? answer?.action === "transform" : answer?.text !== undefined) text = answer.text;
    }
    return text;
  }

  async prompt(step) {
    const images = this.#imagesOf(step);
    const text = await this.#filterInput(step.text, images);
    if (text === undefined) {
      // A text like a command may be a command of the extension.
      if (!step.text.startsWith("/")) this.#calls.block();
      return { turn: false };
    }
    const about = { prompt: text, images, systemPrompt: SYSTEM_PROMPT, systemPromptOptions: { cwd: this.#session.cwd } };
    const answer = await this.#fire("before_agent_start", about);
    this.#addText("user", text, images);
    if (answer?.message !== undefined) this.#session.add({ type: "custom_message", ...answer.message });
    await this.#fire("agent_start");
    await this.#fire("turn_start", { turnIndex: 0, timestamp: Date.now() });
    const earlier = {
      "before_agent_start.systemPrompt": answer?.systemPrompt?.replace(SYSTEM_PROMPT, "").trim(),
      "before_agent_start.message": textOf(answer?.message?.content),
    };
    const { request, added } = await this.#fireContext(earlier);
    await modelTurn(step.session, text === step.text ? request : { said: text, ...request });
    this.#turn = { reply: step.reply ?? "Understood.", session: step.session, index: 0 };
    if (!step.more) await this.#endTurn();
    const injected = [answer?.systemPrompt?.replace(SYSTEM_PROMPT, ""), answer?.message?.content, added].filter(Boolean);
    return { turn: true, injected: injected.join("\n").trim() };
  }

  /** Begin the next turn of the agent's run, with a tool's result; return what the kit records of its request. */
  async #continueTurn() {
    if (this.#turn === undefined) return;
    this.#turn.index += 1;
    await this.#fire("turn_end", { turnIndex: this.#turn.index - 1, message: this.#session.messages.at(-1), toolResults: [] });
    const next = [
      ["context"],
      ["turn_start", { turnIndex: this.#turn.index, timestamp: Date.now() }],
    ];
    const inOrder = this.#face.starts_a_turn_before_its_context ? next.reverse() : next;
    let request;
    for (const [event, bag] of inOrder) {
      if (event === "context") ({ request } = await this.#fireContext());
      else await this.#fire(event, bag);
    }
    return request;
  }

  /**
   * Let the extension change the messages of the next request. Return what the kit records of that request, and the
   * text that was `added`. `earlier` has the texts that the extension gave before.
   */
  async #fireContext(earlier = {}) {
    const messages = this.#session.messages;
    const answer = (await this.#fire("context", { messages }))?.messages;
    const changed = Array.isArray(answer) ? answer : [];
    // An added message may have the time of an earlier one, so each of those is matched only once.
    const unmatched = this.#session.messages;
    const added = [];
    const newest = unmatched.findLast(({ role }) => role === "user");
    let said = {};
    for (const { role, timestamp, content } of changed) {
      const place = unmatched.findIndex((known) => known.role === role && known.timestamp === timestamp);
      const [known] = place < 0 ? [] : unmatched.splice(place, 1);
      if (known === undefined) added.push(textOf(content));
      else if (known === newest && textOf(content) !== textOf(known.content)) said = { said: textOf(content) };
    }
    if (Array.isArray(answer) && unmatched.includes(newest)) {
      // An extension that leaves the user's message out may have put another one with the same words in its place.
      const place = added.findIndex((text) => text.includes(textOf(newest.content)));
      said = { said: place < 0 ? "" : added.splice(place, 1)[0] };
    }
    return { request: { ...said, given: givenRows({ ...earlier, context: added }) }, added: added.join("\n") };
  }

  async #endTurn() {
    if (this.#turn === undefined) return;
    const { reply, index } = this.#turn;
    this.#turn = undefined;
    this.#addText("assistant", reply);
    const messages = this.#session.messages;
    await this.#fire("turn_end", { turnIndex: index, message: messages.at(-1), toolResults: [] });
    await this.#fire("agent_end", { messages });
  }

  /** The images attached to a prompt, in the host's form; undefined if there are none. */
  #imagesOf({ attached = [] }) {
    const unknown = attached.filter((kind) => !this.#face.attachments?.includes(kind));
    if (unknown.length > 0) throw new Skipped(`the host is not known to attach ${unknown.join(" and ")}`);
    const images = attached.map(() => ({ type: "image", data: PIXEL, mimeType: "image/png" }));
    return images.length > 0 ? images : undefined;
  }

  #addText(role, text, images = []) {
    const message = { role, content: [{ type: "text", text }, ...images], timestamp: Date.now() };
    this.#addMessage(role === "assistant" ? { ...message, ...MODEL, stopReason: "stop" } : message);
  }

  #addMessage(message) {
    this.#session.uncompacted = (this.#session.uncompacted ?? 0) + 1;
    this.#session.add({ type: "message", message });
  }

  /** Add the model's call of a tool and the tool's result, a message each. */
  #addToolCall(toolName, toolCallId, input, result) {
    if (this.#turn === undefined) return;
    const content = [{ type: "toolCall", id: toolCallId, name: toolName, arguments: input }];
    this.#addMessage({ role: "assistant", content, timestamp: Date.now(), ...MODEL, stopReason: "toolUse" });
    const { content: output = [], details, isError = false } = result ?? {};
    this.#addMessage({ role: "toolResult", toolCallId, toolName, content: output, details, isError, timestamp: Date.now() });
  }

  async tool(step) {
    try {
      return await this.#useTool(step);
    } catch (error) {
      if (!(error instanceof Skipped)) throw error;
      // The model calls a tool of the host instead.
      const { name, input, text } = HOST_TOOL_CALL;
      this.#addToolCall(name, newCallId(), input, { content: [{ type: "text", text }] });
      return { skipped: error.message, ...(await this.#continueTurn()) };
    }
  }

  async #useTool(step) {
    const schemaOf = (name) => this.#tools.has(name) ? (this.#tools.get(name).parameters ?? null) : undefined;
    let request;
    const answer = await useTool(step, schemaOf, this.#options.tools, [...this.#tools.keys()], async (toolName, input) => {
      const toolCallId = newCallId();
      await this.#fire("tool_call", { toolName, toolCallId, input });
      const run = () =>
        this.#tools.get(toolName).execute(toolCallId, input, new AbortController().signal, () => {}, this.#context());
      const result = await this.#calls.tool(toolName, run, this.#registry.toolsThrow);
      await this.#fire("tool_result", { toolName, toolCallId, input, isError: false, ...result });
      this.#addToolCall(toolName, toolCallId, input, result);
      request = await this.#continueTurn();
      return result;
    });
    return { ...answer, ...request };
  }

  async preCompaction() {
    compaction.begin(this.#session);
    const messages = this.#session.messages;
    const preparation = { messagesToSummarize: messages, tokensBefore: 1000, firstKeptEntryId: this.#session.entries.at(-1)?.id };
    const bag = { preparation, branchEntries: structuredClone(this.#session.entries), sessionId: this.#session.id, messages };
    bag.signal = new AbortController().signal;
    for (const event of this.#face.before_compaction) {
      if (!(await this.#fire(event, bag))?.cancel) continue;
      this.#session.compacting = false;
      throw new Skipped(`the extension cancels the compaction, in ${event}`);
    }
    return {};
  }

  async #endCompaction(step) {
    compaction.end(this.#session);
    this.#session.add({ type: "compaction", summary: step.summary ?? "", tokensBefore: 1000 });
    await this.#fire("session_compact", { compactionEntry: structuredClone(this.#session.entries.at(-1)), fromExtension: false });
  }

  async compactionComplete(step) {
    await this.#endCompaction(step);
    await this.#continueAfterCompaction();
    return {};
  }

  /** After a compaction that the host began itself, play its request to the model to continue; the model's answer is empty. */
  async #continueAfterCompaction() {
    const message = this.#face.after_compaction;
    if (message === undefined) return;
    const { role, text: prompt } = message;
    const answer = await this.#fire("before_agent_start", { prompt, systemPrompt: SYSTEM_PROMPT });
    this.#addMessage({ role, content: [{ type: "text", text: prompt }], attribution: "agent", timestamp: Date.now() });
    if (answer?.message !== undefined) this.#session.add({ type: "custom_message", ...answer.message });
    await this.#fire("agent_start");
    await this.#fire("turn_start", { turnIndex: 0, timestamp: Date.now() });
    await this.#fireContext();
    this.#addMessage({ role: "assistant", content: [], timestamp: Date.now(), ...MODEL, stopReason: "stop" });
    const messages = this.#session.messages;
    await this.#fire("turn_end", { turnIndex: 0, message: messages.at(-1), toolResults: [] });
    await this.#fire("agent_end", { messages });
  }

  async compact(step) {
    await this.preCompaction();
    await modelTurn(step.session);
    if (step.by_itself) return this.compactionComplete(step);
    await this.#endCompaction(step);
    return {};
  }

  async clear() {
    const before = this.#session;
    const after = new Session(this.#face, before.cwd);
    await this.#replace(before, after, "new");
    return { opened: true };
  }

  /** The user continues in a copy of the conversation, which is a new session. */
  async fork() {
    const before = this.#session;
    const after = new Session(this.#face, before.cwd);
    after.entries = structuredClone(before.entries);
    await this.#replace(before, after, "fork");
    return { opened: true };
  }

  /** The user returns to the session that a clear or a fork has left. */
  async reopen() {
    const after = this.#previous;
    if (after === undefined) throw new Skipped("this program has no earlier session to return to");
    await this.#replace(this.#session, after, "resume");
    return { opened: true };
  }

  /** Put another session in the place of the open one, in the running program. */
  async #replace(before, after, reason) {
    const previousSessionFile = before.file;
    this.#previous = before;
    if (this.#face.replaces_by === "session_switch") {
      this.#session = after;
      const forked = reason === "fork" ? this.#face.forks_by : undefined;
      await this.#fire(forked ?? "session_switch", { reason, previousSessionFile });
      return;
    }
    await this.#fire("session_shutdown", { reason, targetSessionFile: after.file });
    this.#session = after;
    for (let times = 0; times < this.#face.starts_of_a_replaced_session; times += 1) {
      await this.#fire("session_start", { reason, previousSessionFile });
    }
  }

  async resume(step) {
    this.#session = Session.find(this.#face, step.project ?? NO_PROJECT, step.key);
    // A program that is started with a stored session reports it as it would a new one.
    await this.#fire("session_start", { reason: "startup" });
    return { opened: true };
  }

  async end() {
    await this.#fire("session_shutdown", { reason: "quit" });
    const key = this.#session.id;
    this.#session = undefined;
    return { key, ended: true };
  }

  async close() {
    if (this.#session !== undefined) await this.end();
  }
}

const STEPS = {
  start: Program.prototype.start,
  prompt: Program.prototype.prompt,
  tool: Program.prototype.tool,
  compact: Program.prototype.compact,
  pre_compaction: Program.prototype.preCompaction,
  compaction_complete: Program.prototype.compactionComplete,
  clear: Program.prototype.clear,
  fork: Program.prototype.fork,
  reopen: Program.prototype.reopen,
  restart_host: Program.prototype.resume,
  resume: Program.prototype.resume,
  end: Program.prototype.end,
};

export async function open(face, connector, options) {
  const program = new Program(face, options);
  await program.load(connector);
  return program;
}
