//! How many replicas objects have, and the same objects with others.

use serde_json::Value;
use windlass_object::{JsonPath, json};

use crate::{
    answer::ReplicaRequirements,
    fields::{FieldTypeError, Fields},
    pod::{self, PodError},
};

/// Where one kind has its replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplicaRule {
    /// `spec.replicas`, of `spec.template`.
    Replicas,
    /// `spec.parallelism`, of `spec.template`, as long as so many are left to complete.
    Job,
    /// It is one.
    Pod,
}

/// Why it is not known how many replicas an object has.
#[derive(Debug, thiserror::Error)]
pub enum ReplicasError {
    /// A field has another type.
    #[error(transparent)]
    Field(#[from] FieldTypeError),
    /// It has more than there can be.
    #[error("{0} is too large")]
    TooLarge(JsonPath),
    /// It is not known what its pods need.
    #[error("{path}: {source}")]
    Pod {
        /// Where their template is.
        path: JsonPath,
        /// Why.
        source: PodError,
    },
}

// === impl ReplicaRule ===

impl ReplicaRule {
    /// The rule for a kind.
    pub(super) fn for_kind(api_version: &str, kind: &str) -> Option<Self> {
        Some(match (api_version, kind) {
            ("apps/v1", "Deployment" | "ReplicaSet" | "StatefulSet") => Self::Replicas,
            ("batch/v1", "Job") => Self::Job,
            ("v1", "Pod") => Self::Pod,
            _ => return None,
        })
    }

    /// Whether it can have others.
    pub(super) fn can_revise(self) -> bool {
        self != Self::Pod
    }

    /// How many there are, and what each needs.
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

    /// The object with others. One that does not say how many it has leaves that to somebody else.
    pub(super) fn revised(self, object: &Value, replicas: i64) -> Result<Value, FieldTypeError> {
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
