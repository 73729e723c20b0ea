// pi and oh-my-pi as an extension sees them: one program, one session at a time, the session in a file. The
// agent is what the program was started with. What differs between releases stands in the face.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { randomUUID } from "node:crypto";

import { givenFor, modelTurn, NotLoaded, Skipped, StepError } from "./protocol.mjs";
import { Registry } from "./registry.mjs";
import { Calls, compaction, listed, OWN_CALL, performerOf, pick, PIXEL, useTool } from "./turns.mjs";

const MODEL = { provider: "scripted", model: "scripted-model", api: "scripted" };
const NO_PROJECT = "/workspace";
const SYSTEM_PROMPT = "You are an expert coding assistant.";

const newCall = () => `call_${randomUUID().slice(0, 8)}`;

/** The words of a message's content. */
const textOf = (content) => (typeof content === "string" ? content : [content ?? []].flat().map((part) => part?.text ?? "").join("\n"));

class Session {
  constructor(face, cwd, found) {
    this.cwd = cwd;
    this.id = found?.id ?? randomUUID();
    this.entries = found?.entries ?? [];
    this.file = found?.file ?? join(Session.folder(face, cwd), `${new Date().toISOString().replaceAll(/[:.]/g, "-")}_${this.id}.jsonl`);
  }

  /** The folder of a project's sessions, made when it is not there. */
  static folder(face, cwd) {
    const folder = join(homedir(), face.session_folder, `--${cwd.replace(/^\//, "").replaceAll("/", "-")}--`);
    mkdirSync(folder, { recursive: true });
    return folder;
  }

