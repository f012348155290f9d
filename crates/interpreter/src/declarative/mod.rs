//! Declarative rules with JSONPaths, which need no script and suffice for most kinds.
//!
//! They are used in place of scripts, in `customizations` of either kind of object:
//!
//! ```yaml
//! healthInterpretation:
//!   condition: {type: Ready, status: "True", observedGeneration: true}
//!   all: # every comparison
//!   - {path: .status.readyReplicas, operator: GreaterOrEqual, valuePath: .spec.replicas, value: 1}
//!   any: # at least one comparison
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
//! - **Health**: all given of `condition`, `all` and `any` must be true. A comparison is true if it is so for every value that its path
//!   selects; without a value only `DoesNotExist` is true. It compares with `valuePath` if that selects a value, else with `value`.
//! - **Replicas**: the number at the path; 0 if it is absent, as in Karmada's built-in rules.
//! - **Revision**: the number is written at the path, which consists only of field names.
//! - **Status**: the values that the paths below `.status` select, in their places; no status if nothing is selected.
//! - **Dependencies**: a reference for each name that `namePath` selects in each value that `path` selects; in the namespace that
//!   `namespacePath` selects, else in that of the object, or in none with `scope: Cluster`.
//! - A `podTemplatePath` selects pod templates, whose requirements and dependencies are determined as for Karmada's built-in rules.

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
