#!/usr/bin/env node
// Runs the kit's command from the npm package, with the same arguments, exit status and signals.

import { spawn } from "node:child_process";
import { constants } from "node:os";

import { findKit, KitError, runnerOf } from "../src/kit.mjs";

const USAGE = 2;

let kit;
try {
  kit = await findKit();
} catch (error) {
  if (!(error instanceof KitError)) throw error;
  process.stderr.write(`error: ${error.message}\n`);
  process.exit(USAGE);
}
const env = { SIGNET_CONFORMANCE_RUNNER: runnerOf(process.env), ...process.env };
const child = spawn(kit, process.argv.slice(2), { stdio: "inherit", env });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
  process.stderr.write(`error: ${kit}: ${error.message}\n`);
  process.exit(USAGE);
});
child.on("exit", (code, signal) => process.exit(code ?? 128 + (constants.signals[signal] ?? 0)));
