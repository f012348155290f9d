// Evaluates the programs in `families/` with CUE and writes `../tests/vectors`: `npm run vectors`. To compare other generated programs, run
// `npm run vectors -- FOLDER COUNT SEED`, and then `POLICY_CUE_VECTORS=FOLDER cargo test -p policy-cue --test vectors`.

import { mkdirSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { evaluate } from "./cue.js";
import { generate } from "./families/generated.js";
import { families as kept } from "./families/index.js";
import { shared } from "./families/inputs.js";

const [target, count, seed] = process.argv.slice(2);
const folder = target ? pathToFileURL(`${resolve(target)}/`) : new URL("../tests/vectors/", import.meta.url);
const families = target  ? { generated: generate(Number(count), Number(seed)) } : kept;

mkdirSync(folder, { recursive: true });
writeFileSync(new URL("inputs.json", folder), `${JSON.stringify(shared)}\n`);
for (const [family, questions] of Object.entries(families)) {
  const seen = new Set();
  const lines = [];
  for (const question of questions) {
    const { program, inputs, outputPath = "patches" } = question;
    const key = JSON.stringify([program, inputs, outputPath]);
    if (seen.has(key)) continue;
    seen.add(key);
    const given = typeof inputs === "string" ? shared[inputs] : inputs;
    const { outcome, output, message } = await evaluate({ program, inputs: given, outputPath });
    if (outcome === "unknown") continue;
    const path = outputPath === "patches" ? {} : { outputPath };
    const head = JSON.stringify({ program, inputs, ...path, outcome, message });
    // Keep CUE's text: JSON.parse would round its numbers.
    lines.push(output === undefined ? head : `${head.slice(0, -1)},"output":${output}}`);
  }
  writeFileSync(new URL(`${family}.jsonl`, folder), `${lines.join("\n")}\n`);
  console.log(`${family}: ${lines.length}`);
}
process.exit(0);
