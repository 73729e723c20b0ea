#!/usr/bin/env node
// A tiny connector of hooks for Claude Code: its installer, and the command that the hooks run.
//   install(folder)          writes the hooks into the user's settings, as a set-up program would
//   connector.mjs hook VERB  is one hook: JSON on standard input, what Claude Code is to add on standard output

import { mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";

const COMMAND = "example-memory";
const HOOKS = { SessionStart: "session-start", UserPromptSubmit: "user-prompt-submit", SessionEnd: "session-end" };
const BOUND_MS = { "session-start": 3000, "user-prompt-submit": 2000, "session-end": 3000 };
/** Each hook is a process of its own: what the next one must know of a session is in a file. */
const SESSIONS = join(homedir(), ".claude", COMMAND);
const { SIGNET_DAEMON_URL, SIGNET_AGENT_ID = "default", SIGNET_BYPASS, SIGNET_TOKEN } = process.env;

/** Add the hooks to the user's settings, in place of those of an older release; what others wrote there stays. */
export async function install() {
  const folder = join(homedir(), ".claude");
  const file = join(folder, "settings.json");
  // Settings that are no JSON are refused: they are the user's to mend.
  const settings = JSON.parse(await readFile(file, "utf8").catch(() => "{}"));
  const hooks = { ...settings.hooks };
  for (const [event, verb] of Object.entries(HOOKS)) {
    const others = (hooks[event] ?? []).filter((group) => !JSON.stringify(group).includes(`${COMMAND} hook `));
    hooks[event] = [...others, { hooks: [{ type: "command", command: `${COMMAND} hook ${verb}`, timeout: 10 }] }];
  }
  await mkdir(folder, { recursive: true });
  await writeFile(file, JSON.stringify({ ...settings, hooks }, null, 2));
  return { success: true, message: "hooks installed" };
}

export const connector = { install };

/** What is injected. A session is `known` once a start was sent, `open` once it was answered. */
async function hook(verb, { session_id: key, cwd, prompt, source, transcript_path: transcriptPath }) {
  const session = { key, cwd, ...(await load(key)) };
  if (session.refused) return "";
  if (verb === "session-end") {
    if (session.known) await end({ ...session, owed: { transcriptPath, reason: "exit" } });
    return "";
  }
  // A compaction goes on with the session that the daemon knows.
  if (verb === "session-start") return session.open && source === "compact" ? "" : start(session);
  const first = session.open ? "" : await start(session);
  // A prompt of images alone has no text, and the daemon refuses it.
  if (!session.known || session.refused || prompt.trim() === "") return first;
  const { said } = await call("user-prompt-submit", session, { project: cwd, userMessage: prompt });
  const again = said?.sessionKnown === false ? await start(session, true) : "";
  return [first, again, injected(said)].filter(Boolean).join("\n");
}

/** `answers`: the daemon has just answered, so that no probe is needed. */
async function start(session, answers = false) {
  if (!answers && (await ask("GET", "/health", undefined, BOUND_MS["session-start"])).said === undefined) return "";
  for (const name of await readdir(SESSIONS).catch(() => [])) {
    const other = await load(name);
    if (other.owed) await end(other);
  }
  const { status, said } = await call("session-start", session, { project: session.cwd });
  Object.assign(session, { known: true, open: said !== undefined, refused: status === 409, owed: undefined });
  await save(session);
  return injected(said);
}

/** Tell the end; one that found nothing listening is told when the daemon is back. */
async function end(session) {
  const { status } = await call("session-end", session, { cwd: session.cwd, ...session.owed });
  if (status === "away") await save({ ...session, open: false });
  else await rm(join(SESSIONS, session.key), { force: true });
}

async function call(verb, session, members) {
  const identity = { harness: "claude-code", runtimePath: "legacy", agentId: SIGNET_AGENT_ID, sessionKey: session.key };
  return ask("POST", `/api/hooks/${verb}`, { ...identity, ...members }, BOUND_MS[verb]);
}

/** The status of an answer, "away" when nothing listened, and its JSON if it was a good one. */
async function ask(method, path, body, boundMs) {
  const headers = { "content-type": "application/json", "x-signet-runtime-path": "legacy" };
  if (SIGNET_TOKEN) headers.authorization = `Bearer ${SIGNET_TOKEN}`;
  try {
    const sent = { method, headers, body: JSON.stringify(body), signal: AbortSignal.timeout(boundMs) };
    const answer = await fetch(SIGNET_DAEMON_URL + path, sent);
    const said = answer.ok ? await answer.json() : undefined;
    return { status: answer.status, said: typeof said === "object" && said !== null ? said : undefined };
  } catch (error) {
    // A daemon that is away must not take the user's turn away.
    process.stderr.write(`[example] ${error.message}\n`);
    return { status: error.cause?.code === "ECONNREFUSED" ? "away" : undefined };
  }
}

const injected = (said) => (typeof said?.inject === "string" ? said.inject : "");
const load = async (key) => JSON.parse(await readFile(join(SESSIONS, key), "utf8").catch(() => "{}"));

async function save(session) {
  await mkdir(SESSIONS, { recursive: true });
  await writeFile(join(SESSIONS, session.key), JSON.stringify(session));
}

if (process.argv[2] === "hook" && SIGNET_BYPASS !== "1") {
  let told = "";
  for await (const chunk of process.stdin) told += chunk;
  process.stdout.write(await hook(process.argv[3], JSON.parse(told)));
}
