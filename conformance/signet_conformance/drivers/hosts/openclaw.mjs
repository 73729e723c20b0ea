// OpenClaw as a plugin sees it: register(api), hooks on agent runs, tools, services. The agent is told with
// every event, and one gateway process serves all sessions of all agents.

import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { randomUUID } from "node:crypto";

import { asSent } from "./model_wire.mjs";
import { lacksManifest, MANIFEST, manifestOf, readManifest } from "./openclaw_manifest.mjs";
import { givenFor, modelTurn, NotLoaded } from "./protocol.mjs";
import { Registry } from "./registry.mjs";
import { Calls, compaction, keepBack, listed, performerOf, pick, Sessions, useTool } from "./turns.mjs";

const MODEL = { provider: "scripted", model: "scripted-model" };
const ANSWERED = {
  resolvedRef: `${MODEL.provider}/${MODEL.model}`,
  contextTokenBudget: 200_000,
  contextWindowSource: "model",
  usage: { input: 1000, output: 10 },
};

class Gateway {
  #face;
  #calls;
  #handlers = [];
  #tools = new Map();
  #services = [];
  #sessions = new Sessions((step) => this.#kept(step));
  #options;
  #unheard = [];
  #installed = [];
  #manifest;
  #registry;
  #registered = [];

  constructor(face, options) {
    this.#face = face;
    this.#options = options;
    this.#registry = new Registry(face, options.tools);
    this.#calls = new Calls(face.budgets_ms, { catches: true });
  }

