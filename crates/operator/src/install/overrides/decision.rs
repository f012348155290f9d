//! What policies make of each object of an install.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use policy::{
    AdmissionAttributes, AdmissionOperation, Answers, AppliedStep, EvaluationBudget, FetchedAnswer,
    OverrideOutcome, PolicyEvaluation, PolicyKey, PolicySet, api::FailurePolicyType, patch,
};
use serde_json::{Value, json};
use thiserror::Error;
use windlass_bundle::render::Rendered;
use windlass_object::{object, text::Listing};

use super::{
    guarded::{GuardedField, ServingRoles},
    object_override::ObjectOverride,
};
use crate::policies::can_select;

/// What policies make of an install.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OverrideDecision {
    /// What changes, by object.
    pub overrides: Vec<ObjectOverride>,
    /// Which policy has done that, and which ones failed and are ignored.
    pub notices: Vec<String>,
}

/// A policy that must not fail and does, or overrides what it must not.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{object}: {problem}")]
pub struct OverrideRefusal {
    /// The object, by kind and name.
    object: String,
    /// The policy, its rule, and what is wrong.
    problem: String,
}

/// A policy that has overridden what it must not.
struct Trespass {
    policy: PolicyKey,
    problem: String,
}

/// How a notice lists objects.
const OBJECTS: Listing = Listing {
    most: 5,
    separator: ", ",
    way_to_rest: "",
};

/// Why a policy gets no data from elsewhere.
const UNREAD: &str =
    "windlass reads no external data when it installs bundles: use current, or select other objects";

/// Determines the overrides of the objects of an install by policies. `namespaces` has the Namespaces of the
/// objects, by name.
///
/// # Errors
///
/// Each object for which a policy with failure policy `Fail` fails or overrides a guarded field.
pub fn decide(
    rendered: &Rendered,
    policies: &PolicySet,
    namespaces: &BTreeMap<String, Value>,
) -> Result<OverrideDecision, Vec<OverrideRefusal>> {
    let roles = ServingRoles {
        namespace: &rendered.namespace,
        certificates: &rendered.certificates,
        objects: &rendered.objects,
    };
    let mut decision = OverrideDecision::default();
    let mut refusals = Vec::new();
    let mut overridden: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut ignored = BTreeSet::new();
    for object in rendered.objects.iter().filter(|object| may_be_overridden(object)) {
        let namespace = object::text(object, "/metadata/namespace");
        let namespace = namespace.and_then(|name| namespaces.get(name));
        let outcome = match overridden_by(object, policies, namespace, &roles, &mut ignored) {
            Ok(outcome) => outcome,
            Err(problem) => {
                refusals.push(OverrideRefusal {
                    object: shown(object),
                    problem,
                });
                continue;
            }
        };
        if outcome.patch.is_empty() {
            continue;
        }
        let Some(change) = ObjectOverride::new(object, &outcome.patch) else {
            refusals.push(OverrideRefusal {
                object: shown(object),
                problem: "the result of its policies cannot be recorded; report this as a bug of Windlass"
                    .to_owned(),
            });
            continue;
        };
        decision.overrides.push(change);
        let by: BTreeSet<_> = outcome.steps.iter().map(|step| step.policy.to_string()).collect();
        for policy in by {
            overridden.entry(policy).or_default().push(shown(object));
        }
    }
    if !refusals.is_empty() {
        return Err(refusals);
    }
    let overriding = overridden
        .iter()
        .map(|(policy, objects)| format!("{policy} overrides {}", OBJECTS.summarize(objects)));
    decision.notices = overriding.chain(ignored).collect();
    Ok(decision)
}

/// A Namespace as policies see it: its name, labels and annotations. One that is not there is as it will be created.
pub fn namespace_as_seen(name: &str, live: Option<&Value>) -> Value {
    let mut metadata = json!({"name": name, "labels": {"kubernetes.io/metadata.name": name}});
    if let Some(live) = live {
        for field in ["labels", "annotations"] {
            metadata[field] = live["metadata"][field].clone();
        }
    }
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
}

