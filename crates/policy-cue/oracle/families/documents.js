// The documented programs and those of kinitiras' templates, for several fields and values.

const IMPORTS = `import (
    "strings"
    "strconv"
    "math"
    "list"
)`;
const HEAD = `${IMPORTS}
data:      _ @tag(data)
object:    data.object
kind:      object.kind
oldObject: data.oldObject
`;
const REFERENCES = { otherObject: 'otherObject: data.extraParams."otherObject"\n', http: 'http: data.extraParams."http"\n' };
const OBJECTS = ["pod", "bare", "deployment", "empty"];
const DATA = ["data", "bareData", "deploymentData"];

const ask = (program, inputs, outputPath = "patches") => inputs.map((name) => ({ program, inputs: name, outputPath }));

const override = (body, reference = "") =>
  ask(`${HEAD}${reference}unFlattenPatches: [\n${body}\n]\npatches: list.FlattenN(unFlattenPatches, -1)\n`, DATA);

const documented = [
  ask(`object: _ @tag(object)
reject: object.metadata.labels != null && object.metadata.labels["xxx.io/no-delete"] == "true"
validate: {
    if reject{
            reason: "operation rejected"
    }
    if !reject{
            reason: ""
    }
    valid: !reject
}
`, ["deployment", "pod"], "validate").map((question) => ({
    ...question,
    // The label exists: without it 0.4.3 fails, since it has no short circuit.
    inputs: { object: { metadata: { labels: { "xxx.io/no-delete": question.inputs === "pod" ? "true" : "false" } } } },
  })),
  ask(`object: _ @tag(object)
patches: [
  if object.metadata.annotations == _|_ {
    {
      op: "add"
      path: "/metadata/annotations"
      value: {}
    }
  },
  {
    op: "add"
    path: "/metadata/annotations/added-by"
    value: "cue"
  }
]
`, OBJECTS),
  ask(`// simple cue code
data: _ @tag(data)
object: data.object

patches: [
    if object.metadata.annotations == _|_ {
        {
        op: "add"
        path: "/metadata/annotations"
        value: {}
        }
    },
    {
        op: "add"
        path: "/metadata/annotations/added-by"
        value: "cue"
    }
]
`, DATA),
].flat();

const labels = [];
for (const member of ["annotations", "labels"]) {
  labels.push(
    ...override(`if object.metadata.${member} == _|_ {
    {
        op:    "replace"
        path:  "/metadata/${member}"
        value: {}
    }
},
{
    op:    "replace"
    path:  "/metadata/${member}/owner"
    value: "team \\"b\\""
},
`),
    ...override(`if object.metadata.${member}."owner" != _|_ {
    {op: "remove", path: "/metadata/${member}/owner"}
}`),
    ...override(`if object.metadata.${member} == _|_ { {op: "replace", path: "/metadata/${member}", value: {}} },
if object.metadata.name != _|_ { {op: "add", path: "/metadata/${member}/name", value: object.metadata.name} }`),
    ...override(`if otherObject.metadata.labels."app" != _|_ { {op: "add", path: "/metadata/${member}/app", value: otherObject.metadata.labels."app"} }`, REFERENCES.otherObject),
    ...override(`if otherObject.spec.replicas != _|_ { {op: "add", path: "/metadata/${member}/replicas", value: "\\(otherObject.spec.replicas)"} }`, REFERENCES.otherObject),
    ...override(`if http.body.name != _|_ { {op: "add", path: "/metadata/${member}/name", value: http.body.name} }`, REFERENCES.http),
    ...override(`if http.body.tags[1] != _|_ { {op: "add", path: "/metadata/${member}/tag", value: http.body.tags[1]} }`, REFERENCES.http),
    ...override(`if http.body.limit > 3 { {op: "add", path: "/metadata/${member}/limit", value: http.body.limit} }`, REFERENCES.http),
  );
}

