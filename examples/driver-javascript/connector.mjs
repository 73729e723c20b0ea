// A tiny connector: three hooks, bounded, silent if the daemon is away or the user has switched Signet off.

import { randomUUID } from "node:crypto";

const START_MS = 2000;
const PROMPT_MS = 1000;
const END_MS = 5000;
const { SIGNET_DAEMON_URL, SIGNET_AGENT_ID = "default", SIGNET_BYPASS, SIGNET_TOKEN } = process.env;
const silent = SIGNET_BYPASS === "1";
/** The status of the last answer; "away" if no daemon listened. */
let status;
/** Sessions whose end is still to be sent. */
const unsent = [];

/** What a harness calls: open a session, submit a prompt before the model's turn, close the session. */
export async function open(project) {
  return reopen({ key: randomUUID(), project, turns: [] });
}

export async function reopen(session) {
  await start(session);
  return session;
}

export async function prompt(session, userMessage) {
  if (!session.open) await start(session);
  if (!session.known) return "";
  const answer = await call("user-prompt-submit", session, PROMPT_MS, { project: session.project, userMessage });
  if (answer.sessionKnown === false) await start(session, true);
  return typeof answer.inject === "string" ? answer.inject : "";
}

export async function close(session) {
  session.open = false;
  if (session.known && !unsent.includes(session)) unsent.push(session);
  await flush();
}

/** Send the ends for which no daemon listened; call it when the harness quits, too. */
export async function flush() {
  while (unsent.length > 0) {
    const [session] = unsent;
    const transcript = session.turns.join("\n");
    await call("session-end", session, END_MS, { cwd: session.project, transcript, reason: "exit" });
    if (status === "away") return;
    Object.assign(session, { known: false, turns: [] });
    unsent.shift();
  }
}

/** `answers`: the daemon has just answered, so no probe is needed. */
async function start(session, answers = false) {
  if (session.refused) return;
  const healthy = answers || (!silent && (await ask("GET", "/health", undefined, START_MS)) !== null);
  if (healthy) await flush();
  // Once a start has been sent, the daemon may know the session, whatever it answered.
  session.known ||= healthy;
  const answer = healthy ? await call("session-start", session, START_MS, { project: session.project }) : {};
  session.open = Object.keys(answer).length > 0;
  // Another path holds the session: it is left alone.
  if (healthy && status === 409) Object.assign(session, { refused: true, known: false, open: false });
}

async function call(hook, session, boundMs, members) {
  const identity = { harness: "example", agentId: SIGNET_AGENT_ID, sessionKey: session.key, runtimePath: "plugin" };
  const answer = silent ? null : await ask("POST", `/api/hooks/${hook}`, { ...identity, ...members }, boundMs);
  return typeof answer === "object" && answer !== null ? answer : {};
}

async function ask(method, path, body, boundMs) {
  // A new connection each time: if a kept one has been closed meanwhile, it is unknown whether the request arrived.
  const headers = { connection: "close", "content-type": "application/json", "x-signet-runtime-path": "plugin" };
  if (SIGNET_TOKEN) headers.authorization = `Bearer ${SIGNET_TOKEN}`;
  status = undefined;
  try {
    const signal = AbortSignal.timeout(boundMs);
    const answer = await fetch(SIGNET_DAEMON_URL + path, { method, headers, body: body && JSON.stringify(body), signal });
    status = answer.status;
    return answer.ok ? await answer.json() : null;
  } catch (error) {
    if (error.cause?.code === "ECONNREFUSED") status = "away";
    return null;
  }
}
