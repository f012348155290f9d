//! Users' customizations: Karmada's `ResourceInterpreterCustomization`, and `ResourceInterpretation`, which can select several kinds or
//! single objects, and can extend other interpreters instead of replacing them.
//!
//! ```yaml
//! apiVersion: interpretation.windlass.dev/v1alpha1
//! kind: ResourceInterpretation
//! metadata: {name: databases}
//! spec:
//!   targets:
//!   - {apiVersion: example.com/v1, kinds: [Database, Cache]}
//!   - {apiVersion: apps/v1, kind: Deployment, labelSelector: {matchLabels: {tier: data}}}
//!   mode: Chain
//!   customizations:
//!     retention: {fields: [.spec.replicas]}
//!     healthInterpretation: {condition: {type: Ready}}
//! ```
//!
//! Both kinds support fields that Karmada lacks, such as `retention.fields`. If Karmada's own CustomResourceDefinition is installed, the
//! API server drops these fields from its kind.
//!
//! # Precedence
//!
//! An operation uses the customizations that have rules for it and a target that selects the object. The most specific target has
//! precedence: one with a name, then a labelSelector, a namespace, a kind, an apiVersion other than `*`. Between equally specific ones,
//! those that chain precede those that replace, then Karmada's kind precedes the other, then the first name precedes. If several
//! dependency scripts have the most specific target, all are used, and their results are united, validated, sorted and deduplicated.
//!
//! With `mode: Chain`, interpreters with lower precedence run first: other customizations, webhooks, built-in rules. Only operations
//! whose answers can be combined support it: retention, replicaRevision, statusAggregation, healthInterpretation and
//! dependencyInterpretation.

mod admission;
mod api;
mod compiled_customization;
mod config;
mod crds;
mod customization_object;
mod customizations;
mod dependencies;
#[cfg(feature = "lua")]
mod dry_run;
mod overruled_customization;
mod problem;
mod rules;
mod script;
mod target;
#[cfg(test)]
mod tests;

pub(crate) use self::problem::FieldProblems;
pub use self::{
    admission::admit,
    api::{
        CustomizationTarget, INTERPRETATION_API_VERSION, InterpretationMode, InterpretationTarget,
        KARMADA_API_VERSION, ResourceInterpretationSpec, ResourceInterpreterCustomizationSpec,
    },
    config::ConfiguredRetention,
    crds::crds,
    customizations::{CustomizationState, Customizations},
    dependencies::{InvalidDependencyError, merge_dependencies},
    overruled_customization::OverruledCustomization,
    problem::CustomizationProblem,
    rules::{
        ComponentResourceRequirement, CustomizationRules, DependencyInterpretation, HealthInterpretation,
        LocalValueRetention, ReplicaResourceRequirement, ReplicaRevision, StatusAggregation,
        StatusReflection,
    },
};
