//! Replicas of Kubernetes' own kinds.

use serde_json::Value;
use windlass_object::{JsonPath, json};

use crate::{
    answer::ReplicaRequirements,
    fields::{FieldTypeError, Fields},
    pod::{self, PodError},
};

/// Where a kind has its number of replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplicaRule {
    /// `spec.replicas`, with `spec.template`.
    Replicas,
    /// `spec.parallelism`, with `spec.template`, limited by `spec.completions`.
    Job,
    /// Always one.
    Pod,
}

/// Why the replicas of an object are unknown.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message explains each field")]
pub enum ReplicasError {
    /// A field has the wrong type.
    #[error(transparent)]
    Field(#[from] FieldTypeError),
    /// The number does not fit into 32 bits.
    #[error("{0} is too large")]
    TooLarge(JsonPath),
    /// The requirements of the object's pods are unknown.
    #[error("{path}: {source}")]
    Pod {
        /// The path of the pod template.
        path: JsonPath,
        source: PodError,
    },
}

impl ReplicaRule {
    pub(super) fn for_kind(api_version: &str, kind: &str) -> Option<Self> {
        Some(match (api_version, kind) {
            ("apps/v1", "Deployment" | "ReplicaSet" | "StatefulSet") => Self::Replicas,
            ("batch/v1", "Job") => Self::Job,
            ("v1", "Pod") => Self::Pod,
            _ => return None,
        })
    }

    /// Reports whether the number of replicas can be changed.
    pub(super) fn can_revise(self) -> bool {
        self != Self::Pod
    }

    /// Returns the number of replicas, and what each requires.
    pub(super) fn replicas(
        self,
        object: &Value,
    ) -> Result<(i32, Option<ReplicaRequirements>), ReplicasError> {
        let fields = Fields::new(object);
        let replicas = match self {
            Self::Replicas => count(&fields, "spec.replicas")?.unwrap_or_default(),
            Self::Job => {
                let parallel = count(&fields, "spec.parallelism")?.unwrap_or_default();
                count(&fields, "spec.completions")?.map_or(parallel, |completions| completions.min(parallel))
            }
            Self::Pod => 1,
        };
        let template = match self {
            Self::Pod => Some(fields),
            Self::Replicas | Self::Job => fields.at("spec.template")?,
        };
        let Some(template) = template else {
            return Ok((replicas, None));
        };
        let requirements = pod::requirements(template.value()).map_err(|source| ReplicasError::Pod {
            path: template.path().clone(),
            source,
        })?;
        Ok((replicas, requirements))
    }

    /// Returns the object with another number of replicas. If the field is absent, another controller manages
    /// it, and it is not set.
    pub(super) fn revise(self, object: &Value, replicas: i64) -> Result<Value, FieldTypeError> {
        let name = match self {
            Self::Replicas => "replicas",
            Self::Job => "parallelism",
            Self::Pod => return Ok(object.clone()),
        };
        let mut object = object.clone();
        let present = Fields::new(&object)
            .at("spec")?
            .map_or(Ok(None), |spec| spec.integer(name))?;
        if present.is_some() {
            json::fields(&mut object, &["spec"]).insert(name.to_owned(), replicas.into());
        }
        Ok(object)
    }
}

fn count(fields: &Fields<'_>, names: &str) -> Result<Option<i32>, ReplicasError> {
    let count = fields.integer(names)?.map(i32::try_from).transpose();
    count.map_err(|_| ReplicasError::TooLarge(JsonPath::from_fields(names)))
}
