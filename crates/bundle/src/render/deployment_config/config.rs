//! What users may change of Deployments.

use serde_json::{Map, Value};

/// Changes to the Deployments of a bundle. Its parts are those of Kubernetes: `env` holds EnvVars, and so on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeploymentConfig {
    /// Environment variables; they replace those of the same name.
    pub env: Vec<Value>,
    /// Sources of environment variables, added where they are not there.
    pub env_from: Vec<Value>,
    /// Volumes; they replace those of the same name.
    pub volumes: Vec<Value>,
    /// Mounts; they replace those of the same volume.
    pub volume_mounts: Vec<Value>,
    /// Tolerations, added where they are not there.
    pub tolerations: Vec<Value>,
    /// Resources of every container, in place of its own.
    pub resources: Option<Value>,
    /// The node selector, in place of the bundle's.
    pub node_selector: Option<Map<String, Value>>,
    /// Affinity: each part in place of the bundle's, empty parts erase it, and all is erased where this is empty.
    pub affinity: Option<Map<String, Value>>,
    /// Annotations of Deployments and pods that have no such annotation of their own.
    pub annotations: Map<String, Value>,
    /// How many replicas the Deployments have that serve webhooks, in place of the bundle's number.
    pub replicas: Option<u32>,
    /// What is added for serving.
    pub serving: ServingDefaults,
}

/// What is added to Deployments that serve webhooks, where the bundle says nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServingDefaults {
    /// A TCP readiness probe on the port of the webhooks.
    pub readiness_probe: bool,
    /// A sleep before a pod ends.
    pub pre_stop: bool,
    /// `maxUnavailable: 0`. Without it, the bundle's own strategy is used on the first install, and when nobody calls the pods.
    pub rolling_update: bool,
    /// A new revision of a bundle that converts is tried out in one pod first.
    pub canary: bool,
}

// === impl ServingDefaults ===

impl Default for ServingDefaults {
    fn default() -> Self {
        Self {
            readiness_probe: true,
            pre_stop: true,
            rolling_update: true,
            canary: true,
        }
    }
}