  get about() {
    return {
      harness: "openclaw",
      face: `openclaw-${this.#face.version}`,
      tools: [...this.#tools.keys()],
      events: [...new Set(this.#handlers.map((one) => one.event))],
      unheard: this.#unheard,
      steps: listed(STEPS),
      installed: [...this.#installed, ...this.#registry.refused],
      registered: this.#registered,
    };
  }

  async load(connector) {
    const plugin = connector.default ?? connector;
    this.#takeManifest(plugin?.id);
    const register = this.#registry.registrar(plugin);
    if (register === undefined) throw new NotLoaded(this.#registry.noExport ?? "the module's default export has no register(api)");
    for (const mode of this.#face.registration_modes) {
      // Runs know what was registered last; services belong to the gateway, which registers first.
      this.#handlers = this.#handlers.filter((one) => one.event.startsWith("gateway_"));
      this.#tools.clear();
      const taken = await this.#register(plugin, register, mode);
      this.#registered.push({ ...(this.#face.registration_modes.length > 1 ? { mode } : {}), ...taken });
    }
    const { toolMode } = this.#registry;
    const offered = Math.max(...this.#registered.map((one) => one.tools + one.refused));
    if (toolMode !== undefined && offered > 0 && (await this.#register(plugin, register, toolMode)).tools === 0) {
      const cold = `${this.#registry.noTools}: outside of the gateway it registers a plugin in that mode, and this one offers no tool there`;
      this.#registry.refuse(`the registration in the mode ${toolMode}`, cold, { minor: true });
    }
    // Where a further registration changes nothing, what else the plugin does in it is left out.
    for (const mode of this.#registry.again === "doubles" ? this.#registry.laterModes : []) {
      const { handlers, tools, others } = await this.#register(plugin, register, mode);
      if (handlers + tools + others === 0) continue;
      const asked = `register(api) is called once more, in the mode ${mode}, for command lines alone`;
      const numbers = `${handlers} handlers, ${tools} tools and ${others} services or capabilities`;
      this.#registry.refuse("a second registration", `${asked}: it registers ${numbers} a second time`);
    }
    const [first, ...later] = this.#face.registration_modes;
    const heard = this.#handlers.some((one) => !one.event.startsWith("gateway_"));
    // A plugin that registers nothing at all is switched off, or has nothing: neither is about the mode.
    const registersAny = this.#registered.some((one) => one.handlers + one.tools + (one.others ?? 0) + one.refused > 0);
    if (later.length > 0 && !heard && registersAny) {
      const mode = later.join(", ");
      this.#registry.refuse(`the registration in the mode ${mode}`, "it registers a plugin for its runs in that mode, and this one registers nothing there");
      this.#unheard.push(
        `OpenClaw ${this.#face.version} registers a plugin for its runs in the mode ${later.join(", ")}, and this one ` +
          `registers nothing there (${first} alone is not enough): no event of a run reaches it, and it offers no tool`,
      );
    }
    // Who asks only what a plugin registers starts nothing of it.
    if (this.#options.registers_only) return;
    for (const service of this.#services) await this.#calls.call(`service ${service.id}`, () => service.start({}));
    await this.#fire("gateway_start", { port: this.#face.port }, { port: this.#face.port });
  }

  #takeManifest(id) {
    const text = manifestOf(this.#options.module);
    if (text === undefined) {
      const words = `plugin manifest not found: ${MANIFEST}`;
      if (lacksManifest(this.#options.module)) this.#installed.push({ file: MANIFEST, accepted: false, words });
      return;
    }
    const { words, data } = readManifest(text, id);
    this.#manifest = data;
    this.#installed.push(words === undefined ? { file: MANIFEST, accepted: true } : { file: MANIFEST, accepted: false, words });
  }

  /** Call the plugin's own registration in one mode; the numbers of what the host took and refused in it. */
  async #register(plugin, register, mode) {
    const taken = { events: [], tools: new Set(), refused: 0, others: 0 };
    await NotLoaded.guard("register(api) threw", () => register.call(plugin, this.#api(plugin, mode, taken)));
    const known = taken.events.filter((event) => this.#registry.knows(event, taken.events));
    const refused = taken.refused + taken.events.length - known.length;
    return { handlers: known.length, tools: taken.tools.size, others: taken.others, refused };
  }

  #api(plugin, registrationMode, taken) {
    const first = registrationMode === this.#face.registration_modes[0];
    // In a mode that is for something else the host takes nothing for its runs.
    const live = this.#face.registration_modes.includes(registrationMode);
    const log = (level) => (message) => console.error(`[${level}] ${message}`);
    const api = {
      id: plugin.id ?? "memory",
      name: plugin.name ?? plugin.id ?? "memory",
      version: this.#face.version,
      source: this.#options.module,
      registrationMode,
      config: {},
      pluginConfig: { enabled: true, daemonUrl: process.env.SIGNET_DAEMON_URL, ...this.#options.plugin_config },
      logger: { info: log("info"), warn: log("warn"), error: log("error"), debug: log("debug") },
      on: (event, handler, opts) => {
        taken.events.push(event);
        if (live && (first || !event.startsWith("gateway_"))) this.#handlers.push({ event, handler, priority: opts?.priority ?? 0 });
      },
      registerTool: (tool, opts) => {
        for (const name of opts?.names ?? [opts?.name ?? tool.name]) {
          if (this.#registry.takesTool(name, tool, taken.tools) && (!live || this.#takeTool(name, tool))) taken.tools.add(name);
          else taken.refused += 1;
        }
      },
      registerService: (service) => {
        taken.others += 1;
        if (first) this.#services.push(service);
      },
      resolvePath: (path) => resolve(path.replace(/^~(?=\/|$)/, homedir())),
    };
    // The rest of the host's surface takes what it is given; a connector's daemon calls do not depend on it.
    for (const name of this.#face.registrars) api[name] ??= () => void (taken.others += 1);
    return api;
  }

  /** Take a tool; whether the host offers it to its model. */
  #takeTool(name, tool) {
    // Also a tool that the host refuses: the mark says so, and the run shows what else is wrong.
    this.#tools.set(name, tool);
    return !this.#face.tools_by_manifest || this.#isInManifest(name);
  }

  /** A manifest that names no tools keeps those of the plugin from the model; without a manifest nothing is known. */
  #isInManifest(name) {
    const manifest = this.#manifest;
    if (manifest === undefined) return true;
    const [known] = this.#installed;
    if ((manifest.contracts?.tools ?? []).includes(name)) return true;
    if (known.accepted === false && known.refused === undefined) return false;
    const refused = [...new Set([...(known.refused ?? []), name])];
    const words = `the plugin's manifest names no tool ${refused.join(", ")} under contracts.tools: refused`;
    Object.assign(known, { accepted: false, refused, words });
    return false;
  }

  /** Handlers by priority, highest first; context members of later ones join those of earlier ones. */
  async #fire(event, bag, ctx) {
    const members = this.#face.events[event];
    if (members === undefined) return {};
    let said = {};
    const called = this.#handlers.filter((one) => one.event === event).sort((a, b) => b.priority - a.priority);
    for (const { handler } of called) {
      const given = await this.#calls.call(event, handler, pick(bag, members), { ...ctx });
      if (typeof given === "object" && given !== null) said = { ...said, ...given };
    }
    return said;
  }

  async perform(step) {
    const performer = performerOf(STEPS, step);
    let result;
    try {
      result = await performer.call(this, step);
    } finally {
      if (step.step === "tool" && !step.more) await this.#endTurn(this.#sessions.of(step));
    }
    return { session: step.session, ...result, calls: this.#calls.take() };
  }

  /** Whether the prompt stays in the history with what a plugin put before it. */
  get #keepsContext() {
    const passing = ["request", "turn"];
    return (this.#face.answers?.sources.prependContext ?? []).some(({ lasts }) => !passing.includes(lasts));
  }

  #context(session, more = {}) {
    const { agentId, sessionKey, sessionId, workspaceDir } = session;
    return { agentId, sessionKey, sessionId, workspaceDir, ...more };
  }

  async #opened(session, resumedFrom) {
    const { sessionId, sessionKey, agentId } = session;
    await this.#fire("session_start", { sessionId, sessionKey, resumedFrom }, { agentId, sessionId, sessionKey });
    return { key: sessionKey, opened: true };
  }

  async #closed(session, reason, nextSessionId) {
    const { sessionId, sessionKey, agentId, toldFile: sessionFile } = session;
    const told = { sessionId, sessionKey, messageCount: session.messages.length, reason, sessionFile, nextSessionId };
    await this.#fire("session_end", { ...told, transcriptArchived: false }, { agentId, sessionId, sessionKey });
  }

  async start(step) {
    const agentId = step.agent ?? "main";
    const name = `${step.session}-${randomUUID().slice(0, 8)}`;
    const session = { agentId, sessionKey: `agent:${agentId}:webchat:direct:${name}`, workspaceDir: step.project };
    this.#sessions.set(step.session, this.#renewed(session));
    return this.#opened(session);
  }

  /** A new native session under the same key, with an empty history and a file of its own. */
  #renewed(session) {
    const { agentId, sessionKey, workspaceDir } = session;
    const folder = sessionsOf(agentId);
    mkdirSync(folder, { recursive: true });
    this.#filed(session, randomUUID());
    writeFileSync(session.file, `${JSON.stringify({ type: "session", id: session.sessionId, cwd: workspaceDir })}\n`);
    if (sessionKey !== undefined) {
      const { sessionId } = session;
      writeFileSync(join(folder, INDEX), JSON.stringify({ ...readIndex(folder), [sessionKey]: { sessionId, workspaceDir } }));
    }
    return session;
  }

  /** A native session of that id, with an empty history. */
  #filed(session, sessionId) {
    const folder = sessionsOf(session.agentId);
    const file = join(folder, `${sessionId}.jsonl`);
    const sqlite = `sqlite:${join(folder, "sessions.sqlite")}#${sessionId}`;
    const toldFile = this.#face.session_files === "sqlite" ? sqlite : file;
    return Object.assign(session, { sessionId, file, toldFile, messages: [], said: 0, compacting: false });
  }

  /** The session that a gateway before this one had under a key, as its files tell. */
  #kept({ agent: agentId = "main", key: sessionKey }) {
    const entry = readIndex(sessionsOf(agentId))[sessionKey];
    if (entry === undefined) return undefined;
    const { sessionId, workspaceDir } = entry;
    const session = this.#filed({ agentId, sessionKey, workspaceDir }, sessionId);
    for (const line of readFileSync(session.file, "utf8").trimEnd().split("\n").map((text) => JSON.parse(text))) {
      if (line.type === "message") this.#hear(session, line.message);
      if (line.type === "compaction") Object.assign(session, { messages: session.messages.slice(-1), said: 0 });
    }
    return session;
  }

  async prompt(step) {
    return this.#turn(this.#sessions.of(step), step);
  }

  /** A turn that no session is known of: agent and folder alone stand in its context. */
  async sessionlessPrompt(step) {
    const session = this.#renewed({ agentId: step.agent ?? "main", workspaceDir: step.project });
    return this.#turn({ ...session, sessionId: undefined }, step);
  }

  async #turn(session, step) {
    keepBack(step);
    const began = performance.now();
    const runId = randomUUID();
    const channel = this.#face.channels?.[step.channel] === undefined ? "webchat" : step.channel;
    const ctx = this.#context(session, { runId, trigger: "user", messageProvider: channel, channelId: channel });
    const form = this.#face.channels?.[channel] ?? "[{stamp}] {text}";
    const prompt = form.replaceAll("{stamp}", stamp(new Date())).replace("{text}", () => step.text);
    const messages = structuredClone(session.messages);
    const bag = { prompt, messages, runId, queuedInjections: [], currentUserMessage: prompt };
    const early = { ...ctx, modelProviderId: MODEL.provider, modelId: MODEL.model };
    await this.#fire("before_model_resolve", bag, early);
    let legacy;
    if (this.#face.early_agent_start) legacy = await this.#fire("before_agent_start", { prompt, runId }, early);
    const prepared = await this.#fire("agent_turn_prepare", bag, early);
    const built = await this.#fire("before_prompt_build", bag, early);
    // The host asks once: the second call is made only where the first one said nothing.
    if (Object.keys(legacy ?? {}).length === 0) legacy = await this.#fire("before_agent_start", bag, early);
    const said = { ...legacy, ...built };
    const system = [said.prependSystemContext, said.systemPrompt, said.appendSystemContext].filter(Boolean).join("\n\n");
    const full = [said.prependContext, prompt].filter(Boolean).join("\n\n");
    const input = { ...MODEL, runId, sessionId: session.sessionId, systemPrompt: system, prompt: full, imagesCount: 0 };
    await this.#fire("llm_input", { ...input, historyMessages: messages }, ctx);
    await modelTurn(step.session, { said: await asSent(prompt, MODEL.model), given: givenFor(answersOf(prepared, built, legacy)) });
    const kept = this.#keepsContext ? full : prompt;
    this.#say(session, { role: "user", content: [{ type: "text", text: kept }], timestamp: Date.now() });
    session.turn = { reply: step.reply ?? "Understood.", began, runId, input, ctx };
    if (!step.more) await this.#endTurn(session);
    return { turn: true, injected: [said.prependContext, system].filter(Boolean).join("\n\n") };
  }

  /** What follows the model's last word; a turn with tool calls to come ends with the last of them. */
  async #endTurn(session) {
    if (session.turn === undefined) return;
    const { reply, began, runId, input, ctx } = session.turn;
    session.turn = undefined;
    const content = [{ type: "text", text: reply }];
    const answer = { role: "assistant", content, ...MODEL, stopReason: "stop", timestamp: Date.now() };
    this.#say(session, answer);
    const ended = { messages: structuredClone(session.messages), success: true, runId };
    await this.#fire("agent_end", { ...ended, durationMs: Math.round(performance.now() - began) }, ctx);
    const output = { ...input, ...ANSWERED, assistantTexts: [reply], lastAssistant: answer, harnessId: "openclaw" };
    await this.#fire("llm_output", output, ctx);
  }

  #hear(session, message) {
    session.messages.push(message);
    session.said += 1;
  }

  #say(session, message) {
    this.#hear(session, message);
    appendFileSync(session.file, `${JSON.stringify({ type: "message", id: randomUUID().slice(0, 8), message })}\n`);
  }

  /** The model's call of a tool, and what the tool gave back: a message each. */
  #keepCall(session, toolName, toolCallId, params, result) {
    if (session.turn === undefined) return;
    const content = [{ type: "toolCall", id: toolCallId, name: toolName, arguments: params }];
    this.#say(session, { role: "assistant", content, ...MODEL, stopReason: "toolUse", timestamp: Date.now() });
    const { content: given = [], details, isError = false } = result ?? {};
    this.#say(session, { role: "toolResult", toolCallId, toolName, content: given, details, isError, timestamp: Date.now() });
  }

  async tool(step) {
    const session = this.#sessions.of(step);
    const runId = session.turn?.runId ?? randomUUID();
    const ctx = this.#context(session, { runId });
    const made = new Map();
    const schemaOf = (name) => {
      const tool = this.#tools.get(name);
      if (tool === undefined) return undefined;
      made.set(name, typeof tool === "function" ? tool(ctx) : tool);
      return made.get(name)?.parameters ?? null;
    };
    return useTool(step, schemaOf, this.#options.tools, [...this.#tools.keys()], async (name, params) => {
      const toolCallId = `call_${randomUUID().slice(0, 8)}`;
      await this.#fire("before_tool_call", { toolName: name, params, toolCallId, runId }, ctx);
      const began = performance.now();
      const result = await this.#calls.tool(name, () => made.get(name).execute(toolCallId, params), this.#registry.toolsThrow);
      const durationMs = Math.round(performance.now() - began);
      await this.#fire("after_tool_call", { toolName: name, params, toolCallId, result, runId, durationMs }, ctx);
      this.#keepCall(session, name, toolCallId, params, result);
      return result;
    });
  }

  async preCompaction(step) {
    const session = this.#sessions.of(step);
    compaction.begin(session);
    const count = session.messages.length;
    const bag = { messageCount: count, compactingCount: count, tokenCount: 1000, sessionFile: session.toldFile };
    await this.#fire("before_compaction", { ...bag, messages: structuredClone(session.messages) }, this.#context(session));
    return {};
  }

  async compactionComplete(step) {
    const session = this.#sessions.of(step);
    compaction.end(session);
    const compactedCount = session.messages.length;
    const entry = { type: "compaction", id: randomUUID().slice(0, 8), summary: step.summary ?? "", tokensBefore: 1000 };
    appendFileSync(session.file, `${JSON.stringify(entry)}\n`);
    session.messages = session.messages.slice(-1);
    const bag = { messageCount: session.messages.length, compactedCount, tokenCount: 100, sessionFile: session.toldFile };
    await this.#fire("after_compaction", bag, this.#context(session));
    return {};
  }

  async compact(step) {
    await this.preCompaction(step);
    await modelTurn(step.session);
    return this.compactionComplete(step);
  }

  async clear(step) {
    const session = this.#sessions.of(step);
    const before = { ...session };
    const messages = structuredClone(session.messages);
    await this.#fire("before_reset", { messages, reason: "reset", sessionFile: session.toldFile }, this.#context(session));
    this.#renewed(session);
    await this.#closed(before, "reset", session.sessionId);
    return this.#opened(session, before.sessionId);
  }

  async resume(step) {
    const session = this.#sessions.of(step);
    return this.#opened(session, session.sessionId);
  }

  /** A gateway that is started again takes its sessions up from their files, and tells no plugin of it. */
  async restartHost(step) {
    return { key: this.#sessions.of(step).sessionKey, opened: true };
  }

  async end(step) {
    await this.#closed(this.#sessions.of(step), "idle");
    return { ended: true };
  }

  async close() {
    await this.#fire("gateway_stop", { reason: "shutdown" }, { port: this.#face.port });
    for (const service of this.#services) await this.#calls.call(`service ${service.id}`, () => service.stop?.({}));
  }
}

const STEPS = {
  start: Gateway.prototype.start,
  prompt: Gateway.prototype.prompt,
  sessionless_prompt: Gateway.prototype.sessionlessPrompt,
  tool: Gateway.prototype.tool,
  compact: Gateway.prototype.compact,
  pre_compaction: Gateway.prototype.preCompaction,
  compaction_complete: Gateway.prototype.compactionComplete,
  clear: Gateway.prototype.clear,
  resume: Gateway.prototype.resume,
  restart_host: Gateway.prototype.restartHost,
  end: Gateway.prototype.end,
  // The gateway lives on after either.
  close: Gateway.prototype.end,
};

/** The folder in which the sessions of an agent are kept. */
const sessionsOf = (agentId) => join(homedir(), ".openclaw", "agents", agentId, "sessions");

const INDEX = "sessions.json";

/** The sessions in a folder by their keys. */
function readIndex(folder) {
  const file = join(folder, INDEX);
  return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : {};
}

/** What a turn's handlers gave for its request: each joined text has the parts of all of them, in this order. */
function answersOf(...answers) {
  const names = ["prependContext", "appendContext", "prependSystemContext", "appendSystemContext"];
  const joined = names.map((name) => [name, answers.map((answer) => answer?.[name]).filter(Boolean)]);
  const systemPrompt = answers.map((answer) => answer?.systemPrompt).find((text) => text !== undefined);
  return Object.fromEntries([["systemPrompt", systemPrompt], ...joined]);
}

/** `Sat 2026-11-21 20:50 UTC`, which the host puts before what a user writes. */
function stamp(now) {
  const day = now.toLocaleDateString("en-US", { weekday: "short", timeZone: "UTC" });
  return `${day} ${now.toISOString().slice(0, 10)} ${now.toISOString().slice(11, 16)} UTC`;
}

export async function open(face, connector, options) {
  const gateway = new Gateway(face, options);
  await gateway.load(connector);
  return gateway;
}
