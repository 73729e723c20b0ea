// signet-driver/1 in JavaScript: the harness of connector.mjs, played on standard input and output.

import { createInterface } from "node:readline";

import { close, flush, open, prompt, reopen } from "./connector.mjs";

const about = { protocol: "signet-driver/1", steps: ["start", "prompt", "end", "resume"] };
const sessions = new Map();
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const out = process.stdout.write.bind(process.stdout);
const write = (message) => out(`${JSON.stringify(message)}\n`);

/** What the connector has printed since the last answer; the kit looks for the token in it. */
let printed = "";
const log = process.stderr.write.bind(process.stderr);
for (const stream of [process.stdout, process.stderr]) {
  stream.write = (text, ...rest) => {
    printed += text;
    return log(text, ...rest);
  };
}

/** Tell the kit that the model would be called now, and wait until its mark is written. */
async function modelTurn(session) {
  write({ event: "model", session });
  await lines.next();
}

async function perform(step) {
  const session = sessions.get(step.session);
  if (step.step === "start") {
    sessions.set(step.session, await open(step.project ?? "/workspace"));
  } else if (step.step === "prompt") {
    const injected = await prompt(session, step.text);
    await modelTurn(step.session);
    session.turns.push(`User: ${step.text}`, `Assistant: ${step.reply ?? "Understood."}`);
    return { injected };
  } else if (step.step === "end") {
    await close(session);
  } else if (step.step === "resume") {
    await reopen(session);
  } else {
    return { skipped: `the connector does nothing at ${step.step}` };
  }
  return { key: sessions.get(step.session).key };
}

for await (const line of { [Symbol.asyncIterator]: () => lines }) {
  const { id, op, step } = JSON.parse(line);
  const began = performance.now();
  try {
    if (op === "flush") await flush();
    const result = op === "step" ? await perform(step) : about;
    write({ id, ok: true, ms: performance.now() - began, result: { ...result, printed } });
    printed = "";
  } catch (error) {
    write({ id, ok: false, error: { type: error.name, message: error.message } });
  }
  if (op === "exit") break;
}
process.exit(0);
