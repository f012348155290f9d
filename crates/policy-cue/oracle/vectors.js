// Asks CUE all that is in `families/`, or one of them, and writes `../tests/vectors`: `npm run vectors [FAMILY]`.

import { mkdirSync, writeFileSync } from "node:fs";
import { evaluate } from "./cue.js";
import { families } from "./families/index.js";
import { shared } from "./families/inputs.js";

const folder = new URL("../tests/vectors/", import.meta.url);
const only = process.argv[2];

mkdirSync(folder, { recursive: true });
writeFileSync(new URL("inputs.json", folder), `${JSON.stringify(shared)}\n`);
for (const [family, questions] of Object.entries(families)) {
  if (only && family !== only) continue;
  const seen = new Set();
  const lines = [];
  for (const question of questions) {
    const { program, inputs, outputPath = "patches" } = question;
    const key = JSON.stringify([program, inputs, outputPath]);
    if (seen.has(key)) continue;
    seen.add(key);
    const given = typeof inputs === "string" ? shared[inputs] : inputs;
    const { outcome, output, message } = await evaluate({ program, inputs: given, outputPath });
    const path = outputPath === "patches" ? {} : { outputPath };
    const head = JSON.stringify({ program, inputs, ...path, outcome, message });
    // As CUE writes it: JSON.parse would round its numbers.
    lines.push(output === undefined ? head : `${head.slice(0, -1)},"output":${output}}`);
  }
  writeFileSync(new URL(`${family}.jsonl`, folder), `${lines.join("\n")}\n`);
  console.log(`${family}: ${lines.length}`);
}
process.exit(0);
