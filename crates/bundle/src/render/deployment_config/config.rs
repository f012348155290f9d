//! Changes that users can make to Deployments.

use serde_json::{Map, Value};

/// Changes to the Deployments of a bundle. The fields have the types of the Kubernetes API: `env` contains
/// EnvVars, and so on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeploymentConfig {
    /// Environment variables; they replace variables of the same name.
    pub env: Vec<Value>,
    /// Sources of environment variables, added if missing.
    pub env_from: Vec<Value>,
    /// Volumes; they replace volumes of the same name.
    pub volumes: Vec<Value>,
    /// Mounts; they replace mounts of the same volume.
    pub volume_mounts: Vec<Value>,
    /// Tolerations, added if missing.
    pub tolerations: Vec<Value>,
    /// Resources of every container, replacing its own.
    pub resources: Option<Value>,
    /// The node selector, replacing the bundle's.
    pub node_selector: Option<Map<String, Value>>,
    /// Affinity: each part replaces the bundle's, an empty part removes it, and an empty affinity removes all
    /// parts.
    pub affinity: Option<Map<String, Value>>,
    /// Annotations for Deployments and pods; existing annotations take precedence.
    pub annotations: Map<String, Value>,
    /// The number of replicas of Deployments that serve webhooks, replacing the bundle's.
    pub replicas: Option<u32>,
    /// Defaults for Deployments that serve webhooks.
    pub serving: ServingDefaults,
}

/// Defaults for Deployments that serve webhooks, where the bundle sets nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServingDefaults {
    /// A TCP readiness probe on the port of the webhooks.
    pub readiness_probe: bool,
    /// A preStop sleep.
    pub pre_stop: bool,
    /// `maxUnavailable: 0`. Without it, the bundle's own strategy applies on the first install, and while
    /// nothing calls the pods.
    pub rolling_update: bool,
    /// A canary pod for a new revision of a bundle with conversion webhooks.
    pub canary: bool,
}

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
