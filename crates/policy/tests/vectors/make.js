#!/usr/bin/env node
// Renders the templates and evaluates the programs with CUE v0.4.3. Writes templates.jsonl, inputs.json and vectors.jsonl to this folder.
//
//     (cd ../../../policy-cue/oracle && npm ci) && node make.js

import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { evaluate } from "../../../policy-cue/oracle/cue.js";
import * as objects from "./objects.js";
import * as templates from "./templates.js";

const here = (name) => new URL(name, import.meta.url);

const json = JSON.stringify;

const found = (x) => ({ apiVersion: "v1", kind: "Odd", metadata: { name: "a" }, spec: x === undefined ? {} : { x } });
const other = (y) => ({ spec: y === undefined ? {} : { y } });

/** The inputs `data` by name. */
const inputs = {};
const groups = {};
const group = (name, entries) => {
  groups[name] = Object.keys(entries).map((key) => `${name}/${key}`);
  for (const [key, data] of Object.entries(entries)) inputs[`${name}/${key}`] = data;
};
const referred = { oldObject: { spec: { replicas: 3 } }, extraParams: { otherObject: { metadata: { labels: { "example.com/team": "t" } }, data: { 0: "zero" } }, http: { body: { items: [{ name: "n" }] } } } };
const each = (entries, make) => Object.fromEntries(Object.entries(entries).map(([name, entry]) => [name, make(entry)]));
group("described", { ...each(objects.described, (object) => ({ object, ...referred })), "nothing-referred": { object: objects.pod(), oldObject: null, extraParams: {} }, "odd-references": { object: objects.pod({}, { annotations: { a: "b" } }), oldObject: { spec: { replicas: null } }, extraParams: { otherObject: null, http: { body: "x" } } } });
for (const name of ["workloads", "resources", "quantities", "tolerating", "attracted"]) group(name, each(objects[name], (object) => ({ object, oldObject: {}, extraParams: {} })));
group("values", Object.fromEntries(objects.values.map((value, place) => [place, { object: found(value), oldObject: {}, extraParams: {} }])));

const pairs = {};
const interesting = [undefined, null, "", "abc", "abd", 3, "3", "3.0", 6, 1.5, true, "true", ["a", 3, null], [], {}, { k: "abc" }];
const left = [undefined, null, "abc", 3, "3", 3.0, "03", true, "a", [], 4.5];
left.forEach((x, i) => interesting.forEach((y, j) => { pairs[`${i}-${j}`] = { object: found(x), oldObject: {}, extraParams: { otherObject: other(y) } }; }));
group("pairs", pairs);
const from = found("abc");
group("sources", {
  all: { object: { ...from, metadata: { name: "a", annotations: { "example.com/keep": "" }, labels: { "app.kubernetes.io/name": "abc" } } }, oldObject: from, extraParams: { otherObject: from, otherObject_d: from, http: { body: from }, http_d: { body: from } } },
  none: { object: { ...found(undefined), metadata: { name: "a", annotations: null } }, oldObject: null, extraParams: {} },
  others: { object: from, oldObject: found("x"), extraParams: { otherObject: found("x"), otherObject_d: found("x"), http: { body: found("x") }, http_d: { body: [] } } },
  nothing: { object: objects.pod(), oldObject: {}, extraParams: { otherObject: null, otherObject_d: null, http: null, http_d: null } },
  latest: { object: objects.pod({ containers: [{ name: "a", image: "a:latest" }] }), oldObject: {}, extraParams: {} },
});

const all = [
  ...templates.overrides.map((it) => ({ ...it, outputPath: "patches" })),
  ...templates.constants.map((it) => ({ ...it, on: ["values"], outputPath: "validate" })),
  ...templates.references.map((it) => ({ ...it, on: ["pairs"], outputPath: "validate" })),
  ...templates.sources.map((it) => ({ ...it, on: ["sources"], outputPath: "validate" })),
];
const rendered = execFileSync("cargo", ["run", "--quiet", "--package", "policy", "--example", "render"], { input: all.map(({ template }) => `${json(template)}\n`).join(""), maxBuffer: 1 << 28 });
const programs = String(rendered).trimEnd().split("\n").map((line) => JSON.parse(line));

const wrong = programs.flatMap(({ problems = [] }, place) => problems.map((problem) => `${all[place].name}: ${problem}`));
if (wrong.length) throw new Error(wrong.join("\n"));

const known = [];
const vectors = [];
for (const [place, { name, on, template, outputPath }] of all.entries()) {
  const { program } = programs[place];
  known.push(json({ name, template, program }));
  for (const input of on.flatMap((group) => groups[group])) {
    const { outcome, output, message } = await evaluate({ program, inputs: { data: inputs[input] }, outputPath });
    if (outcome !== "value") console.error(`${name} ${input}: ${outcome}: ${message}`);
    const result = output === undefined ? "" : `,"output":${output}`;
    vectors.push(`{"template":${json(name)},"input":${json(input)}${outcome === "value" ? "" : `,"outcome":${json(outcome)}`}${result}}`);
  }
}
writeFileSync(here("templates.jsonl"), `${known.join("\n")}\n`);
writeFileSync(here("inputs.json"), `${json(inputs)}\n`);
writeFileSync(here("vectors.jsonl"), `${vectors.join("\n")}\n`);
console.log(`${known.length} templates, ${Object.keys(inputs).length} inputs, ${vectors.length} vectors`);
process.exit(0);
