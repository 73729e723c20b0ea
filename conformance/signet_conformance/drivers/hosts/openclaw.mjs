// Plays OpenClaw for a plugin: register(api), hooks on agent runs, tools, services. Each event names its agent, and one
// gateway process serves all sessions of all agents.

import { homedir } from "node:os";
import { resolve } from "node:path";
import { randomUUID } from "node:crypto";

import { textAtVendor } from "./model_wire.mjs";
import { lacksManifest, MANIFEST, manifestOf, readManifest } from "./openclaw_manifest.mjs";
import { SessionFiles } from "./openclaw_sessions.mjs";
import { givenRows, modelTurn, NotLoaded } from "./protocol.mjs";
import { Registry } from "./registry.mjs";
import { Calls, compaction, performerOf, pick, Sessions, skipHarnessCommand, stepNames, useTool } from "./turns.mjs";

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
  #files;
  #sessions = new Sessions((step) => this.#files.read(step));
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
    this.#files = new SessionFiles(face.session_files === "sqlite");
    this.#calls = new Calls(face.budgets_ms, { catches: true });
  }

  get about() {
    return {
      harness: "openclaw",
      face: `openclaw-${this.#face.version}`,
      tools: [...this.#tools.keys()],
      events: [...new Set(this.#handlers.map(({ event }) => event))],
      unheard: this.#unheard,
      steps: stepNames(STEPS),
      installed: [...this.#installed, ...this.#registry.refused],
      registered: this.#registered,
    };
  }

  async load(connector) {
    const plugin = connector.default ?? connector;
    this.#checkManifest(plugin?.id);
    const register = this.#registry.registrar(plugin);
    if (register === undefined) throw new NotLoaded(this.#registry.noExport ?? "the module's default export has no register(api)");
    for (const mode of this.#face.registration_modes) {
      // A run has the handlers and tools of the last registration, the gateway the services and handlers of the first.
      this.#handlers = this.#handlers.filter(({ event }) => event.startsWith("gateway_"));
      this.#tools.clear();
      const counts = await this.#register(plugin, register, mode);
      this.#registered.push({ ...(this.#face.registration_modes.length > 1 ? { mode } : {}), ...counts });
    }
    const { toolMode } = this.#registry;
    const offered = Math.max(...this.#registered.map(({ tools, refused }) => tools + refused));
    if (toolMode !== undefined && offered > 0 && (await this.#register(plugin, register, toolMode)).tools === 0) {
      const words = "outside of the gateway it registers a plugin in that mode, and this one offers no tool there";
      this.#registry.refuse(`the registration in the mode ${toolMode}`, `${this.#registry.noTools}: ${words}`, { minor: true });
    }
    // The later modes are tried only for a harness that then has each handler twice.
    for (const mode of this.#registry.again === "doubles" ? this.#registry.laterModes : []) {
      const { handlers, tools, others } = await this.#register(plugin, register, mode);
      if (handlers + tools + others === 0) continue;
      const call = `register(api) is called once more, in the mode ${mode}, for command lines alone`;
      const numbers = `${handlers} handlers, ${tools} tools and ${others} services or capabilities`;
      this.#registry.refuse("a second registration", `${call}: it registers ${numbers} a second time`);
    }
    const [first, ...later] = this.#face.registration_modes;
    const handlesRuns = this.#handlers.some(({ event }) => !event.startsWith("gateway_"));
    // If a plugin registers nothing in any mode, it is switched off or empty: the mode does not matter.
    const registersAny = this.#registered.some(({ handlers, tools, others, refused }) => handlers + tools + others + refused > 0);
    if (later.length > 0 && !handlesRuns && registersAny) {
      const mode = later.join(", ");
      const words = "it registers a plugin for its runs in that mode, and this one registers nothing there";
      this.#registry.refuse(`the registration in the mode ${mode}`, words);
      this.#unheard.push(
        `OpenClaw ${this.#face.version} registers a plugin for its runs in the mode ${mode}, and this one ` +
          `registers nothing there (${first} alone is not enough): no event of a run reaches it, and it offers no tool`,
      );
    }
    // The kit only wants to know what the plugin registers, so its services are not started.
    if (this.#options.registers_only) return;
    for (const service of this.#services) await this.#calls.call(`service ${service.id}`, () => service.start({}));
    await this.#fire("gateway_start", { port: this.#face.port }, { port: this.#face.port });
  }

  /** Note whether the host accepts the manifest of a plugin whose module exports `id`. */
  #checkManifest(id) {
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

  /** Call the plugin's registration in one mode, and count what the host takes and refuses. */
  async #register(plugin, register, mode) {
    const tally = { events: [], tools: new Set(), refused: 0, others: 0 };
    await NotLoaded.guard("register(api) threw", () => register.call(plugin, this.#api(plugin, mode, tally)));
    const known = tally.events.filter((event) => this.#registry.knows(event, tally.events));
    const refused = tally.refused + tally.events.length - known.length;
    return { handlers: known.length, tools: tally.tools.size, others: tally.others, refused };
  }

  /** The `api` that a plugin gets in one registration, which counts in `tally` what it registers. */
  #api(plugin, registrationMode, tally) {
    const first = registrationMode === this.#face.registration_modes[0];
    // Only in these modes does the host keep handlers and tools for its runs.
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
        tally.events.push(event);
        if (live && (first || !event.startsWith("gateway_"))) this.#handlers.push({ event, handler, priority: opts?.priority ?? 0 });
      },
      registerTool: (tool, opts) => {
        for (const name of opts?.names ?? [opts?.name ?? tool.name]) {
          if (this.#registry.takesTool(name, tool, tally.tools) && (!live || this.#addTool(name, tool))) tally.tools.add(name);
          else tally.refused += 1;
        }
      },
      registerService: (service) => {
        tally.others += 1;
        if (first) this.#services.push(service);
      },
      resolvePath: (path) => resolve(path.replace(/^~(?=\/|$)/, homedir())),
    };
    // The host's other functions only count: a connector's calls of the daemon do not depend on them.
    for (const name of this.#face.registrars) api[name] ??= () => void (tally.others += 1);
    return api;
  }

  /** Keep a tool for the steps; return whether the host offers it to its model. */
  #addTool(name, tool) {
    // A tool that the host refuses is kept too: a mark reports the refusal, and the run shows what else is wrong.
    this.#tools.set(name, tool);
    return !this.#face.tools_by_manifest || this.#isInManifest(name);
  }

  /** Whether the manifest names a tool, as it must for the host to offer it; true if the manifest is not known. */
  #isInManifest(name) {
    const manifest = this.#manifest;
    if (manifest === undefined) return true;
    const [row] = this.#installed;
    if ((manifest.contracts?.tools ?? []).includes(name)) return true;
    if (row.accepted === false && row.refused === undefined) return false;
    const refused = [...new Set([...(row.refused ?? []), name])];
    const words = `the plugin's manifest names no tool ${refused.join(", ")} under contracts.tools: refused`;
    Object.assign(row, { accepted: false, refused, words });
    return false;
  }

  /** Call an event's handlers by priority, highest first, and merge their answers; later members replace earlier ones. */
  async #fire(event, bag, ctx) {
    const members = this.#face.events[event];
    if (members === undefined) return {};
    let merged = {};
    const handlers = this.#handlers.filter((each) => each.event === event).sort((a, b) => b.priority - a.priority);
    for (const { handler } of handlers) {
      const answer = await this.#calls.call(event, handler, pick(bag, members), { ...ctx });
      if (typeof answer === "object" && answer !== null) merged = { ...merged, ...answer };
    }
    return merged;
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

  /** Whether the history keeps a prompt with the text that a plugin put before it. */
  get #keepsContext() {
    const passing = ["request", "turn"];
    return (this.#face.answers?.sources.prependContext ?? []).some(({ lasts }) => !passing.includes(lasts));
  }

  #context(session, more = {}) {
    const { agentId, sessionKey, sessionId, workspaceDir } = session;
    return { agentId, sessionKey, sessionId, workspaceDir, ...more };
  }

  async #fireStart(session, resumedFrom) {
    const { sessionId, sessionKey, agentId } = session;
    await this.#fire("session_start", { sessionId, sessionKey, resumedFrom }, { agentId, sessionId, sessionKey });
    return { key: sessionKey, opened: true };
  }

  async #fireEnd(session, reason, nextSessionId) {
    const { sessionId, sessionKey, agentId, reportedFile: sessionFile } = session;
    const bag = { sessionId, sessionKey, messageCount: session.messages.length, reason, sessionFile, nextSessionId };
    await this.#fire("session_end", { ...bag, transcriptArchived: false }, { agentId, sessionId, sessionKey });
  }

  async start(step) {
    const agentId = step.agent ?? "main";
    const name = `${step.session}-${randomUUID().slice(0, 8)}`;
    const session = { agentId, sessionKey: `agent:${agentId}:webchat:direct:${name}`, workspaceDir: step.project };
    this.#sessions.set(step.session, this.#files.renew(session));
    return this.#fireStart(session);
  }

  async prompt(step) {
    return this.#turn(this.#sessions.of(step), step);
  }

  /** A turn without a session: its context has only the agent and the folder. */
  async sessionlessPrompt(step) {
    const session = this.#files.renew({ agentId: step.agent ?? "main", workspaceDir: step.project });
    return this.#turn({ ...session, sessionId: undefined }, step);
  }

  async #turn(session, step) {
    skipHarnessCommand(step);
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
    // The host fires the event a second time only if nothing came of the first.
    if (Object.keys(legacy ?? {}).length === 0) legacy = await this.#fire("before_agent_start", bag, early);
    const answer = { ...legacy, ...built };
    const system = [answer.prependSystemContext, answer.systemPrompt, answer.appendSystemContext].filter(Boolean).join("\n\n");
    const full = [answer.prependContext, prompt].filter(Boolean).join("\n\n");
    const input = { ...MODEL, runId, sessionId: session.sessionId, systemPrompt: system, prompt: full, imagesCount: 0 };
    await this.#fire("llm_input", { ...input, historyMessages: messages }, ctx);
    await modelTurn(step.session, { said: await textAtVendor(prompt, MODEL.model), given: givenRows(textsOf(prepared, built, legacy)) });
    const text = this.#keepsContext ? full : prompt;
    this.#files.writeMessage(session, { role: "user", content: [{ type: "text", text }], timestamp: Date.now() });
    session.turn = { reply: step.reply ?? "Understood.", began, runId, input, ctx };
    if (!step.more) await this.#endTurn(session);
    return { turn: true, injected: [answer.prependContext, system].filter(Boolean).join("\n\n") };
  }

  /** End the turn with the model's reply. A turn whose tool calls are steps of their own ends after the last of them. */
  async #endTurn(session) {
    if (session.turn === undefined) return;
    const { reply, began, runId, input, ctx } = session.turn;
    session.turn = undefined;
    const content = [{ type: "text", text: reply }];
    const answer = { role: "assistant", content, ...MODEL, stopReason: "stop", timestamp: Date.now() };
    this.#files.writeMessage(session, answer);
    const ended = { messages: structuredClone(session.messages), success: true, runId };
    await this.#fire("agent_end", { ...ended, durationMs: Math.round(performance.now() - began) }, ctx);
    const output = { ...input, ...ANSWERED, assistantTexts: [reply], lastAssistant: answer, harnessId: "openclaw" };
    await this.#fire("llm_output", output, ctx);
  }

  /** Write the model's call of a tool and the tool's result, a message each. */
  #writeToolCall(session, toolName, toolCallId, params, result) {
    if (session.turn === undefined) return;
    const content = [{ type: "toolCall", id: toolCallId, name: toolName, arguments: params }];
    this.#files.writeMessage(session, { role: "assistant", content, ...MODEL, stopReason: "toolUse", timestamp: Date.now() });
    const { content: output = [], details, isError = false } = result ?? {};
    this.#files.writeMessage(session, { role: "toolResult", toolCallId, toolName, content: output, details, isError, timestamp: Date.now() });
  }

  async tool(step) {
    const session = this.#sessions.of(step);
    const runId = session.turn?.runId ?? randomUUID();
    const ctx = this.#context(session, { runId });
    const built = new Map();
    const schemaOf = (name) => {
      const tool = this.#tools.get(name);
      if (tool === undefined) return undefined;
      built.set(name, typeof tool === "function" ? tool(ctx) : tool);
      return built.get(name)?.parameters ?? null;
    };
    return useTool(step, schemaOf, this.#options.tools, [...this.#tools.keys()], async (name, params) => {
      const toolCallId = `call_${randomUUID().slice(0, 8)}`;
      await this.#fire("before_tool_call", { toolName: name, params, toolCallId, runId }, ctx);
      const began = performance.now();
      const result = await this.#calls.tool(name, () => built.get(name).execute(toolCallId, params), this.#registry.toolsThrow);
      const durationMs = Math.round(performance.now() - began);
      await this.#fire("after_tool_call", { toolName: name, params, toolCallId, result, runId, durationMs }, ctx);
      this.#writeToolCall(session, name, toolCallId, params, result);
      return result;
    });
  }

  async preCompaction(step) {
    const session = this.#sessions.of(step);
    compaction.begin(session);
    const count = session.messages.length;
    const bag = { messageCount: count, compactingCount: count, tokenCount: 1000, sessionFile: session.reportedFile };
    await this.#fire("before_compaction", { ...bag, messages: structuredClone(session.messages) }, this.#context(session));
    return {};
  }

  async compactionComplete(step) {
    const session = this.#sessions.of(step);
    compaction.end(session);
    const compactedCount = session.messages.length;
    this.#files.writeCompaction(session, step.summary ?? "");
    const bag = { messageCount: session.messages.length, compactedCount, tokenCount: 100, sessionFile: session.reportedFile };
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
    await this.#fire("before_reset", { messages, reason: "reset", sessionFile: session.reportedFile }, this.#context(session));
    this.#files.renew(session);
    await this.#fireEnd(before, "reset", session.sessionId);
    return this.#fireStart(session, before.sessionId);
  }

  async resume(step) {
    const session = this.#sessions.of(step);
    return this.#fireStart(session, session.sessionId);
  }

  /** A restarted gateway reads its sessions from their files and fires no event for them. */
  async restartHost(step) {
    return { key: this.#sessions.of(step).sessionKey, opened: true };
  }

  async end(step) {
    await this.#fireEnd(this.#sessions.of(step), "idle");
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
  // The gateway continues to run after both.
  close: Gateway.prototype.end,
};

/** The texts that a turn's handlers gave for its request, by member: one system prompt, the others in the order of `answers`. */
function textsOf(...answers) {
  const names = ["prependContext", "appendContext", "prependSystemContext", "appendSystemContext"];
  const texts = names.map((name) => [name, answers.map((answer) => answer?.[name]).filter(Boolean)]);
  const systemPrompt = answers.map((answer) => answer?.systemPrompt).find((text) => text !== undefined);
  return Object.fromEntries([["systemPrompt", systemPrompt], ...texts]);
}

/** The time as the host puts it before a user's text: `Sat 2026-11-21 20:50 UTC`. */
function stamp(now) {
  const day = now.toLocaleDateString("en-US", { weekday: "short", timeZone: "UTC" });
  return `${day} ${now.toISOString().slice(0, 10)} ${now.toISOString().slice(11, 16)} UTC`;
}

export async function open(face, connector, options) {
  const gateway = new Gateway(face, options);
  await gateway.load(connector);
  return gateway;
}
