// Facts about createDriver: what the kit sends is answered as the protocol says, whatever the connector does.

import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { test } from "node:test";

import { createDriver } from "../src/driver.mjs";

/** What a driver answers to some requests, one after the other; `go` is sent whenever the model would be called. */
async function answers(handlers, ...requests) {
  const input = new PassThrough(), output = new PassThrough();
  const told = [], waiting = [...requests.map((request, index) => ({ id: index + 1, ...request })), { id: "last", op: "exit" }];
  const next = () => input.write(`${JSON.stringify(waiting.shift())}\n`);
  output.on("data", (chunk) => {
    for (const line of String(chunk).trim().split("\n")) {
      const message = JSON.parse(line);
      told.push(message);
      if (message.event !== undefined) input.write('{"op": "go"}\n');
      else if (waiting.length > 0) next();
    }
  });
  next();
  await createDriver(handlers, { input, output });
  return told;
}

const HELLO = { op: "hello", events: ["model"] };
const step = (name, more = {}) => ({ op: "step", step: { step: name, session: "s1", ...more } });

test("hello names the steps there is a function for", async () => {
  const [hello] = await answers({ start: () => ({}), end: () => {}, answered: () => {} }, HELLO);
  assert.deepEqual(hello.result, { protocol: "signet-driver/1", steps: ["start", "end"] });
});

test("what is handed over is told before the connector has it", async () => {
  const order = [];
  const told = await answers({
    start: () => { order.push("start"); },
    tool: ({ arguments: given }) => { order.push(given); return "saved"; },
    tools: { memory_store: ["content"] },
    folder: ({ project }) => project,
  }, { op: "hello", events: ["handover"] }, step("start", { project: "/w" }), step("tool", { tool: "memory_store", arguments: { content: "c", tags: "t" } }), step("tool", { tool: "memory_get", arguments: {} }));
  const events = told.filter((message) => message.event !== undefined);
  assert.deepEqual(events, [{ event: "handover", session: "s1", folder: "/w" }, { event: "handover", session: "s1", arguments: { content: "c" } }]);
  assert.deepEqual(order, ["start", { content: "c" }]);
  assert.deepEqual(told[0].result.tells, ["handover"]);
  assert.match(told.at(-2).result.skipped, /memory_get/);
});

test("a connector that cannot be loaded is a finding and no crash", async () => {
  const [hello] = await answers({ load: () => { throw new Error("no such plugin"); } }, HELLO);
  assert.equal(hello.ok, true);
  assert.equal(hello.result.loaded, false);
  assert.match(hello.result.words, /no such plugin/);
});

test("a function is given its session, and the model's turn lies between prompt and answered", async () => {
  const order = [];
  const told = await answers({
    start: ({ agent }) => ({ key: `key of ${agent}` }),
    prompt: ({ text }, session) => { order.push(`prompt ${session.key}`); return `injected for ${text}`; },
    answered: ({ reply }) => { order.push(`answered ${reply}`); },
  }, HELLO, step("start", { agent: "a" }), step("prompt", { text: "hi", reply: "yes" }));
  assert.deepEqual(order, ["prompt key of a", "answered yes"]);
  assert.deepEqual(told.map((it) => it.event ?? it.id), [1, 2, "model", 3, "last"]);
  assert.equal(told[1].result.key, "key of a");
  assert.equal(told[3].result.injected, "injected for hi");
});

test("what a function throws is told of the connector, and the turn takes place", async () => {
  const told = await answers({ start: () => ({}), prompt: () => { throw new TypeError("broken"); } }, HELLO, step("start"), step("prompt", { text: "hi" }));
  const answer = told.find((it) => it.id === 3);
  assert.equal(answer.ok, true);
  assert.equal(answer.result.calls[0].event, "prompt");
  assert.match(answer.result.calls[0].thrown, /TypeError: broken/);
  assert.ok(told.some((it) => it.event === "model"));
});

test("what the connector prints in a step is told with its answer", async () => {
  const told = await answers({ start: () => { process.stderr.write("Bearer t-1\n"); }, end: () => {} }, HELLO, step("start"), step("end"));
  assert.deepEqual(told.slice(1, 3).map(({ result }) => result.printed), ["Bearer t-1\n", undefined]);
});

test("a step without a function is skipped, one of a session that is not open is an error", async () => {
  const told = await answers({ start: () => ({}), end: () => {} }, HELLO, step("compact"), step("end"));
  assert.match(told[1].result.skipped, /compact/);
  assert.equal(told[2].ok, false);
  assert.match(told[2].error.message, /s1 is not open/);
});

test("how long a function took is told, and for how long the machine kept it waiting", async () => {
  const ran = (since) => { const { user, system } = process.cpuUsage(since); return (user + system) / 1000; };
  // Other threads of the process may work at the same time.
  const work = () => { const [since, began] = [process.cpuUsage(), performance.now()]; while (ran(since) < 120 || performance.now() - began < 120); };
  const [, answer] = await answers({ start: () => ({}), prompt: work }, step("start"), step("prompt", { text: "q" }));
  const [call] = answer.result.calls;
  assert.equal(call.event, "prompt");
  assert.ok(call.ms >= 119, `${call.ms} ms`);
  // Its own work is no lateness.
  assert.ok(call.late_ms >= 0 && call.late_ms <= call.ms - 118, `${call.late_ms} of ${call.ms} ms`);
});

test("a compaction is played by its halves unless it has a function of its own", async () => {
  const played = [];
  const halves = { start: () => ({}), pre_compaction: ({ step: name }) => { played.push(name); }, compaction_complete: ({ step: name, summary }) => { played.push(name, summary); } };
  const [hello, , compacted] = await answers(halves, HELLO, step("start"), step("compact", { summary: "all" }));
  assert.deepEqual(hello.result.steps, ["start", "compact", "pre_compaction", "compaction_complete"]);
  assert.deepEqual(Object.keys(compacted.result), ["calls"]);
  assert.deepEqual(played, ["pre_compaction", "compaction_complete", "all"]);
  await answers({ ...halves, compact: () => { played.push("compact"); } }, HELLO, step("start"), step("compact"));
  assert.equal(played.at(-1), "compact");
  const [, , skipped] = await answers({ start: () => ({}), pre_compaction: () => {} }, HELLO, step("start"), step("compact"));
  assert.match(skipped.result.skipped, /compact/);
});

test("a session that is resumed keeps what was made of it unless the function makes another", async () => {
  const seen = [];
  await answers({ start: () => ({ n: 1 }), resume: () => {}, end: (_, session) => { seen.push(session.n); } }, HELLO, step("start"), step("resume"), step("end"));
  assert.deepEqual(seen, [1]);
});

test("an unknown step is refused, and the error lists the known ones", async () => {
  await assert.rejects(createDriver({ submit: () => {} }, { input: new PassThrough(), output: new PassThrough() }), /submit is not a step; steps are start, prompt/);
});
