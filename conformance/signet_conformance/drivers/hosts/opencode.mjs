// Plays OpenCode for a plugin: one server with many sessions, hooks by name, one stream of events. All sessions have the
// agent that the server was started with.

import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";

import { attachmentParts, identifier, MODEL, modelMessage, partOf, userMessage } from "./opencode_messages.mjs";
import { Plugins } from "./opencode_plugins.mjs";
import { givenRows, modelTurn, Skipped } from "./protocol.mjs";
import { Registry } from "./registry.mjs";
import {
  Calls, compaction, HOST_TOOL_CALL, performerOf, pick, Sessions, skipHarnessCommand, stepNames, toolText, useTool,
} from "./turns.mjs";

const SYSTEM_PROMPT = "You are opencode, an interactive CLI tool.";

/** The file of a session. */
const fileOf = (id) => join(homedir(), ".local", "share", "opencode", "storage", `${id}.json`);

class Server {
  #face;
  #options;
  #calls;
  #plugins;
  #registry;
  #sessions = new Sessions((step) => this.#readSession(step));
  #messages = new Map();

  constructor(face, connector, options) {
    this.#face = face;
    this.#options = options;
    this.#registry = new Registry(face, options.tools);
    this.#calls = new Calls(face.budgets_ms);
    this.#plugins = new Plugins(connector, this.#registry, this.#calls, (id) => this.#messages.get(id));
  }

  get about() {
    // A message that the user stops is kept, and reaches the model with the next one.
    const steps = [...stepNames(STEPS), "stopped_prompt", ...(this.#face.attachments ? ["attached_prompt"] : [])];
    return { harness: "opencode", face: `opencode-${this.#face.version}`, steps };
  }

  /**
   * Run a hook of each plugin over `output`, and return it as they changed it. OpenCode catches nothing in the hooks of
   * a turn: if one throws, the turn is lost, and this returns undefined. OpenCode keeps using the object that it handed
   * over. If a plugin replaces a member, OpenCode takes only a text, or the texts for a compaction.
   */
  async #hook(session, name, bag, output, { ofTurn = false } = {}) {
    const members = this.#face.hooks[name];
    for (const { [name]: handler } of await this.#plugins.hooksIn(session.directory)) {
      if (handler === undefined || members === undefined) continue;
      await this.#calls.call(name, handler, pick(bag, members), output);
      if (ofTurn && this.#calls.lost()) return undefined;
    }
    return output;
  }

  async #event(session, type, more = {}) {
    const properties = { sessionID: session.id, ...more };
    const event = { id: identifier("evt"), type, properties };
    for (const { event: handler } of await this.#plugins.hooksIn(session.directory)) {
      if (handler !== undefined) await this.#calls.call(`event ${type}`, handler, { event });
    }
  }

  async perform(step) {
    const performer = performerOf(STEPS, step);
    let result;
    try {
      result = await performer.call(this, step);
    } finally {
      if (step.step === "tool" && !step.more) await this.#endTurn(this.#sessions.of(step));
      this.#writeSession(this.#sessions.get(step.session));
    }
    return { session: step.session, ...result, calls: this.#calls.take() };
  }

  /** Write a session and its messages to disk, as the server does. */
  #writeSession(session) {
    if (session === undefined || !this.#messages.has(session.id)) return;
    const { id, directory, created, title, parentID, uncompacted } = session;
    const messages = this.#messages.get(id);
    mkdirSync(dirname(fileOf(id)), { recursive: true });
    writeFileSync(fileOf(id), JSON.stringify({ session: { id, directory, created, title, parentID, uncompacted }, messages }));
  }

  /** Read a session that an earlier server wrote to disk; undefined if there is none. */
  #readSession({ key }) {
    if (key === undefined || !existsSync(fileOf(key))) return undefined;
    const { session, messages } = JSON.parse(readFileSync(fileOf(key), "utf8"));
    this.#messages.set(session.id, messages);
    return session;
  }

  #info(session) {
    const { id, directory, title, parentID } = session;
    const parent = parentID === undefined ? {} : { parentID };
    return { id, projectID: "global", directory, ...parent, title, version: this.#face.version, time: { created: session.created } };
  }

  async start(step) {
    const session = { id: identifier("ses"), directory: step.project ?? "/workspace", created: Date.now() };
    // A sub-agent works in a session of its own, below the one that called it.
    if (step.parent !== undefined) session.parentID = this.#sessions.of({ session: step.parent }).id;
    this.#sessions.set(step.session, session);
    this.#messages.set(session.id, []);
    await this.#event(session, "session.created", { info: this.#info(session) });
    return { key: session.id, opened: true };
  }

  async prompt(step) {
    const session = this.#sessions.of(step);
    skipHarnessCommand(step);
    const { id: sessionID } = session;
    const message = userMessage(sessionID);
    const attached = (step.attached ?? []).flatMap((kind) => attachmentParts(kind, session.directory));
    const written = step.text === "" ? [] : [{ type: "text", text: step.text }];
    const parts = [...attached, ...written].map(({ type, ...members }) => partOf(message, type, members));
    const own = new Set(parts.slice(0, attached.length));
    const bag = { sessionID, model: MODEL, messageID: message.id };
    const output = await this.#hook(session, "chat.message", bag, { message, parts }, { ofTurn: true });
    if (output === undefined) {
      await this.#fail(session, this.#calls.lastError());
      return { turn: false };
    }
    this.#messages.get(sessionID).push({ info: message, parts });
    const texts = parts.filter((part) => !own.has(part)).map((part) => part?.text);
    const text = texts.filter((each) => typeof each === "string").join("\n\n");
    session.changed = text === step.text ? undefined : text;
    session.uncompacted = (session.uncompacted ?? 0) + 1;
    await this.#event(session, "message.updated", { info: message });
    await this.#busy(session);
    if (step.stopped) {
      await this.#idle(session);
      return { turn: false };
    }
    const system = await this.#callModel(session, step.session);
    if (system === undefined) return { turn: false };
    session.turn = { reply: step.reply ?? "Understood.", name: step.session };
    if (!step.more) await this.#endTurn(session);
    return { turn: true, injected: system.filter((text) => text !== SYSTEM_PROMPT).join("\n") };
  }

  /** The system texts of a request; undefined if a plugin's hook fails, or leaves something else in a text's place. */
  async #system(session, ofTurn) {
    const model = { id: MODEL.modelID, providerID: MODEL.providerID };
    const system = [SYSTEM_PROMPT];
    const bag = { sessionID: session.id, model };
    const output = await this.#hook(session, "experimental.chat.system.transform", bag, { system }, { ofTurn });
    if (output === undefined) return undefined;
    // Several texts of plugins are joined, and anything joined is a text.
    const joins = system.length > 2 && system[0] === SYSTEM_PROMPT;
    const texts = joins ? [SYSTEM_PROMPT, system.slice(1).join("\n")] : system;
    if (texts.every((text) => typeof text === "string")) return texts;
    if (ofTurn) this.#calls.refuse("Invalid prompt: The messages do not match the ModelMessage[] schema.");
    return undefined;
  }

