// A harness in JavaScript: one session, a turn for each PROMPT, on the memory of the Signet daemon.
//   node harness.mjs PROJECT PROMPT...
// It starts the adapter and speaks to it over HTTP; only the model is left to you.
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { createInterface } from "node:readline";

const [project, ...prompts] = process.argv.slice(2);
const model = async (context, prompt) => `You said ${prompt}, and I know ${context.length} characters.`;

const words = ["adapter", "--harness", "acme-shell", "--until-stdin-closes"];
const adapter = spawn(process.env.SIGNET_HARNESS ?? "signet-harness", words, { stdio: ["pipe", "pipe", "inherit"] });
const ended = new Promise((resolve) => adapter.once("close", resolve));
const ready = await new Promise((resolve) => createInterface({ input: adapter.stdout }).once("line", resolve));
const { url } = JSON.parse(ready);

async function call(method, params) {
  const answer = await fetch(`${url}/${method}`, { method: "POST", body: JSON.stringify({ ...session, ...params }) });
  const result = await answer.json();
  if (!answer.ok) throw new Error(`${method}: ${result.error}`);
  return result; // if the daemon is away, `failure` says so and nothing is injected: the turn goes on
}

const session = { sessionKey: randomUUID(), agentId: "atlas-agent", project };
const transcript = [];
const { inject } = await call("onSessionStart", { source: "startup" });
for (const prompt of prompts) {
  const lastAssistantMessage = transcript.at(-1)?.content;
  const turn = await call("onUserPromptSubmit", { prompt, lastAssistantMessage });
  const content = await model(`${inject}\n${turn.inject}`, prompt);
  transcript.push({ role: "user", content: prompt }, { role: "assistant", content });
  console.log(content);
}
await call("onSessionEnd", { reason: "exit", transcript: transcript.map((line) => JSON.stringify(line)).join("\n") });
adapter.stdin.end(); // the adapter ends open sessions, and then itself
process.exitCode = await ended;