const resources = [["Pod", "spec", "/spec"], ["Deployment", "spec.template.spec", "/spec/template/spec"]].map(([kind, spec, pointer]) => `if kind == "${kind}" {
    [
        if object.${spec}.containers[0].resources == _|_ {
            [{op: "replace", path: "${pointer}/containers/0/resources", value: {}}]
        },
        if object.${spec}.containers[0].resources.requests == _|_ {
            {op: "replace", path: "${pointer}/containers/0/resources/requests", value: {}}
        },
        if object.${spec}.containers[0].resources.limits == _|_ {
            {op: "replace", path: "${pointer}/containers/0/resources/limits", value: {}}
        },
    ]
},
if kind == "${kind}" {
    [{op: "replace", path: "${pointer}/containers/0/resources/limits/cpu", value: "100"}]
}`).join(",\n");

const oversell = (spec, pointer, factors) => `${HEAD}
cpuFactor: ${factors[0]}
memoryFactor: ${factors[1]}
isZeroCpuRequest: *false | bool
cpu: *0 | number
isMicroCpu: *false | bool
limits: object.${spec}.containers[0].resources.limits
if limits.cpu != _|_ {
    isMicroCpu: strings.HasSuffix(limits.cpu, "m")
    if isMicroCpu {
        cpu: strconv.Atoi(strings.TrimSuffix(limits.cpu, "m")) * 0.001 * cpuFactor
    }
    if !isMicroCpu {
        cpu: strconv.Atoi(limits.cpu) * cpuFactor
    }
}
memory: *0 | number
isMemoryWithUnit: *false | bool
if limits.memory != _|_ {
    isMemoryWithUnit: limits.memory !~ "^[0-9]+$"
    if isMemoryWithUnit {
${["Gi 1024*1024*1024", "G 1000*1000*1000", "Mi 1024*1024", "M 1000*1000", "Ki 1024", "K 1000", "Ti 1024*1024*1024*1024"]
  .map((line) => {
    const [unit, factor] = line.split(" ");
    return `        if strings.HasSuffix(limits.memory, "${unit}") {
            memory: strconv.Atoi(strings.TrimSuffix(limits.memory, "${unit}"))*${factor}*memoryFactor
        }`;
  })
  .join("\n")}
    }
    if !isMemoryWithUnit {
        memory: strconv.Atoi(limits.memory) * memoryFactor
    }
}
if limits.cpu == _|_ {
    isZeroCpuRequest: true
}
unFlattenPatches: [
    if object.${spec}.containers[0].resources.requests == _|_ {
        {op: "replace", path: "${pointer}/containers/0/resources/requests", value: {}}
    },
    if !isZeroCpuRequest {
        {op: "replace", path: "${pointer}/containers/0/resources/requests/cpu", value: strconv.FormatInt(math.Round(cpu*1000), 10) + "m"}
    },
    {op: "replace", path: "${pointer}/containers/0/resources/requests/memory", value: math.Round(memory)},
]
patches: list.FlattenN(unFlattenPatches, -1)
`;

const limited = (cpu, memory) => ({
  data: { object: { kind: "Pod", spec: { containers: [{ name: "a", resources: { limits: { ...(cpu && { cpu }), ...(memory && { memory }) } } }] } }, oldObject: {}, extraParams: {} },
});
const oversells = [];
for (const factors of [["0.5", "0.2"], ["0.3", "0.333"], ["0", "0"], ["1.5", "0.9999"]]) {
  const program = oversell("spec", "/spec", factors);
  for (const cpu of ["500m", "1", "16", "1.5", "333m", "", "x"]) {
    for (const memory of ["1Gi", "512Mi", "1000000", "1G", "3K", "1.5Gi", "2Ti", ""]) {
      oversells.push({ program, inputs: limited(cpu, memory) });
    }
  }
  oversells.push(...ask(program, DATA), ...ask(oversell("spec.template.spec", "/spec/template/spec", factors), DATA));
}

