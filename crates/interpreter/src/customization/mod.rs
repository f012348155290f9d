//! What users say about kinds: Karmada's `ResourceInterpreterCustomization`, and `ResourceInterpretation`, which can be for several
//! kinds or for single objects and can add to what is known instead of replacing it.
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
//! What Karmada does not know, such as `retention.fields`, may stand in both kinds. Where Karmada's own definition of its kind is
//! installed it does not stay there: an API server drops what a definition does not have.
//!
//! # Who counts
//!
//! Each operation is asked of those customizations that have something for it and a target that fits the object. The more specific
//! target counts more: with a name before with a labelSelector before with a namespace before with a kind before with an apiVersion
//! that is not `*`. Of equal ones those that chain count before those that replace, and then the first by name counts, of both kinds of
//! objects Karmada's first. Where several dependency scripts have the most specific target, all are asked and what they say is united,
//! verified, sorted and without repetitions.
//!
//! With `mode: Chain` those behind it are asked before: other customizations, webhooks, what is known of Kubernetes' own kinds. Only
//! operations chain whose answers can be put together: retention, replicaRevision, statusAggregation, healthInterpretation and
//! dependencyInterpretation.

mod admission;
mod api;
mod compile;
mod config;
mod crds;
mod customizations;
mod dependencies;
#[cfg(feature = "lua")]
mod dry_run;
mod overruled;
mod problem;
mod read;
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
    dependencies::{InvalidDependencyError, united},
    overruled::OverruledCustomization,
    problem::CustomizationProblem,
    rules::{
        ComponentResourceRequirement, CustomizationRules, DependencyInterpretation, HealthInterpretation,
        LocalValueRetention, ReplicaResourceRequirement, ReplicaRevision, StatusAggregation,
        StatusReflection,
    },
};
