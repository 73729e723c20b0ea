#!/usr/bin/env node
// A tiny connector of hooks for Claude Code: its installer, and the command that the hooks run.
//   install(folder)          writes the hooks into the user's settings, as a set-up program would
//   connector.mjs hook VERB  is one hook: JSON on standard input, text for Claude Code to add on standard output

import { mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";

const COMMAND = "example-memory";
const HOOKS = { SessionStart: "session-start", UserPromptSubmit: "user-prompt-submit", SessionEnd: "session-end" };
const BOUND_MS = { "session-start": 3000, "user-prompt-submit": 2000, "session-end": 3000 };
/** Each hook is a process of its own, so a session's state for the next one is in a file. */
const SESSIONS = join(homedir(), ".claude", COMMAND);
const { SIGNET_DAEMON_URL, SIGNET_AGENT_ID = "default", SIGNET_BYPASS, SIGNET_TOKEN } = process.env;

/** Add the hooks to the user's settings, in place of those of an older release; what others wrote there stays. */
export async function install() {
  const folder = join(homedir(), ".claude");
  const file = join(folder, "settings.json");
  // Settings that are not JSON are refused: the user has to repair them.
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

/** Returns the text to inject. A session is `known` once a start was sent, `open` once it was answered. */
async function hook(verb, { session_id: key, cwd, prompt, source, transcript_path: transcriptPath }) {
  const session = { key, cwd, ...(await load(key)) };
  if (session.refused) return "";
  if (verb === "session-end") {
    if (session.known) await end({ ...session, unsentEnd: { transcriptPath, reason: "exit" } });
    return "";
  }
  // After a compaction, the daemon still knows the session.
  if (verb === "session-start") return session.open && source === "compact" ? "" : start(session);
  const first = session.open ? "" : await start(session);
  // A prompt of images alone has no text, and the daemon refuses it.
  if (!session.known || session.refused || prompt.trim() === "") return first;
  const { json } = await call("user-prompt-submit", session, { project: cwd, userMessage: prompt });
  const again = json?.sessionKnown === false ? await start(session, true) : "";
  return [first, again, injected(json)].filter(Boolean).join("\n");
}

/** `answers`: the daemon has just answered, so no probe is needed. */
async function start(session, answers = false) {
  if (!answers && (await ask("GET", "/health", undefined, BOUND_MS["session-start"])).json === undefined) return "";
  for (const name of await readdir(SESSIONS).catch(() => [])) {
    const other = await load(name);
    if (other.unsentEnd) await end(other);
  }
  const { status, json } = await call("session-start", session, { project: session.cwd });
  Object.assign(session, { known: true, open: json !== undefined, refused: status === 409, unsentEnd: undefined });
  await save(session);
  return injected(json);
}

/** Send the end; if no daemon listens, keep it until the daemon is back. */
async function end(session) {
  const { status } = await call("session-end", session, { cwd: session.cwd, ...session.unsentEnd });
  if (status === "away") await save({ ...session, open: false });
  else await rm(join(SESSIONS, session.key), { force: true });
}

async function call(verb, session, members) {
  const identity = { harness: "claude-code", runtimePath: "legacy", agentId: SIGNET_AGENT_ID, sessionKey: session.key };
  return ask("POST", `/api/hooks/${verb}`, { ...identity, ...members }, BOUND_MS[verb]);
}

/** The status of an answer, or "away" if no daemon listened, and its JSON if it is no error. */
async function ask(method, path, body, boundMs) {
  const headers = { "content-type": "application/json", "x-signet-runtime-path": "legacy" };
  if (SIGNET_TOKEN) headers.authorization = `Bearer ${SIGNET_TOKEN}`;
  try {
    const sent = { method, headers, body: JSON.stringify(body), signal: AbortSignal.timeout(boundMs) };
    const answer = await fetch(SIGNET_DAEMON_URL + path, sent);
    const json = answer.ok ? await answer.json() : undefined;
    return { status: answer.status, json: typeof json === "object" && json !== null ? json : undefined };
  } catch (error) {
    // Without a daemon, the user's turn must still go on.
    process.stderr.write(`[example] ${error.message}\n`);
    return { status: error.cause?.code === "ECONNREFUSED" ? "away" : undefined };
  }
}

const injected = (json) => (typeof json?.inject === "string" ? json.inject : "");
const load = async (key) => JSON.parse(await readFile(join(SESSIONS, key), "utf8").catch(() => "{}"));

async function save(session) {
  await mkdir(SESSIONS, { recursive: true });
  await writeFile(join(SESSIONS, session.key), JSON.stringify(session));
}

if (process.argv[2] === "hook" && SIGNET_BYPASS !== "1") {
  let input = "";
  for await (const chunk of process.stdin) input += chunk;
  process.stdout.write(await hook(process.argv[3], JSON.parse(input)));
}