const toleration = '{key: "dedicated", operator: "Equal", value: "shop", effect: "NoSchedule"}';
const tolerations = [
  `if object.spec.tolerations == _|_ { [{op: "replace", path: "/spec/tolerations", value: [${toleration}]}] },
if object.spec.tolerations != _|_ { [{op: "add", path: "/spec/tolerations/0", value: ${toleration}}] }`,
  `if object.spec.tolerations != _|_ { [for i, t in object.spec.tolerations { if t.key == "dedicated" { {op: "remove", path: "/spec/tolerations/\\(i)"} } }] }`,
  `if object.spec.tolerations != _|_ { [for i, t in object.spec.tolerations if t.key == "dedicated" { {op: "remove", path: "/spec/tolerations/\\(i)"} }] }`,
  `if object.spec.tolerations != _|_ {
    for i, t in object.spec.tolerations {
        if t.key == "spot" {[{op: "replace", path: "/spec/tolerations/\\(i)", value: ${toleration}}]}
    }
}`,
  `for i, t in object.spec.tolerations {
    if t.value != _|_ if t.key == "dedicated" && t.operator == "Equal" && t.value == "shop" {
        [{op: "remove", path: "/spec/tolerations/\\(i)"}]
    }
}`,
  `for i, t in object.spec.tolerations { if t.key == "dedicated" { if t.value == "shop" { [{op: "remove", path: "/spec/tolerations/\\(i)"}] } } }`,
].flatMap((body) => override(body));

const affinity = `if object.spec.affinity == _|_ {
    [{
        op: "replace"
        path: "/spec/affinity"
        value: {
            nodeAffinity: {
                requiredDuringSchedulingIgnoredDuringExecution: {
                    nodeSelectorTerms: [{
                        matchExpressions: [{key: "zone", operator: "In", values: ["a", "b"]}]
                    }]
                }
                preferredDuringSchedulingIgnoredDuringExecution: [
                    {weight: 1, preference: {matchExpressions: [{key: "disk", operator: "Exists"}]}},
                ]
            }
        }
    }]
},
if object.spec.affinity != _|_ {
    [
        if object.spec.affinity.nodeAffinity == _|_ {
            {op: "replace", path: "/spec/affinity/nodeAffinity", value: {}}
        },
        if object.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution != _|_ {
            {op: "add", path: "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0", value: {}}
        },
    ]
}`;

const conditions = [];
const validate = (reference, valueReference, condition, imports = "") => {
  const inner = condition === undefined ? "valid: false\nreason: \"no \\\"good\\\"\"" : `if ${condition} {\nvalid: false\nreason: "no"\n}`;
  const guarded = valueReference ? `if ${valueReference} != _|_ {\n${inner}\n}` : inner;
  const program = `${imports}data: _ @tag(data)
object: data.object
oldObject: data.oldObject
http_d: data.extraParams."http"
otherObject_d: data.extraParams."otherObject"
validate: {
    if ${reference} != _|_ {
${guarded}
    }
}
`;
  conditions.push(...ask(program, DATA, "validate"));
};
for (const reference of ["object.metadata.annotations.owner", "object.spec.replicas", "object.spec.containers[0].image", "object.spec.nodeName", "otherObject_d.spec.replicas", "http_d.body.limit", "oldObject.metadata.name"]) {
  validate(reference);
  for (const [operator, value] of [["==", '"team-a"'], ["!=", '"team-a"'], ["==", "3"], ["<=", "(5 * 0.5)"], ["==", "null"], [">", "1"]]) {
    validate(reference, undefined, `${reference} ${operator} ${value}`);
  }
  validate(reference, undefined, `list.Contains(["team-a", 3, "nginx"], ${reference})`, 'import "list"\n');
  validate(reference, undefined, `!list.Contains([3, "bare"], ${reference})`, 'import "list"\n');
  validate(reference, "http_d.body.limit", `${reference} < (http_d.body.limit * 2)`);
  conditions.push(...ask(`data: _ @tag(data)
object: data.object
oldObject: data.oldObject
http_d: data.extraParams."http"
otherObject_d: data.extraParams."otherObject"
validate: { if ${reference} == _|_ { valid: false, reason: "missing" } }
`, DATA, "validate"));
}

export const documents = [documented, labels, override(resources), oversells, tolerations, override(affinity), conditions].flat();
