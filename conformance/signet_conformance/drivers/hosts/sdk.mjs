// An application that uses Signet's client as a library: it calls the client's declared methods where a harness would
// call its connector.

import { randomUUID } from "node:crypto";

import { handOver, modelTurn, NotLoaded, Skipped, sleep } from "./protocol.mjs";
import { Calls, compaction, stepNames, performerOf, Sessions, toolAnswer } from "./turns.mjs";

const MOST_POLLS = 20;
const POLL_MS = 100;
const CONFLICT = 409;
/** The daemon forgets more rows than this only with the token of a preview. */
const MOST_WITHOUT_TOKEN = 25;

const turnLine = (role, content) => JSON.stringify({ role, content });

class Application {
  #face;
  #client;
  #calls = new Calls();
  #status;
  #sessions = new Sessions();

  constructor(face, connector) {
    const Client = connector.SignetClient ?? connector.default;
    if (typeof Client !== "function") throw new NotLoaded("the module exports no SignetClient");
    this.#face = face;
    const token = process.env.SIGNET_TOKEN;
    const about = { actor: "sdk", actorType: "harness", ...(token === undefined ? {} : { token }) };
    this.#client = new Client({ daemonUrl: process.env.SIGNET_DAEMON_URL, ...about });
  }

  get about() {
    return { harness: "sdk", face: `sdk-${this.#face.version}`, steps: stepNames(STEPS) };
  }

  /** Call a method of the client; what it throws is noted, and the application goes on without an answer. */
  #call(name, ...args) {
    if (typeof this.#client[name] !== "function") throw new Skipped(`the client has no method ${name}`);
    const asked = async (...given) => {
      try {
        return await this.#client[name](...given);
      } catch (error) {
        this.#status = error?.status;
        throw error;
      }
    };
    this.#status = undefined;
    return this.#calls.call(name, asked, ...args);
  }

  /** A hook of a session, unless another runtime path holds the session or the daemon was down when it began. */
  #hook(session, name, ...args) {
    return session.heldElsewhere || session.unopened ? undefined : this.#call(name, ...args);
  }

  async perform(step) {
    const performer = performerOf(STEPS, step);
    const result = await performer.call(this, step);
    return { session: step.session, ...result, calls: this.#calls.take() };
  }

  async #open(session) {
    // If the daemon is down, the next prompt tries again.
    session.unopened = (await this.#call("health")) === undefined;
    if (session.unopened) return { key: session.key, opened: false, injected: "" };
    const { key: sessionKey, project } = session;
    const about = { sessionKey, project, harness: "sdk", runtimePath: "plugin" };
    const answer = await this.#call("sessionStart", about);
    session.heldElsewhere = answer === undefined && this.#status === CONFLICT;
    return { key: sessionKey, opened: answer !== undefined, injected: answer?.inject ?? "" };
  }

  start(step) {
    const session = { key: randomUUID(), agent: step.agent ?? "default", project: step.project, lines: [], turns: { uncompacted: 0 }, unsaved: new Map() };
    this.#sessions.set(step.session, session);
    return this.#open(session);
  }

  async prompt(step) {
    const session = this.#sessions.of(step);
    const { key: sessionKey, project, lines, turns } = session;
    if (session.unopened) await this.#open(session);
    const answer = await this.#hook(session, "userPromptSubmit", { sessionKey, prompt: step.text, project });
    await modelTurn(step.session);
    // As lines of JSON, since a user's own text may look like a turn.
    lines.push(turnLine("user", step.text), turnLine("assistant", step.reply ?? "Understood."));
    turns.uncompacted += 1;
    return { turn: true, injected: answer?.inject ?? "" };
  }

  async tool(step) {
    const session = this.#sessions.of(step);
    const performer = TOOLS[step.tool];
    if (performer === undefined) throw new Skipped(`the application has no tool ${step.tool}`);
    await handOver(step.session, step.arguments ?? {});
    const answer = await performer(step.arguments ?? {}, session, (...call) => this.#call(...call));
    return toolAnswer({ content: [{ text: JSON.stringify(answer ?? {}) }], details: answer ?? {}, isError: answer === undefined });
  }

  async preCompaction(step) {
    const session = this.#sessions.of(step);
    compaction.begin(session.turns);
    const context = session.lines.join("\n");
    const answer = await this.#hook(session, "preCompaction", { sessionKey: session.key, context, project: session.project });
    return { text: answer?.summaryPrompt ?? "" };
  }

  async compactionComplete(step) {
    const session = this.#sessions.of(step);
    compaction.end(session.turns);
    const { key: sessionKey, project } = session;
    await this.#hook(session, "compactionComplete", { sessionKey, summary: step.summary ?? "", project });
    return {};
  }

  async compact(step) {
    const result = await this.preCompaction(step);
    await modelTurn(step.session);
    return { ...result, ...(await this.compactionComplete(step)) };
  }

  async #close(session, reason) {
    const { key: sessionKey, agent: agentId, project } = session;
    const about = { sessionKey, sessionId: sessionKey, project, cwd: project, harness: "sdk", agentId, reason };
    const transcript = session.lines.join("\n");
    await this.#hook(session, "sessionEndFireAndForget", { ...about, transcript, runtimePath: "plugin" });
  }

  async clear(step) {
    const session = this.#sessions.of(step);
    await this.#close(session, "clear");
    return this.start({ ...step, agent: session.agent, project: session.project });
  }

  resume(step) {
    return this.#open(this.#sessions.of(step));
  }

  async end(step) {
    await this.#close(this.#sessions.of(step), "exit");
    return { ended: true };
  }

  async close() {}
}

/** The tools of the scenarios in the client's methods: `(arguments, session, call)`. */
const TOOLS = {
  memory_store: async ({ content, ...more }, { unsaved }, call) => {
    // A save that failed keeps its idempotency key for the next attempt.
    const idempotencyKey = unsaved.get(content) ?? randomUUID();
    const answer = await call("remember", content, { ...more, idempotencyKey, runtimePath: "plugin" });
    if (answer === undefined) unsaved.set(content, idempotencyKey);
    else unsaved.delete(content);
    return answer;
  },
  memory_search: ({ query, ...more }, { key, agent }, call) =>
    call("recall", query, { ...more, agentId: agent, sessionKey: key }),
  memory_get: ({ id }, _session, call) => call("getMemory", id),
  memory_modify: ({ patches }, _session, call) => call("batchModify", patches),
  memory_forget: async (given, _session, call) => {
    if (given.mode !== "execute" || given.ids?.length <= MOST_WITHOUT_TOKEN) return call("batchForget", given);
    const preview = await call("batchForget", { ...given, mode: "preview" });
    return preview && call("batchForget", { ...given, confirm_token: preview.confirmToken });
  },
  secret_exec: async ({ command, secrets }, _session, call) => {
    let job = await call("execWithSecrets", command, secrets);
    const id = job?.jobId ?? job?.id;
    for (let polls = 0; id && polls < MOST_POLLS && ["queued", "running"].includes(job?.status); polls += 1) {
      await sleep(POLL_MS);
      job = await call("getSecretExecJob", id);
    }
    return job;
  },
};

const STEPS = {
  start: Application.prototype.start,
  prompt: Application.prototype.prompt,
  tool: Application.prototype.tool,
  compact: Application.prototype.compact,
  pre_compaction: Application.prototype.preCompaction,
  compaction_complete: Application.prototype.compactionComplete,
  clear: Application.prototype.clear,
  resume: Application.prototype.resume,
  end: Application.prototype.end,
};

export async function open(face, connector) {
  return new Application(face, connector);
}
