// Registers one test per requirement, with node:test, vitest, or any runner that has a function `test(name, body)`.

import { spawn } from "node:child_process";

import { findKit, runnerOf } from "./kit.mjs";

const FAILS = ["FAIL", "ERROR"];
const TESTED = ["PASS", "WARN", ...FAILS];
const NOTHING_TESTED = 3;

/**
 * Drive a target once and register a test for each requirement. The test of a breached requirement fails with the
 * evidence; that of an untested one is skipped with the reason. If the run itself fails, a test of its own says so.
 *
 * `test` is the test function of the runner (default: that of node:test); `options` are further words for
 * `signet-conformance run`; `strict` lets a SHOULD fail too. Await it: tests have to be known before the runner begins.
 */
export async function conformance({ target, test, options = [], strict = false, cwd = process.cwd(), env = process.env }) {
  const { skip, run } = await runner(test);
  const outcome = await drive(target, options, cwd, env);
  if (outcome.report === undefined || outcome.status === NOTHING_TESTED) {
    run(`${target} can be driven`, () => {
      throw new Error(outcome.errors || `signet-conformance run ${target} ended with status ${outcome.status} and printed no error`);
    });
    return;
  }
  const known = knownFailures(outcome.report);
  for (const [id, { verdict, reason, findings }] of Object.entries(outcome.report.together)) {
    const name = `${id} ${titleOf(outcome.report, id)}`.trim();
    if (!TESTED.includes(verdict)) skip(name, `${verdict}: ${reason}`);
    else run(name, () => known.has(id) || judge(id, verdict, findings[0], strict));
  }
}

/** The requirements whose breaches are all known failures. */
function knownFailures({ causes = [] }) {
  const named = (cause) => [cause, ...cause.also].map((it) => it.requirement);
  const fresh = new Set(causes.filter((cause) => !cause.known).flatMap(named));
  return new Set(causes.flatMap(named).filter((id) => !fresh.has(id)));
}

function titleOf(report, id) {
  return report.traces.find((trace) => trace.verdicts[id]?.title)?.verdicts[id].title ?? "";
}

function judge(id, verdict, finding, strict) {
  if (!FAILS.includes(verdict) && !(strict && verdict === "WARN")) return;
  const error = new Error(evidenceOf(id, verdict, finding));
  error.name = "AssertionError";
  // The stack would lead into this file, but the defect is in the connector.
  error.stack = `${error.name}: ${error.message}`;
  throw error;
}

function evidenceOf(id, verdict, finding = {}) {
  const at = finding.exchanges?.length ? `${finding.file} #${finding.exchanges[0]}` : finding.file;
  const shown = (value) => (typeof value === "string" ? value : JSON.stringify(value));
  const rows = [["in", at], ["at", finding.pointer], ["expected", finding.expected], ["received", finding.received], ["explain", `${runnerOf(process.env)} signet-conformance explain ${id}`]];
  const lines = rows.filter(([, value]) => value !== undefined && value !== null && value !== "").map(([label, value]) => `  ${label}: ${shown(value)}`);
  return [`${verdict} ${id}: ${finding.message ?? "see the report"}`, ...lines].join("\n");
}

async function runner(test) {
  const run = test ?? (await import("node:test")).test;
  // node:test takes the reason with the option; vitest has test.skip and shows the name alone.
  const skip = test?.skip ? (name, why) => test.skip(`${name} (${why})`, () => {}) : (name, why) => run(name, { skip: why }, () => {});
  return { run, skip };
}

async function drive(target, options, cwd, env) {
  const kit = await findKit(env, cwd);
  return new Promise((resolve) => {
    const child = spawn(kit, ["run", target, "--json", ...options], { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
    const out = [], errors = [];
    child.stdout.on("data", (chunk) => out.push(chunk));
    child.stderr.on("data", (chunk) => errors.push(chunk));
    child.on("error", (error) => resolve({ status: null, errors: error.message }));
    child.on("close", (status) => resolve({ status, report: parse(Buffer.concat(out)), errors: Buffer.concat(errors).toString() }));
  });
}

function parse(bytes) {
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch {
    return undefined;
  }
}
