// The inputs `data` of programs, by name.

const merge = (...parts) => Object.assign({}, ...parts);

const meta = { name: "a", namespace: "b" };
export const pod = (spec = {}, metadata = {}) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: merge(meta, metadata),
  spec: merge({ containers: [{ name: "app", image: "app:1" }] }, spec),
});

const container = (name, resources, more = {}) => merge({ name, image: `${name}:1` }, resources === undefined ? {} : { resources }, more);
const limited = (cpu, memory) => pod({ containers: [container("app", { limits: merge(cpu === undefined ? {} : { cpu }, memory === undefined ? {} : { memory }) })] });

const template = (kind, spec = {}, apiVersion = "apps/v1") => ({
  apiVersion,
  kind,
  metadata: meta,
  spec: { template: { metadata: { labels: { app: "a" } }, spec: merge({ containers: [container("app", { limits: { cpu: "1", memory: "1Gi" } })] }, spec) } },
});

const cronJob = (spec = {}) => ({ apiVersion: "batch/v1", kind: "CronJob", metadata: meta, spec: { schedule: "@daily", jobTemplate: { spec: template("Job", spec).spec } } });

const nodeTerm = (key) => ({ matchExpressions: [{ key, operator: "Exists" }] });
const podTerm = (key) => ({ topologyKey: key, labelSelector: { matchLabels: { app: "a" } } });

