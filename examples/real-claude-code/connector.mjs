#!/usr/bin/env node
// A tiny connector of hooks for Claude Code: its installer, and the command that the hooks run.
//   install(folder)          writes the hooks into the user's settings, as a set-up program would
//   connector.mjs hook VERB  is one hook: JSON on standard input, what Claude Code is to add on standard output

import { mkdir, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";

const COMMAND = "example-memory";
const HOOKS = { SessionStart: "session-start", UserPromptSubmit: "user-prompt-submit", SessionEnd: "session-end" };
const BOUND_MS = { "session-start": 3000, "user-prompt-submit": 2000, "session-end": 3000 };

export async function install() {
  const hooks = Object.fromEntries(
    Object.entries(HOOKS).map(([event, verb]) => [
      event,
      [{ hooks: [{ type: "command", command: `${COMMAND} hook ${verb}`, timeout: 10 }] }],
    ]),
  );
  const folder = join(homedir(), ".claude");
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "settings.json"), JSON.stringify({ hooks }, null, 2));
  return { success: true, message: "hooks installed" };
}

export const connector = { install };

async function hook(verb) {
  const { SIGNET_DAEMON_URL, SIGNET_AGENT_ID = "default", SIGNET_BYPASS, SIGNET_TOKEN } = process.env;
  const told = JSON.parse(await text(process.stdin));
  if (SIGNET_BYPASS === "1") return;
  const body = {
    harness: "claude-code",
    runtimePath: "legacy",
    agentId: SIGNET_AGENT_ID,
    sessionKey: told.session_id,
    ...(verb === "session-end" ? { cwd: told.cwd, transcriptPath: told.transcript_path } : { project: told.cwd }),
    ...(verb === "user-prompt-submit" ? { userMessage: told.prompt } : {}),
  };
  const headers = { "content-type": "application/json", "x-signet-runtime-path": "legacy" };
  if (SIGNET_TOKEN) headers.authorization = `Bearer ${SIGNET_TOKEN}`;
  const answer = await fetch(`${SIGNET_DAEMON_URL}/api/hooks/${verb}`, {
    method: "POST",
    headers,
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(BOUND_MS[verb]),
  });
  const said = answer.ok ? await answer.json() : {};
  if (typeof said?.inject === "string") process.stdout.write(said.inject);
}

async function text(stream) {
  let whole = "";
  for await (const chunk of stream) whole += chunk;
  return whole;
}

if (process.argv[2] === "hook") {
  try {
    await hook(process.argv[3]);
  } catch (error) {
    // A daemon that is away must not take the user's turn away.
    process.stderr.write(`[example] ${error.message}\n`);
  }
}