/// Whether policies are asked about an object at install. What calls webhooks is not among the rendered objects.
fn may_be_overridden(object: &Value) -> bool {
    let text = |pointer| object::text(object, pointer).unwrap_or_default();
    can_select(text("/apiVersion"), text("/kind"))
}

/// What becomes of an object, without policies that may be ignored and override what they must not.
fn overridden_by(
    object: &Value,
    policies: &PolicySet,
    namespace: Option<&Value>,
    roles: &ServingRoles<'_>,
    ignored: &mut BTreeSet<String>,
) -> Result<OverrideOutcome, String> {
    let mut reduced: Option<PolicySet> = None;
    loop {
        let asked = reduced.as_ref().unwrap_or(policies);
        let outcome = ask(object, asked, namespace);
        if let Some(refusal) = &outcome.refusal {
            return Err(refusal.to_string());
        }
        let Some(Trespass { policy, problem }) = trespass(object, &outcome.steps, roles) else {
            let failed = outcome.ignored.iter();
            ignored.extend(failed.map(|failure| is_ignored(failure, object)));
            return Ok(outcome);
        };
        let may_fail = asked
            .policies()
            .any(|known| *known.key() == policy && known.failure_policy() == FailurePolicyType::Ignore);
        if !may_fail {
            return Err(problem);
        }
        ignored.insert(is_ignored(&problem, object));
        let others = asked.policies().filter(|known| *known.key() != policy);
        reduced = Some(PolicySet::new(others.cloned()));
    }
}

fn is_ignored(problem: &impl fmt::Display, object: &Value) -> String {
    format!("{problem}; that is ignored for {}", shown(object))
}

/// Asks policies about an object that is created. Nothing is fetched for them.
fn ask(object: &Value, policies: &PolicySet, namespace: Option<&Value>) -> OverrideOutcome {
    let text = |pointer| object::text(object, pointer).unwrap_or_default();
    let (group, version) = object::group_and_version(text("/apiVersion"));
    let request = json!({
        "kind": {"group": group, "version": version, "kind": text("/kind")},
        "namespace": text("/metadata/namespace"),
        "name": text("/metadata/name"),
        "operation": AdmissionOperation::Create.name(),
        "dryRun": false,
    });
    let attributes = AdmissionAttributes {
        request: &request,
        namespace_object: namespace,
        ..AdmissionAttributes::create(object)
    };
    let budget = EvaluationBudget::default();
    let mut answers = Answers::default();
    loop {
        match policies.override_object(&attributes, &answers, &budget) {
            PolicyEvaluation::Done(outcome) => return outcome,
            // Never one that was answered: this ends.
            PolicyEvaluation::Missing(missing) => {
                for reference in missing {
                    answers.insert(reference, FetchedAnswer::Failed(UNREAD.to_owned()));
                }
            }
        }
    }
}

/// The first step that overrides what it must not.
fn trespass(object: &Value, steps: &[AppliedStep], roles: &ServingRoles<'_>) -> Option<Trespass> {
    let mut became = object.clone();
    for step in steps {
        let problem = match patch::apply(&mut became, &step.patch) {
            Ok(()) => roles
                .guarded(object, &became)
                .map(|GuardedField { field, why }| format!("must not override {field}: {why}")),
            Err(error) => Some(error.to_string()),
        };
        if let Some(problem) = problem {
            let AppliedStep {
                policy, rule, step, ..
            } = step;
            return Some(Trespass {
                policy: policy.clone(),
                problem: format!("{policy}: rule {rule}: {step}: {problem}"),
            });
        }
    }
    None
}

/// An object, as people name it.
fn shown(object: &Value) -> String {
    let text = |pointer| object::text(object, pointer).unwrap_or_default();
    match text("/metadata/namespace") {
        "" => format!("{} {}", text("/kind"), text("/metadata/name")),
        namespace => format!("{} {namespace}/{}", text("/kind"), text("/metadata/name")),
    }
}
