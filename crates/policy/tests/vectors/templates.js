// The templates, each with a name and its inputs.

const override = (type, operation, more) => ({ override: { type, operation, ...more } });
const operations = ["add", "replace", "remove"];

export const overrides = [];
const tried = (name, on, template) => overrides.push({ name, on, template });

for (const type of ["annotations", "labels"]) {
  for (const operation of operations) {
    const of = (name, more) => tried(`${type}-${operation}-${name}`, ["described"], override(type, operation, more));
    of("text", { path: "owner", value: { string: "z" } });
    of("slash", { path: "example.com/owner", value: { string: "z" } });
    of("pointer", { path: "/example.com~1owner", value: { string: "z" } });
    of("integer", { path: "/n", value: { integer: 3 } });
    of("float", { path: "/n", value: { float: "1.50" } });
    of("boolean", { path: "/n", value: { boolean: false } });
    of("map", { value: { stringMap: { "example.com/owner": "1", other: "2" } } });
    of("current", { path: "from", valueRef: { from: "current", path: "/metadata/name" } });
    of("absent", { path: "from", valueRef: { from: "current", path: "/metadata/none" } });
    of("old", { path: "from", valueRef: { from: "old", path: "/spec/replicas" } });
    of("owner", { path: "from", valueRef: { from: "owner", path: "/metadata/labels/example.com~1team" } });
    of("k8s", { path: "from", valueRef: { from: "k8s", path: "/data/0", k8s: { apiVersion: "v1", kind: "ConfigMap", name: "c" } } });
    of("http", { path: "from", valueRef: { from: "http", path: "body.items[0].name", http: { url: "http://a.example", method: "GET" } } });
  }
  tried(`${type}-add-annotation-with-quotes`, ["described"], override("annotations", "add", { path: "q", value: { string: 'a"b\\(data)\n\u0000"]}' } }));
}

for (const operation of operations) {
  const of = (name, more) => tried(`resources-${operation}-${name}`, ["workloads", "resources"], override("resources", operation, more));
  of("first", { resources: { limits: { cpu: "500m", memory: "1Gi" }, requests: { cpu: "100m" } } });
  of("limits", { resources: { limits: { cpu: 2 } } });
  of("requests-of-all", { containers: ["*"], resources: { requests: { "nvidia.com/gpu": 1, memory: "1.5Gi" } } });
  of("named", { containers: ["sidecar", "setup", "sidecar", "none"], resources: { limits: { cpu: "500m" } } });
  const oversell = (name, more) => tried(`oversell-${operation}-${name}`, ["workloads", "resources", "quantities"], override("resourcesOversell", operation, more));
  oversell("all-factors", { resourcesOversell: { cpuFactor: "0.5", memoryFactor: "0.2", diskFactor: "0.1" } });
  const some = (name, more) => tried(`oversell-${operation}-${name}`, ["workloads", "resources"], override("resourcesOversell", operation, more));
  some("cpu", { resourcesOversell: { cpuFactor: ".3", memoryFactor: operation === "remove" ? "" : "0" } });
  some("of-all", { containers: ["*"], resourcesOversell: { cpuFactor: "0.999", memoryFactor: "0.001" } });
  some("named", { containers: ["setup"], resourcesOversell: { cpuFactor: "0.5", memoryFactor: "0.5" } });
}

for (const operation of operations) {
  const of = (name, ...tolerations) => tried(`tolerations-${operation}-${name}`, ["workloads", "tolerating"], override("tolerations", operation, { tolerations }));
  of("key", { key: "spot", operator: "Exists" });
  of("value", { key: "spot", value: "true" });
  of("effect", { key: "spot", operator: "Exists", effect: "NoExecute", tolerationSeconds: 30 });
  of("several", { key: "spot", operator: "Exists" }, { key: "gpu", operator: "Equal", value: "x", effect: "NoSchedule" }, { key: "gpu", operator: "Exists" }, { key: "spot", operator: "Exists" });
  of("all", { operator: "Exists" });
  of("no-operator", { key: "example.com/spot", value: "", effect: "PreferNoSchedule" });
}

