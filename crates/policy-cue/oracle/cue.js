// CUE v0.4.3 as npm package `cue-wasm` 1.0.0 brings it, asked as the admission webhook of the document asks it: build the program with its
// inputs, refuse errors anywhere, then take one field out of it.

import { init } from "cue-wasm";

let cue = await init();

/** What the program is put into, so that its output alone becomes JSON. No program has this name. */
const PROGRAM = "_oracle_program";
const OUTPUT = "oracle_output";
/** In characters. */
const LONGEST_MESSAGE = 160;

/** What the comments, blanks and imports at the start of a file are, and what follows. */
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

/** One file that holds the program, and its inputs unified with its fields. */
function wrap(program, inputs) {
  const { imports, body } = divide(program);
  const given = Object.entries(inputs).map(([name, value]) => `${PROGRAM}: {${JSON.stringify(name)}: ${JSON.stringify(value)}}\n`);
  return `${imports}${PROGRAM}: {\n${body}\n}\n${given.join("")}`;
}

/** Incomplete, unless an error before has changed what this instance thinks of all cycles, as 0.4.3 does in `AddChildError`. */
const CYCLE = "_cycle: {a: b + 1, b: a + 1}";

/** What the instance answers; nothing if it panics, or has before. */
function call(source) {
  try {
    return cue.toJSONImpl(source);
  } catch {
    return undefined;
  }
}

/** An instance that no earlier question has changed. */
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
 * `{outcome: "value", output}`, or `absent`, `incomplete` or `error`; `unknown` where a guard at the top level is incomplete, or CUE panics.
 * The output stays the text that CUE writes, for its numbers.
 */
export async function evaluate({ program, inputs = {}, outputPath }) {
  const source = wrap(program, inputs);
  const built = await ask(source);
  if (built.error) return { outcome: built.panicked ? "unknown" : "error", message: built.error };
  const output = await ask(`${source}${OUTPUT}: ${PROGRAM}.${outputPath}\n`);
  if (!output.error) return { outcome: "value", output: output.value.slice(`{"${OUTPUT}":`.length, -1) };
  const names = await ask(`${source}${OUTPUT}: [for name, _ in ${PROGRAM} if name == ${JSON.stringify(outputPath)} {name}]\n`);
  if (names.value === `{"${OUTPUT}":[]}`) return { outcome: "absent" };
  // Then CUE lets nothing be selected from it. Whoever looks the output up through Go finds it all the same.
  const whole = await ask(`${source}${OUTPUT}: ${PROGRAM} != _|_\n`);
  const outcome = whole.value === `{"${OUTPUT}":true}` ? "incomplete" : "unknown";
  return { outcome, message: output.error };
}
