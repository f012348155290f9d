// Evaluates programs with CUE v0.4.3 from the npm package `cue-wasm` 1.0.0, like the documented admission webhook: builds the program with
// its inputs, fails on any error, and extracts one field.

import { init } from "cue-wasm";

let cue = await init();

/** The field that contains the program, so that only its output is converted to JSON. No program uses this name. */
const PROGRAM = "_oracle_program";
const OUTPUT = "oracle_output";
/** The maximum length in characters. */
const LONGEST_MESSAGE = 160;

/** Splits a file into the imports at its start, and the rest. */
export function divide(source) {
  let at = 0;
  let imports = "";
  for (;;) {
    const space = /^(?:\s|\/\/[^\n]*(?:\n|$))+/.exec(source.slice(at));
    if (space) at += space[0].length;
    const found = /^import\b[ \t]*(?:\([^)]*\)|(?:[A-Za-z_]\w*[ \t]+)?"[^"\n]*")[ \t]*[,;]?/.exec(source.slice(at));
    if (!found) return { imports, body: source.slice(at) };
    imports += `${found[0].replace(/[,;]$/, "")}\n`;
    at += found[0].length;
  }
}

/** Returns a file with the program, and its inputs unified with its fields. */
function wrap(program, inputs) {
  const { imports, body } = divide(program);
  const given = Object.entries(inputs).map(([name, value]) => `${PROGRAM}: {${JSON.stringify(name)}: ${JSON.stringify(value)}}\n`);
  return `${imports}${PROGRAM}: {\n${body}\n}\n${given.join("")}`;
}

/** Incomplete, unless an earlier error changed how this instance treats cycles, as 0.4.3 does in `AddChildError`. */
const CYCLE = "_cycle: {a: b + 1, b: a + 1}";

/** Returns the result of the instance; undefined if it panicked, now or before. */
function call(source) {
  try {
    return cue.toJSONImpl(source);
  } catch {
    return undefined;
  }
}

/** Replaces the instance if an earlier evaluation changed it. */
async function renew() {
  if (call(CYCLE)?.value === "{}") return;
  delete globalThis.CueWasmAPI.full;
  cue = await init();
}

async function ask(source) {
  await renew();
  const answer = call(source);
  if (!answer) return { panicked: true, error: "CUE itself panicked" };
  const { value, error } = answer;
  return error ? { error: String(error).slice(0, LONGEST_MESSAGE) } : { value };
}

/**
 * Returns `{outcome: "value", output}`, or `absent`, `incomplete` or `error`; `unknown` if a guard at the top level is incomplete, or CUE
 * panics. The output is CUE's text, to keep its numbers exact.
 */
export async function evaluate({ program, inputs = {}, outputPath }) {
  const source = wrap(program, inputs);
  const built = await ask(source);
  if (built.error) return { outcome: built.panicked ? "unknown" : "error", message: built.error };
  const output = await ask(`${source}${OUTPUT}: ${PROGRAM}.${outputPath}\n`);
  if (!output.error) return { outcome: "value", output: output.value.slice(`{"${OUTPUT}":`.length, -1) };
  const names = await ask(`${source}${OUTPUT}: [for name, _ in ${PROGRAM} if name == ${JSON.stringify(outputPath)} {name}]\n`);
  if (names.value === `{"${OUTPUT}":[]}`) return { outcome: "absent" };
  // CUE cannot select from such a program, although Go's API can look up the output.
  const whole = await ask(`${source}${OUTPUT}: ${PROGRAM} != _|_\n`);
  const outcome = whole.value === `{"${OUTPUT}":true}` ? "incomplete" : "unknown";
  return { outcome, message: output.error };
}
