// OpenCode as a plugin sees it: one server, many sessions, hooks by name, one stream of events. All sessions have the
// agent that the server was started with.

import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";

import { givenRows, modelTurn, NotLoaded, Skipped, reportAbout } from "./protocol.mjs";
import { Registry } from "./registry.mjs";
import { Calls, compaction, skipHarnessCommand, stepNames, HOST_TOOL_CALL, performerOf, PIXEL, pick, Sessions, toolText, useTool } from "./turns.mjs";

const MODEL = { providerID: "scripted", modelID: "scripted-model" };
const SYSTEM_PROMPT = "You are opencode, an interactive CLI tool.";

/**
 * The plugins of a module: the server of its default export, or else each function that it exports, once.
 *
 * Those are OpenCode's two interfaces of plugins.
 */
function pluginsOf(module) {
  const { default: own } = module;
  if (typeof own === "object" && own !== null && ("id" in own || "server" in own)) {
    if (own.server !== undefined && typeof own.server !== "function") throw new NotLoaded("the plugin has invalid server export");
    if (own.server === undefined) throw new NotLoaded("the plugin must default export an object with server()");
    if (typeof own.id !== "string" || own.id.trim() === "") throw new NotLoaded("a path plugin must export id");
    return [own.server];
  }
  return [...new Set(Object.values(module))].map((exported) => {
    const plugin = typeof exported === "function" ? exported : exported?.server;
    if (typeof plugin !== "function") throw new NotLoaded("Plugin export is not a function");
    return plugin;
  });
}

/** The parts that the server makes of an attachment before plugins see it: most are texts of the server's own. */
function partsOf(kind, directory) {
  const path = join(directory, kind === "image" ? "pixel.png" : "notes.txt");
  const own = (text) => ({ type: "text", synthetic: true, text });
  const call = own(`Called the Read tool with the following input: ${JSON.stringify({ filePath: path })}`);
  if (kind === "image") {
    const file = { type: "file", mime: "image/png", url: `data:image/png;base64,${PIXEL}`, synthetic: true, filename: "pixel.png" };
    return [call, own("Image read successfully"), file];
  }
  const read = "<content>\n1: Exports of the ledger run at two.\n\n(End of file - total 1 lines)\n</content>";
  const file = { type: "file", mime: "text/plain", filename: "notes.txt", url: `file://${path}` };
  return [call, own(`<path>${path}</path>\n<type>file</type>\n${read}`), file];
}

/** The file in which a session is kept. */
const fileOf = (id) => join(homedir(), ".local", "share", "opencode", "storage", `${id}.json`);

const identifier = (kind) => `${kind}_${randomBytes(13).toString("hex")}`;

class Server {
  #face;
  #options;
  #calls;
  #plugins;
  #registry;
  #instances = new Map();
  #sessions = new Sessions((step) => this.#kept(step));
  #messages = new Map();

  constructor(face, connector, options) {
    this.#face = face;
    this.#options = options;
    this.#registry = new Registry(face, options.tools);
    this.#calls = new Calls(face.budgets_ms);
    this.#plugins = pluginsOf(connector);
  }

