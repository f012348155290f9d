//! Answers without a script: a small grammar of JSONPaths, for what most kinds need.
//!
//! It stands where scripts stand, in `customizations` of either kind of object:
//!
//! ```yaml
//! healthInterpretation:
//!   condition: {type: Ready, status: "True", observedGeneration: true}
//!   all: # each of them
//!   - {path: .status.readyReplicas, operator: GreaterOrEqual, valuePath: .spec.replicas, value: 1}
//!   any: # at least one of them
//!   - {path: .status.phase, operator: In, values: [Running, Succeeded]}
//! replicaResource: {replicasPath: .spec.size, podTemplatePath: .spec.template}
//! replicaRevision: {replicasPath: .spec.size}
//! statusReflection: {fields: [.status.phase, '.status.conditions[?(@.type=="Ready")]']}
//! dependencyInterpretation:
//!   references:
//!   - {apiVersion: v1, kind: Secret, namePath: .spec.secretName}
//!   - {apiVersion: v1, kind: ConfigMap, path: '.spec.sources[*]', namePath: .name, namespacePath: .namespace}
//!   podTemplatePath: .spec.template
//! ```
//!
//! - **Health**: what is given of `condition`, `all` and `any` has to hold. A comparison holds if it does for everything that its path
//!   leads to, and for nothing does only `DoesNotExist`. It compares with `valuePath` where that leads somewhere, else with `value`.
//! - **Replicas**: the number at the path; 0 where there is none, as of Karmada's own kinds.
//! - **Revision**: the number is written at the path, which is one of plain fields.
//! - **Status**: what the paths lead to, all of them below `.status`, in its place there; no status where they lead nowhere.
//! - **Dependencies**: a reference for each name that `namePath` leads to from each value that `path` leads to; in the namespace that
//!   `namespacePath` leads to, else in that of the object, or in none with `scope: Cluster`.
//! - A `podTemplatePath` leads to pod templates, whose requirements and dependencies are those of Karmada's own kinds.

mod answer;
mod dependencies;
mod health;
mod replicas;
mod status;

pub(crate) use self::{
    answer::{DeclaredAnswer, DeclaredAnswerError},
    dependencies::DeclaredDependencies,
    health::DeclaredHealth,
    replicas::{DeclaredReplicas, DeclaredRevision},
    status::DeclaredStatus,
};
pub use self::{
    dependencies::{DependencyPaths, DependencyScope},
    health::{ComparisonOperator, ExpectedCondition, FieldComparison},
};
