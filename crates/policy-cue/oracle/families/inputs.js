// The inputs of programs.

export const pod = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: {
    name: "web-0",
    namespace: "shop",
    labels: { app: "web", "app.kubernetes.io/part-of": "shop", tier: "2" },
    annotations: { owner: "team-a", "example.com/no-delete": "true" },
    ownerReferences: [{ apiVersion: "apps/v1", kind: "StatefulSet", name: "web", uid: "0b1", controller: true }],
  },
  spec: {
    containers: [
      {
        name: "web",
        image: "docker.io/library/nginx:1.25",
        ports: [{ containerPort: 80, protocol: "TCP" }, { containerPort: 443 }],
        resources: { limits: { cpu: "500m", memory: "1Gi" }, requests: { cpu: "250m", memory: "512Mi" } },
        env: [{ name: "MODE", value: "prod" }, { name: "DEBUG", value: "" }],
      },
      { name: "sidecar", image: "registry.example.com/proxy@sha256:abc", args: [] },
    ],
    tolerations: [
      { key: "dedicated", operator: "Equal", value: "shop", effect: "NoSchedule" },
      { key: "spot", operator: "Exists" },
      { key: "dedicated", operator: "Exists", tolerationSeconds: 30 },
    ],
    priority: 0,
    terminationGracePeriodSeconds: 30,
    hostNetwork: false,
    nodeName: null,
  },
  status: {},
};

export const bare = { apiVersion: "v1", kind: "Pod", metadata: { name: "bare" }, spec: { containers: [{ name: "a", image: "b" }] } };

export const deployment = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "web", labels: {}, annotations: {} },
  spec: {
    replicas: 3,
    template: {
      metadata: { labels: { app: "web" } },
      spec: { containers: [{ name: "web", image: "nginx", resources: { limits: { cpu: "2", memory: "512Mi" } } }] },
    },
  },
};

export const numbers = {
  int: 7, zero: 0, negative: -3, large: 9007199254740991, half: 0.5, tenth: 0.1, many: 123.456, small: 1e-7,
  text: "7", list: [1, 2, 3], floats: [1.5, 2.5], empty: [], words: ["b", "a", "c"], nothing: null, yes: true, no: false, struct: { a: 1 }, none: {},
};

/** Inputs by the names that vectors use. */
export const shared = {
  none: {},
  pod: { object: pod },
  bare: { object: bare },
  deployment: { object: deployment },
  empty: { object: {} },
  numbers: { n: numbers },
  update: { object: { ...pod, metadata: { ...pod.metadata, labels: { app: "new" } } }, oldObject: pod },
  data: { data: { object: pod, oldObject: bare, extraParams: { otherObject: deployment, http: { body: { name: "x", limit: 5, ok: true, tags: ["a", "b"] } } } } },
  bareData: { data: { object: bare, oldObject: {}, extraParams: {} } },
  deploymentData: { data: { object: deployment, oldObject: {}, extraParams: { otherObject: pod } } },
};
