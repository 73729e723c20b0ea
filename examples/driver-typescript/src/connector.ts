// A tiny connector: three hooks, bounded, silent if the daemon is away or the user has switched Signet off.

import { randomUUID } from "node:crypto";

const BOUNDS_MS = { start: 2000, prompt: 1000, end: 5000 };

/** A session of the harness: `known` to the daemon, `open` there, or `refused` because another path holds it. */
export interface Session {
  readonly key: string;
  readonly project: string;
  turns: string[];
  known: boolean;
  open: boolean;
  refused: boolean;
}

type Members = Record<string, unknown>;

/** An answer: its status, or "away" if no daemon listened, and its JSON if it is no error. */
interface Answer {
  readonly status?: number | "away";
  readonly json?: Members;
}

export class Connector {
  readonly #daemon: string;
  readonly #agent: string;
  readonly #token: string | undefined;
  readonly #silent: boolean;
  /** Sessions whose end is still to be sent. */
  readonly #unsent: Session[] = [];

  constructor(env: NodeJS.ProcessEnv) {
    this.#daemon = env.SIGNET_DAEMON_URL ?? "http://127.0.0.1:3850";
    this.#agent = env.SIGNET_AGENT_ID ?? "default";
    this.#token = env.SIGNET_TOKEN;
    this.#silent = env.SIGNET_BYPASS === "1";
  }

  create(project: string): Session {
    return { key: randomUUID(), project, turns: [], known: false, open: false, refused: false };
  }

  async open(project: string): Promise<Session> {
    return this.begin(this.create(project));
  }

  /** `answers`: the daemon has just answered, so no probe is needed. */
  async begin(session: Session, answers = false): Promise<Session> {
    if (session.refused || this.#silent) return session;
    const health = answers ? undefined : await this.#ask("GET", "/health", undefined, BOUNDS_MS.start);
    if (!answers && health?.json === undefined) return session;
    await this.flush();
    // Once a start has been sent, the daemon may know the session, whatever it answered.
    session.known = true;
    const { status, json } = await this.#call("session-start", session, BOUNDS_MS.start, { project: session.project });
    session.open = json !== undefined;
    if (status === 409) Object.assign(session, { refused: true, known: false, open: false });
    return session;
  }

  /** Returns the text to inject before the model is asked. */
  async prompt(session: Session, userMessage: string): Promise<string> {
    if (!session.open) await this.begin(session);
    if (!session.known) return "";
    const { json } = await this.#call("user-prompt-submit", session, BOUNDS_MS.prompt, { project: session.project, userMessage });
    if (json?.sessionKnown === false) await this.begin(session, true);
    return typeof json?.inject === "string" ? json.inject : "";
  }

  async close(session: Session): Promise<void> {
    session.open = false;
    if (session.known && !this.#unsent.includes(session)) this.#unsent.push(session);
    await this.flush();
  }

  /** Send the ends for which no daemon listened; call it when the harness quits, too. */
  async flush(): Promise<void> {
    for (let session = this.#unsent[0]; session !== undefined; session = this.#unsent[0]) {
      const members = { cwd: session.project, transcript: session.turns.join("\n"), reason: "exit" };
      if ((await this.#call("session-end", session, BOUNDS_MS.end, members)).status === "away") return;
      Object.assign(session, { known: false, turns: [] });
      this.#unsent.shift();
    }
  }

  async #call(hook: string, session: Session, boundMs: number, members: Members): Promise<Answer> {
    const identity = {
      harness: "example",
      agentId: this.#agent,
      sessionKey: session.key,
      runtimePath: "plugin",
    };
    return this.#silent ? {} : this.#ask("POST", `/api/hooks/${hook}`, { ...identity, ...members }, boundMs);
  }

  async #ask(method: string, path: string, body: Members | undefined, boundMs: number): Promise<Answer> {
    // A new connection each time: if a kept one has been closed meanwhile, it is unknown whether the request arrived.
    const headers: Record<string, string> = { connection: "close", "content-type": "application/json" };
    headers["x-signet-runtime-path"] = "plugin";
    if (this.#token) headers.authorization = `Bearer ${this.#token}`;
    try {
      const sent = { method, headers, body: JSON.stringify(body), signal: AbortSignal.timeout(boundMs) };
      const answer = await fetch(this.#daemon + path, sent);
      const json: unknown = answer.ok ? await answer.json() : undefined;
      return { status: answer.status, json: typeof json === "object" && json !== null ? (json as Members) : undefined };
    } catch (error) {
      const { cause } = error as { cause?: { code?: string } };
      return { status: cause?.code === "ECONNREFUSED" ? "away" : undefined };
    }
  }
}