  /** The session that was written under an id before, or a new one where none was. */
  static find(face, cwd, id) {
    const folder = Session.folder(face, cwd);
    const name = readdirSync(folder).find((one) => one.endsWith(`_${id}.jsonl`));
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

  /** Entries reach the disk with the first answer of the model, not before. */
  add(entry) {
    const parentId = this.entries.at(-1)?.id ?? null;
    this.entries.push({ id: randomUUID().slice(0, 8), parentId, timestamp: new Date().toISOString(), ...entry });
    if (!this.entries.some((one) => one.message?.role === "assistant")) return;
    writeFileSync(this.file, [this.header, ...this.entries].map((one) => `${JSON.stringify(one)}\n`).join(""));
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
  #name;
  #left;
  #turn;

  constructor(face, options) {
    this.#face = face;
    this.#options = options;
    this.#registry = new Registry(face, options.tools);
    this.#calls = new Calls(face.budgets_ms, { catches: true });
  }

  get about() {
    const { harness, version, attachments } = this.#face;
    const steps = [...listed(STEPS), ...(attachments ? ["attached_prompt"] : [])];
    const taken = { tools: [...this.#tools.keys()], events: [...this.#handlers.keys()], steps };
    return { harness, face: `${harness}-${version}`, ...taken, installed: this.#registry.refused, registered: [this.#registered] };
  }

  async load(connector) {
    const extension = connector.default ?? connector;
    const factory = this.#registry.registrar(extension);
    if (factory === undefined) throw new NotLoaded(this.#registry.noExport ?? "the module's default export is not a function of (pi)");
    const taken = { tools: 0, refused: 0, others: 0 };
    const ui = this.#ui();
    const api = {
      ui,
      on: (event, handler) => this.#handlers.set(event, [...(this.#handlers.get(event) ?? []), handler]),
      registerFlag: (name, flag) => {
        taken.others += 1;
        this.#flags.set(name, flag.default);
      },
      getFlag: (name) => this.#flags.get(name),
      registerCommand: () => void (taken.others += 1),
      registerShortcut: () => void (taken.others += 1),
      sendMessage: () => {},
      appendEntry: (customType, data) => this.#session?.add({ type: "custom", customType, data }),
    };
    if (this.#face.tools) {
      api.registerTool = (tool) => {
        if (this.#registry.takesTool(tool?.name, tool, this.#tools)) this.#tools.set(tool.name, tool);
        else taken.refused += 1;
      };
    }
    await NotLoaded.guard("the extension threw", () => factory(api));
    const events = [...this.#handlers.keys()];
    const handlers = events.filter((event) => this.#registry.knows(event, events));
    const count = (names) => names.reduce((sum, event) => sum + this.#handlers.get(event).length, 0);
    this.#registered = { ...taken, tools: this.#tools.size, handlers: count(handlers), refused: taken.refused + count(events) - count(handlers) };
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

  /** Handlers in the order of their registration; what the last of them that says something says counts. */
  async #fire(type, bag = {}) {
    const members = this.#face.events[type];
    let said;
    if (members === undefined) return said;
    const event = { type, ...pick(bag, members) };
    for (const handler of this.#handlers.get(type) ?? []) {
      said = (await this.#calls.call(type, handler, event, this.#context())) ?? said;
    }
    return said;
  }

  async perform(step) {
    const performer = performerOf(STEPS, step);
    const opens = ["start", "resume", "restart_host"].includes(step.step);
    if (this.#session === undefined ? !opens : step.session !== this.#name) {
      const open = this.#session === undefined ? "none" : JSON.stringify(this.#name);
      const words = `${this.#face.harness} has one session in a program, in this one ${open} is open`;
      throw new StepError(`${words}, and not ${JSON.stringify(step.session)}: write processes = "session" in the settings`);
    }
    this.#name = step.session;
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

  /** What the extensions leave of the user's words, one after the other; undefined where one of them dealt with them. */
  async #heard(words, images) {
    const members = this.#face.events.input;
    const handlers = members === undefined ? [] : (this.#handlers.get("input") ?? []);
    const byAction = this.#face.input_answers === "action";
    let text = words;
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
    const text = await this.#heard(step.text, images);
    if (text === undefined) {
      // A command may be the extension's own.
      if (!step.text.startsWith("/")) this.#calls.block();
      return { turn: false };
    }
    const about = { prompt: text, images, systemPrompt: SYSTEM_PROMPT, systemPromptOptions: { cwd: this.#session.cwd } };
    const said = await this.#fire("before_agent_start", about);
    this.#say("user", text, images);
    if (said?.message !== undefined) this.#session.add({ type: "custom_message", ...said.message });
    await this.#fire("agent_start");
    await this.#fire("turn_start", { turnIndex: 0, timestamp: Date.now() });
    const begun = {
      "before_agent_start.systemPrompt": said?.systemPrompt?.replace(SYSTEM_PROMPT, "").trim(),
      "before_agent_start.message": textOf(said?.message?.content),
    };
    const { told, seen } = await this.#asked(begun);
    await modelTurn(step.session, text === step.text ? told : { said: text, ...told });
    this.#turn = { reply: step.reply ?? "Understood.", session: step.session, index: 0 };
    if (!step.more) await this.#endTurn();
    const injected = [said?.systemPrompt?.replace(SYSTEM_PROMPT, ""), said?.message?.content, seen].filter(Boolean);
    return { turn: true, injected: injected.join("\n").trim() };
  }

  /** The model is told what a tool gave back: another turn of the same run of the agent. */
  async #goOn() {
    if (this.#turn === undefined) return;
    this.#turn.index += 1;
    await this.#fire("turn_end", { turnIndex: this.#turn.index - 1, message: this.#session.messages.at(-1), toolResults: [] });
    const next = [
      ["context"],
      ["turn_start", { turnIndex: this.#turn.index, timestamp: Date.now() }],
    ];
    const inOrder = this.#face.starts_a_turn_before_its_context ? next.reverse() : next;
    let told;
    for (const [event, bag] of inOrder) {
      if (event === "context") ({ told } = await this.#asked());
      else await this.#fire(event, bag);
    }
    return told;
  }

  /** What an extension put among the messages of the next request, with what it gave before the turn `begun`. */
  async #asked(begun = {}) {
    const messages = this.#session.messages;
    const heard = (await this.#fire("context", { messages }))?.messages ?? [];
    // A message that is added may be of the very millisecond of one that was there: each of those is met once.
    const left = this.#session.messages;
    const added = [];
    const newest = left.findLast((one) => one.role === "user");
    let said = {};
    for (const one of heard) {
      const place = left.findIndex((known) => known.role === one.role && known.timestamp === one.timestamp);
      const [known] = place < 0 ? [] : left.splice(place, 1);
      if (known === undefined) added.push(textOf(one.content));
      else if (known === newest && textOf(one.content) !== textOf(known.content)) said = { said: textOf(one.content) };
    }
    return { told: { ...said, given: givenFor({ ...begun, context: added }) }, seen: added.join("\n") };
  }

  async #endTurn() {
    if (this.#turn === undefined) return;
    const { reply, index } = this.#turn;
    this.#turn = undefined;
    this.#say("assistant", reply);
    const messages = this.#session.messages;
    await this.#fire("turn_end", { turnIndex: index, message: messages.at(-1), toolResults: [] });
    await this.#fire("agent_end", { messages });
  }

  /** What is attached to a prompt, as the host hands it over; undefined without. */
  #imagesOf({ attached = [] }) {
    const unknown = attached.filter((kind) => !this.#face.attachments?.includes(kind));
    if (unknown.length > 0) throw new Skipped(`the host is not known to attach ${unknown.join(" and ")}`);
    const images = attached.map(() => ({ type: "image", data: PIXEL, mimeType: "image/png" }));
    return images.length > 0 ? images : undefined;
  }

  #say(role, text, images = []) {
    const said = { content: [{ type: "text", text }, ...images], timestamp: Date.now() };
    this.#keep(role === "assistant" ? { role, ...said, ...MODEL, stopReason: "stop" } : { role, ...said });
  }

  #keep(message) {
    this.#session.said = (this.#session.said ?? 0) + 1;
    this.#session.add({ type: "message", message });
  }

  /** The model's call of a tool, and what the tool gave back: a message each. */
  #keepCall(toolName, toolCallId, input, result) {
    if (this.#turn === undefined) return;
    const content = [{ type: "toolCall", id: toolCallId, name: toolName, arguments: input }];
    this.#keep({ role: "assistant", content, timestamp: Date.now(), ...MODEL, stopReason: "toolUse" });
    const { content: given = [], details, isError = false } = result ?? {};
    this.#keep({ role: "toolResult", toolCallId, toolName, content: given, details, isError, timestamp: Date.now() });
  }

  async tool(step) {
    try {
      return await this.#useTool(step);
    } catch (trouble) {
      if (!(trouble instanceof Skipped)) throw trouble;
      // The model calls a tool of the host's own in its place.
      const { name, input, text } = OWN_CALL;
      this.#keepCall(name, newCall(), input, { content: [{ type: "text", text }] });
      return { skipped: trouble.message, ...(await this.#goOn()) };
    }
  }

  async #useTool(step) {
    const schemaOf = (name) => this.#tools.has(name) ? (this.#tools.get(name).parameters ?? null) : undefined;
    let told;
    const answer = await useTool(step, schemaOf, this.#options.tools, [...this.#tools.keys()], async (toolName, input) => {
      const toolCallId = newCall();
      await this.#fire("tool_call", { toolName, toolCallId, input });
      const run = () =>
        this.#tools.get(toolName).execute(toolCallId, input, new AbortController().signal, () => {}, this.#context());
      const result = await this.#calls.tool(toolName, run, this.#registry.toolsThrow);
      await this.#fire("tool_result", { toolName, toolCallId, input, isError: false, ...result });
      this.#keepCall(toolName, toolCallId, input, result);
      told = await this.#goOn();
      return result;
    });
    return { ...answer, ...told };
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

  async #compacted(step) {
    compaction.end(this.#session);
    this.#session.add({ type: "compaction", summary: step.summary ?? "", tokensBefore: 1000 });
    await this.#fire("session_compact", { compactionEntry: structuredClone(this.#session.entries.at(-1)), fromExtension: false });
  }

  async compactionComplete(step) {
    await this.#compacted(step);
    await this.#goOnAfterCompaction();
    return {};
  }

  /** The host asks its model to go on after a compaction of its own, not after the user's; the model adds nothing. */
  async #goOnAfterCompaction() {
    const message = this.#face.after_compaction;
    if (message === undefined) return;
    const { role, text: prompt } = message;
    const said = await this.#fire("before_agent_start", { prompt, systemPrompt: SYSTEM_PROMPT });
    this.#keep({ role, content: [{ type: "text", text: prompt }], attribution: "agent", timestamp: Date.now() });
    if (said?.message !== undefined) this.#session.add({ type: "custom_message", ...said.message });
    await this.#fire("agent_start");
    await this.#fire("turn_start", { turnIndex: 0, timestamp: Date.now() });
    await this.#asked();
    this.#keep({ role: "assistant", content: [], timestamp: Date.now(), ...MODEL, stopReason: "stop" });
    const messages = this.#session.messages;
    await this.#fire("turn_end", { turnIndex: 0, message: messages.at(-1), toolResults: [] });
    await this.#fire("agent_end", { messages });
  }

  async compact(step) {
    await this.preCompaction();
    await modelTurn(step.session);
    if (step.by_itself) return this.compactionComplete(step);
    await this.#compacted(step);
    return {};
  }

  async clear() {
    const before = this.#session;
    const after = new Session(this.#face, before.cwd);
    await this.#replaced(before, after, "new");
    return { opened: true };
  }

  /** The user goes on in a copy of the conversation, which is a session of its own. */
  async fork() {
    const before = this.#session;
    const after = new Session(this.#face, before.cwd);
    after.entries = structuredClone(before.entries);
    await this.#replaced(before, after, "fork");
    return { opened: true };
  }

  /** The user goes back to the session that a clear or a fork has left. */
  async reopen() {
    const after = this.#left;
    if (after === undefined) throw new Skipped("this program has no earlier session to return to");
    await this.#replaced(this.#session, after, "resume");
    return { opened: true };
  }

  /** One session takes the place of another in the running program. */
  async #replaced(before, after, reason) {
    const previousSessionFile = before.file;
    this.#left = before;
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
    // A program that is started with a session of before begins it like any other.
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
