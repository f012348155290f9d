#!/usr/bin/env node
// Reads JSON lines `{id, program, inputs, outputPath}` and writes `{id, outcome, output?, message?}` for each. `output` is JSON.
//
//     npm ci && echo '{"id": 1, "program": "patches: [x], x: _", "inputs": {"x": 1}, "outputPath": "patches"}' | node oracle.js

import { createInterface } from "node:readline";
import { evaluate } from "./cue.js";

for await (const line of createInterface({ input: process.stdin })) {
  if (!line.trim()) continue;
  const question = JSON.parse(line);
  const { output, ...rest } = await evaluate(question);
  const head = JSON.stringify({ id: question.id, ...rest });
  // Keep CUE's text: JSON.parse would round its numbers.
  process.stdout.write(output === undefined ? `${head}\n` : `${head.slice(0, -1)},"output":${output}}\n`);
}
process.exit(0);