  get about() {
    // A message that the user stops is kept, and no model hears of it until the next one.
    const steps = [...stepNames(STEPS), "stopped_prompt", ...(this.#face.attachments ? ["attached_prompt"] : [])];
    return { harness: "opencode", face: `opencode-${this.#face.version}`, steps };
  }

  /** The hooks of the module's plugins, loaded once for each project that the server is used in. */
  async #instance(directory) {
    if (!this.#instances.has(directory)) {
      const loaded = [];
      for (const plugin of this.#plugins) {
        const hooks = await this.#calls.call("load", plugin, this.#input(directory));
        if (typeof hooks === "object" && hooks !== null) loaded.push(hooks);
      }
      this.#instances.set(directory, loaded);
      if (this.#instances.size === 1) await this.#tellRegistered(loaded);
    }
    return this.#instances.get(directory);
  }

  /** Report which hooks and tools of the first instance the server registers. */
  async #tellRegistered(loaded) {
    const taken = { handlers: 0, tools: 0, others: 0, refused: 0 };
    for (const hooks of loaded) {
      const names = Object.keys(hooks).filter((name) => hooks[name] !== undefined);
      for (const name of names) {
        if (typeof hooks[name] !== "function") taken.others += name === "tool" ? 0 : 1;
        else if (this.#registry.knows(name, names)) taken.handlers += 1;
        else taken.refused += 1;
      }
      for (const [name, tool] of Object.entries(hooks.tool ?? {})) {
        if (this.#registry.takesTool(name, tool, new Map())) taken.tools += 1;
        else taken.refused += 1;
      }
    }
    const doubled = loaded.slice(1).some((hooks) => Object.keys(hooks).some((name) => name in loaded[0]));
    if (doubled) this.#registry.refuse("a second plugin", "each function that the module exports is a plugin: their hooks run one after the other");
    await reportAbout({ installed: this.#registry.refused, registered: [taken] });
  }

  #input(directory) {
    const messages = async ({ path }) => {
      const data = structuredClone(this.#messages.get(path.id));
      return data === undefined ? { error: { name: "NotFoundError", data: { message: path.id } } } : { data };
    };
    const get = async ({ path }) => ({ data: { id: path.id, directory } });
    const client = { session: { messages, get }, app: { log: async () => ({ data: true }) } };
    const project = { id: "global", worktree: directory, time: { created: Date.now() } };
    const serverUrl = new URL("http://127.0.0.1:4096");
    return { client, project, directory, worktree: directory, serverUrl, $: globalThis.Bun?.$, experimental_workspace: undefined };
  }

  /**
   * Run a hook of each plugin over `output`, and return it as they changed it. OpenCode catches nothing in the hooks of
   * a turn: if one throws, the turn is lost, and this returns undefined. OpenCode keeps using the object that it handed
   * over. If a plugin replaces a member, OpenCode takes only a text, or the texts for a compaction.
   */
  async #hook(session, name, bag, output, { ofTurn = false } = {}) {
    const members = this.#face.hooks[name];
    for (const { [name]: handler } of await this.#instance(session.directory)) {
      if (handler === undefined || members === undefined) continue;
      await this.#calls.call(name, handler, pick(bag, members), output);
      if (ofTurn && this.#calls.lost()) return undefined;
    }
    return output;
  }

  async #event(session, type, more = {}) {
    const properties = { sessionID: session.id, ...more };
    const event = { id: identifier("evt"), type, properties };
    for (const { event: handler } of await this.#instance(session.directory)) {
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
      this.#keep(this.#sessions.get(step.session));
    }
    return { session: step.session, ...result, calls: this.#calls.take() };
  }

  /** Write a session and its messages to disk, as the server does. */
  #keep(session) {
    if (session === undefined || !this.#messages.has(session.id)) return;
    const { id, directory, created, title, parentID, uncompacted } = session;
    const messages = this.#messages.get(id);
    mkdirSync(dirname(fileOf(id)), { recursive: true });
    writeFileSync(fileOf(id), JSON.stringify({ session: { id, directory, created, title, parentID, uncompacted }, messages }));
  }

  /** A session that an earlier server wrote to disk. */
  #kept({ key }) {
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
    const message = { id: identifier("msg"), role: "user", sessionID, time: { created: Date.now() }, agent: "build", model: MODEL };
    const attached = (step.attached ?? []).flatMap((kind) => partsOf(kind, session.directory));
    const written = step.text === "" ? [] : [{ type: "text", text: step.text }];
    const parts = [...attached, ...written].map((part) => ({ id: identifier("prt"), sessionID, messageID: message.id, ...part }));
    const own = new Set(parts.slice(0, attached.length));
    const bag = { sessionID, model: MODEL, messageID: message.id };
    const heard = await this.#hook(session, "chat.message", bag, { message, parts }, { ofTurn: true });
    if (heard === undefined) {
      await this.#fail(session, this.#calls.lastError());
      return { turn: false };
    }
    this.#messages.get(sessionID).push({ info: message, parts });
    const texts = parts.filter((part) => !own.has(part)).map((part) => part?.text);
    const said = texts.filter((text) => typeof text === "string").join("\n\n");
    session.changed = said === step.text ? undefined : said;
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
    const heard = await this.#hook(session, "experimental.chat.system.transform", bag, { system }, { ofTurn });
    if (heard === undefined) return undefined;
    // Several texts of plugins are joined, and anything joined is a text.
    const joins = system.length > 2 && system[0] === SYSTEM_PROMPT;
    const texts = joins ? [SYSTEM_PROMPT, system.slice(1).join("\n")] : system;
    if (texts.every((text) => typeof text === "string")) return texts;
    if (ofTurn) this.#calls.refuse("Invalid prompt: The messages do not match the ModelMessage[] schema.");
    return undefined;
  }

  /** What the kit writes into the recording of the request: the plugin's system texts, also those for the title. */
  #told(session, system) {
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
  async #prepared(session, ofTurn) {
    await this.#busy(session);
    const messages = structuredClone(this.#messages.get(session.id));
    const heard = await this.#hook(session, "experimental.chat.messages.transform", {}, { messages }, { ofTurn });
    if (heard === undefined) {
      const words = this.#calls.lastError();
      await this.#idle(session);
      await this.#fail(session, words);
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
    const system = await this.#prepared(session, ofTurn);
    if (system === undefined) return system;
    const told = this.#told(session, system);
    await modelTurn(name, { ...told, given: [...told.given, ...given] });
    return system;
  }

  async #answer(session, text, more = {}) {
    const { id: sessionID } = session;
    const info = { id: identifier("msg"), role: "assistant", sessionID, time: { created: Date.now() }, mode: "build", ...MODEL, ...more };
    const part = (type, members) => ({ id: identifier("prt"), sessionID, messageID: info.id, type, ...members });
    const said = part("text", { text });
    const bag = { sessionID, messageID: info.id, partID: said.id };
    const output = await this.#hook(session, "experimental.text.complete", bag, { text });
    const parts = [part("step-start", {}), { ...said, text: output.text }, part("step-finish", { reason: "stop" })];
    this.#messages.get(sessionID).push({ info, parts });
    await this.#event(session, "message.updated", { info });
  }

  /** Keep the model's call of a tool and the tool's answer as one message. */
  #keepCall(session, tool, callID, input, output) {
    if (session.turn === undefined) return;
    const { id: sessionID } = session;
    const info = { id: identifier("msg"), role: "assistant", sessionID, time: { created: Date.now() }, mode: "build", ...MODEL };
    const part = (type, members) => ({ id: identifier("prt"), sessionID, messageID: info.id, type, ...members });
    const state = { status: "completed", input, output, title: "", metadata: {}, time: { start: Date.now(), end: Date.now() } };
    const parts = [part("step-start", {}), part("tool", { callID, tool, state }), part("step-finish", { reason: "tool-calls" })];
    this.#messages.get(sessionID).push({ info, parts });
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
    // The host's own tool for skills; a plugin hears of it as of any other.
    const skill = { execute: async () => "The skill is loaded." };
    const own = Object.assign({}, ...(await this.#instance(session.directory)).map((hooks) => hooks.tool));
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
      const said = await this.#calls.tool(tool, run, this.#registry.toolsThrow);
      const text = said?.isError ? toolText(said) : said?.output;
      const output = { title: "", output: typeof said === "string" ? said : (text ?? ""), metadata: said?.metadata ?? {} };
      await this.#hook(session, "tool.execute.after", { tool, sessionID, callID, args }, output);
      this.#keepCall(session, tool, callID, args, output.output);
      return said?.isError ? said : output.output;
    });
  }

  async tool(step) {
    const session = this.#sessions.of(step);
    let answer;
    try {
      answer = await this.#useTool(session, step);
    } catch (trouble) {
      if (!(trouble instanceof Skipped)) throw trouble;
      // The model calls a tool of the host instead.
      this.#keepCall(session, HOST_TOOL_CALL.name, identifier("call"), HOST_TOOL_CALL.input, HOST_TOOL_CALL.text);
      answer = { skipped: trouble.message };
    }
    // The turn continues with another call of the model, which gets the tool's answer.
    if (session.turn === undefined) return answer;
    const system = await this.#prepared(session, true);
    if (system === undefined) {
      session.turn = undefined;
      return answer;
    }
    return { ...answer, ...this.#told(session, system) };
  }

  async preCompaction(step) {
    const session = this.#sessions.of(step);
    compaction.begin(session);
    await this.#busy(session);
    // The compaction is a message of the user without text.
    const asked = { id: identifier("msg"), role: "user", sessionID: session.id, time: { created: Date.now() }, agent: "build", model: MODEL };
    const part = { id: identifier("prt"), sessionID: session.id, messageID: asked.id, type: "compaction", auto: false };
    this.#messages.get(session.id).push({ info: asked, parts: [part] });
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
    if (step.by_itself) this.#askToGoOn(session);
    await this.#event(session, "session.compacted");
    if (step.by_itself) await this.#goOn(session);
    await this.#busy(session);
    await this.#idle(session);
    return {};
  }

  /** The message by which the server asks the model to go on after a compaction of its own. */
  #askToGoOn(session) {
    if (this.#face.after_compaction === undefined) return;
    const { role, text } = this.#face.after_compaction;
    const info = { id: identifier("msg"), role, sessionID: session.id, time: { created: Date.now() }, agent: "build", model: MODEL };
    const part = { id: identifier("prt"), sessionID: session.id, messageID: info.id, type: "text" };
    this.#messages.get(session.id).push({ info, parts: [{ ...part, metadata: { compaction_continue: true }, synthetic: true, text }] });
  }

  /** The model goes on, and adds nothing. */
  async #goOn(session) {
    if (this.#face.after_compaction === undefined || (await this.#prepared(session, true)) === undefined) return;
    const { id: sessionID } = session;
    const info = { id: identifier("msg"), role: "assistant", sessionID, time: { created: Date.now() }, mode: "build", ...MODEL };
    const part = (type, members) => ({ id: identifier("prt"), sessionID, messageID: info.id, type, ...members });
    this.#messages.get(sessionID).push({ info, parts: [part("step-start", {}), part("step-finish", { reason: "stop" })] });
    await this.#event(session, "message.updated", { info });
  }

  async compact(step) {
    return { ...(await this.preCompaction(step)), ...(await this.compactionComplete(step)) };
  }

  /** The user begins anew: another session, while the old one stays in the list. */
  async clear(step) {
    return this.start({ ...step, project: this.#sessions.of(step).directory });
  }

  /** The user goes on in a copy of the conversation, which is a session of its own. */
  async fork(step) {
    const before = this.#sessions.of(step);
    const opened = await this.start({ ...step, project: before.directory });
    this.#messages.set(opened.key, structuredClone(this.#messages.get(before.id) ?? []));
    this.#sessions.of(step).title = before.title;
    return opened;
  }

  /** Nothing tells a plugin that an old session is opened again. */
  async resume(step) {
    const session = this.#sessions.of(step);
    if (!this.#messages.has(session.id)) this.#messages.set(session.id, []);
    return { key: session.id, opened: true };
  }

  /** A server that is started again loads its plugins; nothing tells them of the sessions that it has. */
  async restartHost(step) {
    const session = this.#sessions.of(step);
    await this.#instance(session.directory);
    return { key: session.id, opened: true };
  }

  async end(step) {
    const session = this.#sessions.of(step);
    // One that is opened again is only left: no plugin is told.
    if (step.resumed) return { key: session.id, ended: true };
    // Its messages are gone before anybody hears of it: what a plugin has not sent by then is lost.
    this.#messages.delete(session.id);
    rmSync(fileOf(session.id), { force: true });
    await this.#event(session, "session.deleted", { info: this.#info(session) });
    return { key: session.id, ended: true };
  }

  async close() {
    for (const hooks of [...this.#instances.values()].flat()) await this.#calls.call("dispose", async () => hooks.dispose?.());
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
