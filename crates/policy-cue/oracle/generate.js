// Writes questions of the generator for `oracle.js`: `node generate.js COUNT SEED`.

import { generate } from "./families/generated.js";
import { shared } from "./families/inputs.js";

for (const [id, { program, inputs }] of generate(Number(process.argv[2]), Number(process.argv[3])).entries()) {
  process.stdout.write(`${JSON.stringify({ id, program, inputs: shared[inputs], outputPath: "patches" })}\n`);
}
