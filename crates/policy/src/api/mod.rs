//! The API of policies: `policy.kcloudlabs.io/v1alpha1`.
//!
//! | kind | short name | applies to |
//! |---|---|---|
//! | `OverridePolicy` | `op` | objects of its own namespace |
//! | `ClusterOverridePolicy` | `cop` | all objects |
//! | `ClusterValidatePolicy` | `cvp` | all objects |
//!
//! Additional optional fields, unknown to kinitiras: `spec.failurePolicy`, `spec.validationActions`,
//! `spec.namespaceSelector`, `spec.matchConditions`, `cel` next to every `cue`, `containers` of templates and
//! typed overrides, `auth.secretRef`, the condition `Regex`, and `status`.

mod affinity;
mod cel;
mod condition;
mod constant;
mod matching;
mod origin;
mod override_policy;
mod pod;
mod reference;
pub(crate) mod schemas;
mod selector;
mod status;
mod template;
mod validate_policy;

pub use self::{
    affinity::{
        Affinity, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PodAffinity,
        PodAffinityTerm, PreferredSchedulingTerm, WeightedPodAffinityTerm,
    },
    cel::{CelOverride, CelValidation, CelValidationRule, CelVariable, MatchCondition},
    condition::{
        AffectMode, ConditionOperator, ProcessOperation, ValidateCondition, ValidateRuleTemplate,
        ValidateTemplateType, ValueProcess,
    },
    constant::{ConstantValue, IntOrString},
    matching::{FailurePolicyType, TargetOperation, ValidationAction},
    origin::{OriginOverrider, OriginType},
    override_policy::{OverridePolicySpec, OverrideRule, Overriders, PlaintextOverrider},
    pod::{ResourceRequirements, Toleration, TolerationOperator, TopologySpreadConstraint},
    reference::{HttpAuth, HttpMethod, HttpReference, SecretReference, ValueReference, ValueSource},
    selector::{FieldSelector, FieldSelectorRequirement, ResourceSelector, SelectorOperator},
    status::{PolicyCondition, PolicyStatus, RuleStatus},
    template::{OverrideOperation, OverrideRuleTemplate, OverrideTemplateType, ResourcesOversell},
    validate_policy::{ClusterValidatePolicySpec, ValidateRule},
};

/// The group and version of the policies.
pub const POLICY_API_VERSION: &str = "policy.kcloudlabs.io/v1alpha1";