/** Inputs of override templates for metadata. */
export const described = {
  "no-metadata-maps": pod(),
  "null-metadata-maps": pod({}, { annotations: null, labels: null }),
  "empty-metadata-maps": pod({}, { annotations: {}, labels: {} }),
  "owner-annotation": pod({}, { annotations: { owner: "x", "example.com/owner": "y" }, labels: { owner: "x", "example.com/owner": "y" } }),
  "odd-keys": pod({}, { annotations: { "a~b": "1", "x/y": "2", "": "3" }, labels: { tier: "db" } }),
  "null-entries": pod({}, { annotations: { owner: null }, labels: { owner: null } }),
  "config-map": { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a", labels: { tier: "db" } }, data: { a: "b" } },
};

/** Inputs of override templates for pods. */
export const workloads = {
  pod: pod(),
  "pod-of-two": pod({ containers: [container("app", { limits: { cpu: "1", memory: "1Gi" } }), container("sidecar", { limits: { cpu: "200m" }, requests: { cpu: "200m", memory: "1Mi" } })] }),
  "pod-with-init": pod({
    containers: [container("app"), container("sidecar", { limits: { cpu: "2" } })],
    initContainers: [container("setup", { limits: { memory: "64Mi", cpu: "100m" } }), container("proxy", {}, { restartPolicy: "Always" })],
  }),
  deployment: template("Deployment"),
  "stateful-set": template("StatefulSet"),
  "daemon-set": template("DaemonSet", { tolerations: [{ operator: "Exists" }] }),
  "replica-set": template("ReplicaSet"),
  "replication-controller": template("ReplicationController", {}, "v1"),
  job: template("Job", {}, "batch/v1"),
  "cron-job": cronJob(),
  rollout: template("Rollout", {}, "argoproj.io/v1alpha1"),
  "machine-deployment": { apiVersion: "cluster.x-k8s.io/v1beta1", kind: "MachineDeployment", metadata: meta, spec: { template: { spec: { clusterName: "a", bootstrap: {} } } } },
  "config-map": { apiVersion: "v1", kind: "ConfigMap", metadata: meta, data: {} },
  "text-for-spec": { apiVersion: "v1", kind: "Odd", metadata: meta, spec: "x" },
};

export const resources = {
  "no-resources": pod(),
  "null-resources": pod({ containers: [container("app", null)] }),
  "empty-resources": pod({ containers: [container("app", {})] }),
  "null-lists": pod({ containers: [container("app", { limits: null, requests: null })] }),
  "only-requests": pod({ containers: [container("app", { requests: { cpu: "100m", memory: "1Mi" } })] }),
  "all-resources": pod({ containers: [container("app", { limits: { cpu: "1", memory: "1Gi", "ephemeral-storage": "10G", "nvidia.com/gpu": "1" }, requests: { cpu: "1", "nvidia.com/gpu": "1" } })] }),
};

export const quantities = {};
for (const cpu of ["1", "1.5", "500m", "0.1", ".5", "1.", "2k", "100u", "5000000n", "1e3", "1E3", "15e-1", "1E", "16Ei", "+2", "-1", "abc", "", "1m", "3m", "1Gi", 2, 0.7, 0, null, [], "9".repeat(40), "1e99"]) {
  quantities[`cpu-${JSON.stringify(cpu)}`] = limited(cpu, undefined);
}
for (const memory of ["1Gi", "1.5Gi", "1G", "512Mi", "1000", "100M", "64Ki", "0.5Ti", "1Pi", "7E", "128974848", "129e6", "129M", "123Mi", "1", "3", "1k", "1500m", 1024, "8Ei", "9223372036854775807"]) {
  quantities[`memory-${JSON.stringify(memory)}`] = limited(undefined, memory);
}

const tolerations = (...list) => pod({ tolerations: list });
export const tolerating = {
  "no-tolerations": pod(),
  "null-tolerations": pod({ tolerations: null }),
  "empty-tolerations": pod({ tolerations: [] }),
  "tolerates-all": tolerations({ operator: "Exists" }),
  "tolerates-spot": tolerations({ key: "spot", operator: "Exists" }),
  "tolerates-spot-twice": tolerations({ key: "spot", value: "a" }, { key: "gpu", operator: "Exists" }, { key: "spot", operator: "Equal", value: "true", effect: "NoSchedule" }),
  "tolerates-spot-by-effects": tolerations({ key: "spot", operator: "Exists", effect: "NoSchedule" }, { key: "spot", operator: "Exists", effect: "NoExecute", tolerationSeconds: 300 }),
  "tolerates-between": tolerations({ key: "spot", operator: "Exists" }, { key: "a" }, { key: "spot", value: "true" }, { operator: "Exists" }, { key: "gpu", value: "x" }),
  "deployment-tolerates": template("Deployment", { tolerations: [{ key: "spot", value: "true", effect: "NoSchedule" }, { key: "gpu" }] }),
  "cron-job-tolerates": cronJob({ tolerations: [{ key: "gpu", operator: "Exists" }, { key: "spot", operator: "Exists" }] }),
};

const affinity = (value) => pod({ affinity: value });
export const attracted = {
  "no-affinity": pod(),
  "null-affinity": affinity(null),
  "empty-affinity": affinity({}),
  "null-sorts": affinity({ nodeAffinity: null, podAffinity: null, podAntiAffinity: null }),
  "empty-sorts": affinity({ nodeAffinity: {}, podAffinity: {}, podAntiAffinity: {} }),
  "node-required": affinity({ nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [nodeTerm("old")] } } }),
  "node-required-empty": affinity({ nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: {} } }),
  "node-preferred": affinity({ nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 5, preference: nodeTerm("old") }] } }),
  "node-the-same": affinity({ nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [nodeTerm("a")] }, preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, preference: nodeTerm("a") }] } }),
  "pods-required": affinity({ podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [podTerm("old")] }, podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [podTerm("old")] } }),
  "pods-preferred": affinity({ podAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 7, podAffinityTerm: podTerm("old") }] }, podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 7, podAffinityTerm: podTerm("old") }] } }),
  "pods-the-same": affinity({ podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [podTerm("a")] }, podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, podAffinityTerm: podTerm("a") }] } }),
  "deployment-affinity": template("Deployment", { affinity: { podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 7, podAffinityTerm: podTerm("old") }] } } }),
  "cron-job-affinity": cronJob({ affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [nodeTerm("old")] } } } }),
};

/** Values of the field that conditions compare. `undefined` is a missing field. */
export const values = [
  undefined, null, "", "a", "abc", "b", "true", true, false, 0, 1, 2, 3, 3.5, -1, 1e3, 9007199254740991,
  "0", "1", "2", "3", "3.0", "3.5", "-1", "+3", "03", "1e3", "1Gi", "9007199254740991", "12345678901234567890", "a.b", "äb", "a\nb", "\\(data)", '"', [], ["a"], [3], {}, { a: 1 },
];