  /** What the kit records of the request: the user's text if a plugin changed it, and the plugin's system texts, also those for the title. */
  #recordOf(session, system) {
    const given = (texts) => givenRows({ "experimental.chat.system.transform": texts.filter((text) => text !== SYSTEM_PROMPT) });
    const { titled, changed } = session;
    Object.assign(session, { titled: undefined, changed: undefined });
    const beside = titled === undefined ? {} : { beside: [{ for: "title", given: given(titled) }] };
    return { ...beside, ...(changed === undefined ? {} : { said: changed }), given: given(system) };
  }

  /** The title generator asks the model beside the first turn, so it uses up what a plugin has ready for the next call. */
  async #title(session) {
    if (session.title !== undefined) return;
    const asks = this.#face.answers?.beside?.title ?? true;
    if (asks) session.titled = await this.#system(session, false);
    session.title = "A session";
    await this.#event(session, "session.updated", { info: this.#info(session) });
  }

  /** Run the hooks that precede each call of the model, and return the system texts; undefined if the turn is lost. */
  async #prepare(session, ofTurn) {
    await this.#busy(session);
    const messages = structuredClone(this.#messages.get(session.id));
    const output = await this.#hook(session, "experimental.chat.messages.transform", {}, { messages }, { ofTurn });
    if (output === undefined) {
      const error = this.#calls.lastError();
      await this.#idle(session);
      await this.#fail(session, error);
      await this.#title(session);
      return undefined;
    }
    await this.#title(session);
    await this.#busy(session);
    const system = await this.#system(session, ofTurn);
    if (system === undefined && ofTurn) {
      await this.#fail(session, this.#calls.lastError());
      // Once for the call of the model, once for the turn.
      await this.#idle(session);
      await this.#idle(session);
    }
    return system;
  }

  async #callModel(session, name, { ofTurn = true, given = [] } = {}) {
    const system = await this.#prepare(session, ofTurn);
    if (system === undefined) return system;
    const record = this.#recordOf(session, system);
    await modelTurn(name, { ...record, given: [...record.given, ...given] });
    return system;
  }

  async #answer(session, text, more = {}) {
    const { id: sessionID } = session;
    const info = modelMessage(sessionID, more);
    const textPart = partOf(info, "text", { text });
    const bag = { sessionID, messageID: info.id, partID: textPart.id };
    const output = await this.#hook(session, "experimental.text.complete", bag, { text });
    const parts = [partOf(info, "step-start"), { ...textPart, text: output.text }, partOf(info, "step-finish", { reason: "stop" })];
    this.#messages.get(sessionID).push({ info, parts });
    await this.#event(session, "message.updated", { info });
  }

  /** Add the model's call of a tool and the tool's answer as one message. */
  #addToolCall(session, tool, callID, input, output) {
    if (session.turn === undefined) return;
    const info = modelMessage(session.id);
    const state = { status: "completed", input, output, title: "", metadata: {}, time: { start: Date.now(), end: Date.now() } };
    const call = partOf(info, "tool", { callID, tool, state });
    const parts = [partOf(info, "step-start"), call, partOf(info, "step-finish", { reason: "tool-calls" })];
    this.#messages.get(session.id).push({ info, parts });
  }

  /** Sent when a turn begins, before and at each call of the model, and when the last call has ended. */
  async #busy(session) {
    await this.#event(session, "session.status", { status: { type: "busy" } });
  }

  /** The user's turn is lost. */
  async #fail(session, message) {
    await this.#event(session, "session.error", { error: { name: "UnknownError", data: { message } } });
  }

  async #idle(session) {
    await this.#event(session, "session.status", { status: { type: "idle" } });
    await this.#event(session, "session.idle");
  }

  async #endTurn(session) {
    if (session.turn === undefined) return;
    const { reply } = session.turn;
    session.turn = undefined;
    await this.#answer(session, reply);
    await this.#busy(session);
    await this.#idle(session);
  }

  async #useTool(session, step) {
    // The host's own tool for skills; a plugin gets its hooks as for any other tool.
    const skill = { execute: async () => "The skill is loaded." };
    const own = Object.assign({}, ...(await this.#plugins.hooksIn(session.directory)).map((hooks) => hooks.tool));
    const tools = { skill, ...own };
    // A plugin writes down the members of a tool's arguments, each with its schema.
    const schemaOf = (name) => tools[name] && (tools[name].args === undefined ? null : { properties: tools[name].args });
    return useTool(step, schemaOf, this.#options.tools, Object.keys(own), async (tool, args) => {
      const { id: sessionID } = session;
      const callID = identifier("call");
      await this.#hook(session, "tool.execute.before", { tool, sessionID, callID }, { args });
      const messageID = identifier("msg");
      const context = { sessionID, messageID, agent: "build", abort: new AbortController().signal, metadata: () => {} };
      const run = () => tools[tool].execute(args, { ...context, directory: session.directory, worktree: session.directory });
      const result = await this.#calls.tool(tool, run, this.#registry.toolsThrow);
      const text = result?.isError ? toolText(result) : result?.output;
      const output = { title: "", output: typeof result === "string" ? result : (text ?? ""), metadata: result?.metadata ?? {} };
      await this.#hook(session, "tool.execute.after", { tool, sessionID, callID, args }, output);
      this.#addToolCall(session, tool, callID, args, output.output);
      return result?.isError ? result : output.output;
    });
  }

  async tool(step) {
    const session = this.#sessions.of(step);
    let answer;
    try {
      answer = await this.#useTool(session, step);
    } catch (error) {
      if (!(error instanceof Skipped)) throw error;
      // The model calls a tool of the host instead.
      this.#addToolCall(session, HOST_TOOL_CALL.name, identifier("call"), HOST_TOOL_CALL.input, HOST_TOOL_CALL.text);
      answer = { skipped: error.message };
    }
    // The turn continues with another call of the model, which gets the tool's answer.
    if (session.turn === undefined) return answer;
    const system = await this.#prepare(session, true);
    if (system === undefined) {
      session.turn = undefined;
      return answer;
    }
    return { ...answer, ...this.#recordOf(session, system) };
  }

  async preCompaction(step) {
    const session = this.#sessions.of(step);
    compaction.begin(session);
    await this.#busy(session);
    // The compaction is a message of the user without text.
    const info = userMessage(session.id);
    this.#messages.get(session.id).push({ info, parts: [partOf(info, "compaction", { auto: false })] });
    const output = { context: [], prompt: undefined };
    await this.#hook(session, "experimental.session.compacting", { sessionID: session.id }, output);
    session.guidance = [output.context, output.prompt].flat();
    return { context: output.context };
  }

  async compactionComplete(step) {
    const session = this.#sessions.of(step);
    compaction.end(session);
    const given = givenRows({ "experimental.session.compacting": session.guidance ?? [] });
    await this.#callModel(session, step.session, { ofTurn: false, given });
    await this.#answer(session, step.summary ?? "", { summary: true, mode: "compaction" });
    if (step.by_itself) this.#askToContinue(session);
    await this.#event(session, "session.compacted");
    if (step.by_itself) await this.#continue(session);
    await this.#busy(session);
    await this.#idle(session);
    return {};
  }

  /** Add the message by which the server asks the model to continue after a compaction that the server began. */
  #askToContinue(session) {
    if (this.#face.after_compaction === undefined) return;
    const { role, text } = this.#face.after_compaction;
    const info = userMessage(session.id, role);
    const part = partOf(info, "text", { metadata: { compaction_continue: true }, synthetic: true, text });
    this.#messages.get(session.id).push({ info, parts: [part] });
  }

  /** Let the model continue; its answer is empty. */
  async #continue(session) {
    if (this.#face.after_compaction === undefined || (await this.#prepare(session, true)) === undefined) return;
    const info = modelMessage(session.id);
    const parts = [partOf(info, "step-start"), partOf(info, "step-finish", { reason: "stop" })];
    this.#messages.get(session.id).push({ info, parts });
    await this.#event(session, "message.updated", { info });
  }

  async compact(step) {
    return { ...(await this.preCompaction(step)), ...(await this.compactionComplete(step)) };
  }

  /** The user begins a new session; the old one stays in the list. */
  async clear(step) {
    return this.start({ ...step, project: this.#sessions.of(step).directory });
  }

  /** The user continues in a copy of the conversation, which is a new session. */
  async fork(step) {
    const before = this.#sessions.of(step);
    const opened = await this.start({ ...step, project: before.directory });
    this.#messages.set(opened.key, structuredClone(this.#messages.get(before.id) ?? []));
    this.#sessions.of(step).title = before.title;
    return opened;
  }

  /** Opening an old session again fires no event for a plugin. */
  async resume(step) {
    const session = this.#sessions.of(step);
    if (!this.#messages.has(session.id)) this.#messages.set(session.id, []);
    return { key: session.id, opened: true };
  }

  /** A restarted server loads its plugins, and fires no event for its sessions. */
  async restartHost(step) {
    const session = this.#sessions.of(step);
    await this.#plugins.hooksIn(session.directory);
    return { key: session.id, opened: true };
  }

  async end(step) {
    const session = this.#sessions.of(step);
    // A session that was opened again is only left, without an event.
    if (step.resumed) return { key: session.id, ended: true };
    // The messages are removed before the event: what a plugin has not sent by then is lost.
    this.#messages.delete(session.id);
    rmSync(fileOf(session.id), { force: true });
    await this.#event(session, "session.deleted", { info: this.#info(session) });
    return { key: session.id, ended: true };
  }

  async close() {
    for (const hooks of this.#plugins.allHooks) await this.#calls.call("dispose", async () => hooks.dispose?.());
  }
}

const STEPS = {
  start: Server.prototype.start,
  prompt: Server.prototype.prompt,
  tool: Server.prototype.tool,
  compact: Server.prototype.compact,
  pre_compaction: Server.prototype.preCompaction,
  compaction_complete: Server.prototype.compactionComplete,
  clear: Server.prototype.clear,
  fork: Server.prototype.fork,
  resume: Server.prototype.resume,
  restart_host: Server.prototype.restartHost,
  end: Server.prototype.end,
};

export async function open(face, connector, options) {
  return new Server(face, connector, options);
}
