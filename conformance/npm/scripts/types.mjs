// Generates the types in types/ from the kit's JSON Schemas, and copies the modules that the package shares with the
// kit's own hosts. With --check it only reports what is out of date.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { compile } from "json-schema-to-typescript";

const SCHEMAS = fileURLToPath(new URL("../../../schemas", import.meta.url));
const HOSTS = fileURLToPath(new URL("../../signet_conformance/drivers/hosts", import.meta.url));
const SOURCES = fileURLToPath(new URL("../src", import.meta.url));
const TYPES = fileURLToPath(new URL("../types", import.meta.url));
/** For each file of types, its schema and the name of its outermost type. */
const TABLE = {
  driver: ["driver/signet-driver-1", "Line"],
  adapter: ["driver/signet-adapter-1", "Call"],
  report: ["report/signet-report-1", "Report"],
  scenario: ["scenario/signet-scenario", "Scenario"],
  settings: ["settings/signet-settings", "Settings"],
};
/** Copied because an npm package cannot hold a file from outside its folder. */
const SHARED = ["lateness.mjs", "sent.mjs"];
const check = process.argv.includes("--check");
let stale = 0;

function renew(path, text, origin) {
  if (existsSync(path) && readFileSync(path, "utf8") === text) return;
  stale += 1;
  if (check) console.error(`${basename(dirname(path))}/${basename(path)} is not what ${origin} says; run: npm run types`);
  else writeFileSync(path, text);
}

for (const name of SHARED) renew(join(SOURCES, name), readFileSync(join(HOSTS, name), "utf8"), `drivers/hosts/${name}`);
for (const [name, [schema, type]] of Object.entries(TABLE)) {
  const document = JSON.parse(readFileSync(join(SCHEMAS, `${schema}.schema.json`), "utf8"));
  const bannerComment = `// Made from schemas/${schema}.schema.json by \`npm run types\`; not to be changed by hand.`;
  const text = await compile({ ...document, title: type }, type, { bannerComment, additionalProperties: true, cwd: join(SCHEMAS, schema, "..") });
  renew(join(TYPES, `${name}.d.ts`), text, `schemas/${schema}.schema.json`);
}
process.exitCode = check && stale > 0 ? 1 : 0;
