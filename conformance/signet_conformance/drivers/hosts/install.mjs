// Runs the installer of a connector as its setup command does: `install.mjs MODULE AGENTS_FOLDER [OPTIONS]`.

import { pathToFileURL } from "node:url";

const [modulePath, agentsFolder, options] = process.argv.slice(2);
const connector = await import(pathToFileURL(modulePath).href);
const candidates = Object.values(connector).flatMap((one) => {
  if (typeof one === "object" && one !== null) return [one];
  return typeof one === "function" && typeof one.prototype?.install === "function" ? [new one()] : [];
});
const installer = candidates.find((one) => typeof one.install === "function");
if (installer === undefined) throw new Error(`${modulePath} exports nothing with install(folder)`);
const result = await installer.install(agentsFolder, ...(options === undefined ? [] : [JSON.parse(options)]));
if (result?.success === false) throw new Error(`install() failed: ${result.message}`);
console.error(result?.message ?? "installed");
process.exit(0);