const term = (key) => ({ matchExpressions: [{ key, operator: "Exists" }] });
const valued = { matchExpressions: [{ key: "zone", operator: "In", values: ["a", "b"] }], matchFields: [{ key: "metadata.name", operator: "In", values: ["n"] }] };
const beside = (key) => ({ topologyKey: key, labelSelector: { matchLabels: { app: "a" } } });
const selecting = { topologyKey: "host", labelSelector: { matchExpressions: [{ key: "a.b/c", operator: "NotIn", values: ["x"] }] }, namespaces: ["n"], namespaceSelector: {} };
const required = "requiredDuringSchedulingIgnoredDuringExecution";
const preferred = "preferredDuringSchedulingIgnoredDuringExecution";
for (const operation of operations) {
  const of = (name, affinity) => tried(`affinity-${operation}-${name}`, ["workloads", "attracted"], override("affinity", operation, { affinity }));
  of("node-required", { nodeAffinity: { [required]: { nodeSelectorTerms: [term("a"), valued] } } });
  of("node-preferred", { nodeAffinity: { [preferred]: [{ weight: 1, preference: term("a") }, { weight: 100, preference: valued }] } });
  of("node-both", { nodeAffinity: { [required]: { nodeSelectorTerms: [term("a")] }, [preferred]: [{ weight: 1, preference: term("a") }] } });
  for (const sort of ["podAffinity", "podAntiAffinity"]) {
    of(`${sort}-required`, { [sort]: { [required]: [beside("a"), selecting] } });
    of(`${sort}-preferred`, { [sort]: { [preferred]: [{ weight: 1, podAffinityTerm: beside("a") }, { weight: 2, podAffinityTerm: selecting }] } });
    of(`${sort}-both`, { [sort]: { [required]: [beside("a")], [preferred]: [{ weight: 1, podAffinityTerm: beside("a") }] } });
  }
  of("quotes", { nodeAffinity: { [required]: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'a"b', operator: "NotIn", values: ["\\(data)", "", "\n"] }] }] } } });
  of("everything", {
    nodeAffinity: { [required]: { nodeSelectorTerms: [term("a")] }, [preferred]: [{ weight: 1, preference: term("b") }] },
    podAffinity: { [required]: [beside("a")], [preferred]: [{ weight: 1, podAffinityTerm: beside("b") }] },
    podAntiAffinity: { [required]: [beside("a"), beside("a")], [preferred]: [{ weight: 1, podAffinityTerm: beside("b") }] },
  });
}

const dataRef = { from: "current", path: "/spec/x" };
const valueRef = { from: "k8s", path: "/spec/y", k8s: { apiVersion: "v1", kind: "ConfigMap", name: "c" } };
const condition = (cond, more) => ({ validation: { type: "condition", condition: { cond, dataRef, message: 'not "so"', ...more } } });
export const constants = [];
export const references = [];
const constant = (name, cond, more) => {
  constants.push({ name: `${name}`, template: condition(cond, more) });
  constants.push({ name: `${name}-allow`, template: condition(cond, { affectMode: "allow", ...more }) });
};
constant("Exist", "Exist", {});
constant("NotExist", "NotExist", {});
const scalars = { text: { string: "abc" }, "text-of-a-number": { string: "3" }, empty: { string: "" }, integer: { integer: 3 }, zero: { integer: 0 }, float: { float: "3.5" }, large: { integer: 9007199254740991 }, quoted: { string: 'a"\\(data)' } };
for (const cond of ["Equal", "NotEqual", "Gt", "Gte", "Lt", "Lte"]) {
  for (const [kind, value] of Object.entries(scalars)) constant(`${cond}-${kind}`, cond, { value });
  if (cond.endsWith("qual")) constant(`${cond}-boolean`, cond, { value: { boolean: true } });
  constant(`${cond}-processed`, cond, { value: { integer: 6 }, valueProcess: { operation: "*", operationWith: "50%" } });
  constant(`${cond}-divided`, cond, { value: { integer: 7 }, valueProcess: { operation: "/", operationWith: 2 } });
}
constant("Gt-added", "Gt", { value: { string: "1" }, valueProcess: { operation: "+", operationWith: "1.5" } });
constant("Gt-subtracted", "Gt", { value: { integer: -1 }, valueProcess: { operation: "-", operationWith: -2 } });
for (const cond of ["In", "NotIn"]) {
  constant(`${cond}-texts`, cond, { value: { stringSlice: ["a", "3", "true"] } });
  constant(`${cond}-integers`, cond, { value: { integerSlice: [1, 3] } });
  constant(`${cond}-floats`, cond, { value: { floatSlice: ["3.5", "1"] } });
}
for (const pattern of ["^a", "^[0-9]+$", "^(true|a\\.b)$", "\"", ""]) constant(`Regex-${JSON.stringify(pattern)}`, "Regex", { value: { string: pattern } });
for (const cond of ["Equal", "NotEqual", "In", "NotIn", "Gt", "Gte", "Lt", "Lte"]) references.push({ name: `${cond}-reference`, template: condition(cond, { valueRef }) });
for (const cond of ["Equal", "Gt", "Lte"]) references.push({ name: `${cond}-reference-processed`, template: condition(cond, { valueRef, valueProcess: { operation: "*", operationWith: "0.5" } }) });

/** References to every source, in both roles. */
export const sources = [];
for (const from of ["current", "old", "k8s", "owner", "http"]) {
  const place = { from, path: from === "http" ? "body.spec.x" : "/spec/x", ...(from === "k8s" && { k8s: valueRef.k8s }), ...(from === "http" && { http: { url: "http://a.example", method: "GET" } }) };
  sources.push({ name: `data-from-${from}`, template: condition("Equal", { dataRef: place, value: { string: "abc" } }) });
  sources.push({ name: `value-from-${from}`, template: condition("Equal", { valueRef: place }) });
}
sources.push({ name: "owner-exists", template: condition("Exist", { dataRef: { from: "owner" } }) });
sources.push({ name: "annotation-exists", template: condition("Exist", { dataRef: { from: "current", path: "/metadata/annotations/example.com~1keep" } }) });
sources.push({ name: "label-with-dots", template: condition("Equal", { dataRef: { from: "current", path: "metadata.labels.app.kubernetes.io/name" }, value: { string: "abc" } }) });
sources.push({ name: "item", template: condition("Regex", { dataRef: { from: "current", path: "/spec/containers/0/image" }, value: { string: ":latest$" }, affectMode: "reject" }) });
