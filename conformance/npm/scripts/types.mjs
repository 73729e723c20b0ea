// Makes the types of types/ from the kit's JSON Schemas; with --check only tells whether they are up to date.

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { compile } from "json-schema-to-typescript";

const SCHEMAS = fileURLToPath(new URL("../../../schemas", import.meta.url));
const TYPES = fileURLToPath(new URL("../types", import.meta.url));
/** File of types to the schema it is made from, and the name of its outermost type. */
const TABLE = {
  driver: ["driver/signet-driver-1", "Line"],
  adapter: ["driver/signet-adapter-1", "Call"],
  report: ["report/signet-report-1", "Report"],
  scenario: ["scenario/signet-scenario", "Scenario"],
  settings: ["settings/signet-settings", "Settings"],
};
const check = process.argv.includes("--check");
let stale = 0;

for (const [name, [schema, type]] of Object.entries(TABLE)) {
  const document = JSON.parse(readFileSync(join(SCHEMAS, `${schema}.schema.json`), "utf8"));
  const bannerComment = `// Made from schemas/${schema}.schema.json by \`npm run types\`; not to be changed by hand.`;
  const text = await compile({ ...document, title: type }, type, { bannerComment, additionalProperties: true, cwd: join(SCHEMAS, schema, "..") });
  const path = join(TYPES, `${name}.d.ts`);
  const before = readdirSync(TYPES).includes(`${name}.d.ts`) ? readFileSync(path, "utf8") : "";
  if (before === text) continue;
  stale += 1;
  if (check) console.error(`types/${name}.d.ts is not what schemas/${schema}.schema.json says; run: npm run types`);
  else writeFileSync(path, text);
}
process.exitCode = check && stale > 0 ? 1 : 0;
