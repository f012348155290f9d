//! What speaks against an install, found before anything is written.
use serde_json::{Map, Value};
use thiserror::Error;
use windlass_crd::{
    claims::{self, Adoption, Api, Claimant, ExistingDeployments, Owner, foreign_object_message},
    upgrade_safety::{Enforcement, Finding, UpgradeRule},
};
use windlass_object::{ObjectKey, names, object, text::Listing};

use super::{
    Phase,
    install_plan::Plan,
    interruptions::{Interruption, interruptions},
    unserved::UnservedCalls,
};

/// Who wants to install what, and what is in the cluster.
#[derive(Clone, Copy, Debug)]
pub struct PreflightObservation<'a> {
    /// Name of the BundleDeployment.
    pub claimant: &'a str,
    /// What it wants to install.
    pub plan: &'a Plan,
    /// What it may take over.
    pub adopt: &'a [Adoption],
    /// Every BundleDeployment with its claims, this one with what the plan says.
    pub claimants: &'a [Claimant],
    /// Those objects of the plan that are there.
    pub live: &'a [&'a Value],
    /// Every CustomResourceDefinition that is there.
    pub crds: &'a [&'a Value],
    /// Every Deployment that was installed for this BundleDeployment, also of those that the plan drops.
    pub deployments: &'a [&'a Value],
    /// Services of others that webhooks or conversions call.
    pub called: &'a [&'a Value],
    /// Calls of others that the plan does [not serve](super::unserved).
    pub unserved: &'a [String],
    /// Whether webhooks may go unanswered while a Deployment is upgraded.
    pub allow_interruption: bool,
}

/// One reason not to install.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the message says what each field is")]
pub enum Refusal {
    /// Another BundleDeployment converts the CustomResourceDefinition.
    #[error(
        "the conversion of {crd} is claimed by the BundleDeployment {holder}: {claimant} takes over when {holder} is deleted"
    )]
    ConversionClaimed {
        crd: String,
        holder: String,
        claimant: String,
    },
    /// Another BundleDeployment has installed the API.
    #[error(
        "{object} belongs to the BundleDeployment {owner}: an API has one owner, so {claimant} takes over when {owner} is deleted or no longer contains it"
    )]
    ApiOwned {
        object: ObjectKey,
        owner: String,
        claimant: String,
    },
    /// The kind is that of another CustomResourceDefinition.
    #[error(
        "{desired} conflicts with the CustomResourceDefinition {}, which belongs to {owner}: both define the kind {} in the group {}",
        .there.crd, .there.kind, .there.group()
    )]
    KindTaken {
        /// The CustomResourceDefinition of the bundle.
        desired: String,
        /// What is there.
        there: Api,
        owner: Owner,
    },
    /// An object of that name is there and Windlass did not create it.
    #[error("{}", foreign_object_message(object, owner))]
    Foreign { object: ObjectKey, owner: Owner },
    /// Calls of others would go to pods whose certificates they do not trust.
    #[error(
        "webhooks call {deployment} through {service}, which would also select its new pods, whose certificate the callers do not trust: to adopt it without failed requests, use windlass install --adopt-from; to adopt it immediately, set spec.upgrade.allowInterruption: true"
    )]
    AdoptionInterrupts {
        deployment: ObjectKey,
        service: ObjectKey,
    },
    /// Others call what the bundle does not serve.
    #[error(transparent)]
    Unserved(UnservedCalls),
    /// A change of a CustomResourceDefinition breaks clients or stored objects.
    #[error(
        "CustomResourceDefinition changes would break clients or stored objects: {}; {}",
        listed(findings),
        way_out(findings)
    )]
    UnsafeCrdUpgrade { findings: Vec<Finding> },
    /// Pods of two revisions cannot run beside each other.
    #[error(
        "the upgrade would interrupt the webhooks of {}, because {}: from the stop of an old pod until a new one is ready, requests would fail that need {}; to allow this, set spec.upgrade.allowInterruption: true",
        .0.deployment,
        .0.cause,
        .0.needing
    )]
    Interruption(Interruption),
}

const CRD_KIND: &str = "CustomResourceDefinition";

/// How a message lists findings.
const FINDINGS: Listing = Listing {
    most: 10,
    separator: "; ",
    way_to_rest: ": to see all, run windlass check --crd-upgrade",
};

impl Refusal {
    /// The refusal of a change of CustomResourceDefinitions, if what it breaks is more than warned of.
    pub fn of_crd_upgrade(findings: &[Finding]) -> Option<Self> {
        let findings: Vec<_> = findings
            .iter()
            .filter(|finding| finding.enforcement == Enforcement::Strict)
            .cloned()
            .collect();
        (!findings.is_empty()).then_some(Self::UnsafeCrdUpgrade { findings })
    }

    /// One word in CamelCase.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::ConversionClaimed { .. } => "ConversionClaimed",
            Self::ApiOwned { .. } | Self::KindTaken { .. } => "ApiOwned",
            Self::Foreign { object, .. } if object.kind == CRD_KIND => "ApiOwned",
            Self::Foreign { .. } => "ForeignObject",
            Self::UnsafeCrdUpgrade { .. } => "UnsafeCrdUpgrade",
            Self::AdoptionInterrupts { .. } => "AdoptionInterrupts",
            Self::Unserved(_) => "CalledByOthers",
            Self::Interruption(_) => "UpgradeInterrupts",
        }
    }
}

/// Returns every reason to reject an install: APIs that other BundleDeployments claim, live objects that have
/// other owners, and interruptions that are not allowed.
pub fn preflight(scene: &PreflightObservation<'_>) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    let deployments = scene.claimants.iter();
    let living = deployments
        .map(|deployment| (deployment.name.clone(), deployment.uid.clone()))
        .collect();
    for crd in scene.plan.phases.of(Phase::Crds) {
        let Some(api) = Api::from_crd(crd) else { continue };
        let converts = scene.plan.conversion(&api.crd).is_some();
        let claimed = converts.then(|| conversion_claimed(scene, &api)).flatten();
        refusals.extend(claimed.or_else(|| kind_taken(scene, &api, &living)));
    }
    for object in scene.live {
        let Some(key) = ObjectKey::from_object(object) else {
            continue;
        };
        let named_already = refusals.iter().any(|refusal| {
            matches!(refusal, Refusal::ConversionClaimed { crd, .. } if key.kind == CRD_KIND && *crd == key.name)
        });
        match Owner::from_object(object, &living) {
            Owner::BundleDeployment(owner) if owner == scene.claimant => {}
            Owner::BundleDeployment(_) if named_already => {}
            Owner::BundleDeployment(owner) if key.kind == CRD_KIND => {
                refusals.push(Refusal::ApiOwned {
                    object: key,
                    owner,
                    claimant: scene.claimant.to_owned(),
                });
            }
            Owner::Other(_) if scene.adopt.iter().any(|adoption| adoption.names(object)) => {
                refusals.extend(interrupted(scene, object, &key));
            }
            nobody if nobody.is_unowned() => {}
            owner => refusals.push(Refusal::Foreign { object: key, owner }),
        }
    }
    if !scene.allow_interruption {
        if !scene.unserved.is_empty() {
            let (calls, claimant) = (scene.unserved.to_vec(), scene.claimant.to_owned());
            refusals.push(Refusal::Unserved(UnservedCalls { calls, claimant }));
        }
        let interruptions = interruptions(scene.plan, scene.deployments);
        refusals.extend(interruptions.into_iter().map(Refusal::Interruption));
    }
    refusals
}

/// Returns why an existing Deployment may not be adopted: a Service that webhooks call would also select its
/// new pods.
fn interrupted(scene: &PreflightObservation<'_>, live: &Value, key: &ObjectKey) -> Option<Refusal> {
    let mut deployments = scene.plan.phases.of(Phase::Deployments);
    let desired = deployments.find(|desired| ObjectKey::from_object(desired).as_ref() == Some(key))?;
    if scene.allow_interruption || !scene.plan.is_serving(desired) {
        return None;
    }
    let namespace = object::text(live, "/metadata/namespace");
    let labels = desired.pointer("/spec/template/metadata/labels")?;
    let service = scene.called.iter().find(|service| {
        let selector = service.pointer("/spec/selector").and_then(Value::as_object);
        let selects = |selector: &Map<String, Value>| {
            !selector.is_empty()
                && selector
                    .iter()
                    .all(|(name, value)| labels.get(name) == Some(value))
        };
        object::text(service, "/metadata/namespace") == namespace && selector.is_some_and(selects)
    })?;
    Some(Refusal::AdoptionInterrupts {
        deployment: key.clone(),
        service: ObjectKey::from_object(service)?,
    })
}

fn conversion_claimed(scene: &PreflightObservation<'_>, api: &Api) -> Option<Refusal> {
    let owner = scene
        .crds
        .iter()
        .find(|there| object::text(there, "/metadata/name") == Some(&api.crd))
        .and_then(|there| object::label(there, names::BUNDLE_DEPLOYMENT));
    let holder = claims::holder(api, scene.claimants, owner)?;
    (holder.name != scene.claimant).then(|| Refusal::ConversionClaimed {
        crd: api.crd.clone(),
        holder: holder.name.clone(),
        claimant: scene.claimant.to_owned(),
    })
}

/// The API server takes a second CRD of a kind, but never serves it.
fn kind_taken(scene: &PreflightObservation<'_>, api: &Api, living: &ExistingDeployments) -> Option<Refusal> {
    let mut others = scene
        .crds
        .iter()
        .filter_map(|there| Some((Api::from_crd(there)?, there)));
    let (there, crd) = others.find(|(there, _)| there.crd != api.crd && there.clashes_with(api))?;
    Some(Refusal::KindTaken {
        desired: api.crd.clone(),
        there,
        owner: Owner::from_object(crd, living),
    })
}

/// Says what to do about findings that refuse a change.
fn way_out(findings: &[Finding]) -> &'static str {
    if findings
        .iter()
        .any(|finding| finding.rule == UpgradeRule::StoredObjects)
    {
        "change the listed objects, and the upgrade is retried; or add exceptions to spec.crdUpgradeExceptions"
    } else {
        "to allow this, add exceptions to spec.crdUpgradeExceptions"
    }
}

/// The first findings as one text.
pub fn listed(findings: &[Finding]) -> String {
    FINDINGS.summarize(findings)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::install::plan::Phases;
    use windlass_bundle::render::{Conversion, ServingDefaults};
    use windlass_object::yaml;

    /// A CRD of widgets; `metadata` is YAML.
    fn crd(name: &str, metadata: &str) -> Value {
        let mut crd = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": yaml::documents(metadata.as_bytes()).unwrap().remove(0),
            "spec": {"names": {"kind": "Widget"}}
        });
        crd["metadata"]["name"] = name.into();
        crd
    }

    /// A plan for the widgets, with conversion or without.
    fn plan(converts: bool) -> Plan {
        let conversion = Conversion {
            crd: "widgets.example.com".into(),
            namespace: "n".into(),
            service: "s".into(),
            port: 443,
            path: "/convert".into(),
            review_versions: vec!["v1".into()],
        };
        Plan {
            namespace: "n".into(),
            phases: Phases::new([crd("widgets.example.com", "{}")]),
            conversions: if converts { vec![conversion] } else { vec![] },
            self_managed: None,
            certificates: vec![],
            serving: ServingDefaults::default(),
            examples: vec![],
            notices: vec![],
        }
    }

    fn claimant(name: &str, day: u8) -> Claimant {
        Claimant {
            name: name.into(),
            created: format!("2026-01-0{day}T00:00:00Z"),
            uid: name.into(),
            is_observed: true,
            claims: plan(true).apis(),
        }
    }

    /// Another BundleDeployment, which claims nothing.
    fn bystander() -> Claimant {
        Claimant {
            claims: vec![],
            ..claimant("other", 3)
        }
    }

    fn refusals(name: &str, adopt: &[Adoption], claimants: &[Claimant], there: &[Value]) -> Vec<Refusal> {
        let crds: Vec<_> = there.iter().collect();
        let live: Vec<_> = there
            .iter()
            .filter(|there| there["metadata"]["name"] == "widgets.example.com")
            .collect();
        preflight(&PreflightObservation {
            claimant: name,
            plan: &plan(claimants.iter().any(|claimant| !claimant.claims.is_empty())),
            adopt,
            claimants,
            live: &live,
            crds: &crds,
            deployments: &[],
            called: &[],
            unserved: &[],
            allow_interruption: false,
        })
    }

    fn reasons(name: &str, claimants: &[Claimant], there: &[Value]) -> Vec<&'static str> {
        let refusals = refusals(name, &[], claimants, there);
        refusals.iter().map(Refusal::reason).collect()
    }

    #[test]
    fn the_first_claim_passes_and_the_second_is_refused_once_with_both_names() {
        let claimants = [claimant("first", 1), claimant("second", 2)];
        assert_eq!(reasons("first", &claimants, &[]), [""; 0]);
        let there = [crd(
            "widgets.example.com",
            "{labels: {windlass.dev/bundle-deployment: first}, managedFields: [{manager: windlass-install, operation: Apply}]}",
        )];
        assert_eq!(reasons("first", &claimants, &there), [""; 0]);
        let refusals = refusals("second", &[], &claimants, &there);
        assert_eq!(refusals.len(), 1);
        assert_eq!(refusals[0].reason(), "ConversionClaimed");
        let message = refusals[0].to_string();
        assert!(
            message.contains("first") && message.contains("second"),
            "{message}"
        );
        assert_eq!(reasons("second", &claimants[1..], &[]), [""; 0]);
    }

    #[test]
    fn an_api_that_others_provide_is_refused_with_their_name_unless_it_is_adopted() {
        let adopt: Adoption = "CustomResourceDefinition/widgets.example.com".parse().unwrap();
        let other: Adoption = "CustomResourceDefinition/gadgets.example.com".parse().unwrap();
        for (metadata, owner, adoptable) in [
            (
                "{labels: {windlass.dev/bundle-deployment: other}, managedFields: [{manager: windlass-install, operation: Apply}]}",
                "the BundleDeployment other",
                false,
            ),
            (
                "{annotations: {meta.helm.sh/release-name: r}}",
                "the Helm release r",
                true,
            ),
            (
                "{labels: {operators.coreos.com/p.ns: ''}}",
                "OLM's operator p.ns",
                true,
            ),
            ("{managedFields: [{manager: kubectl}]}", "kubectl", true),
        ] {
            let there = [crd("widgets.example.com", metadata)];
            for claimants in [&[bystander()][..], &[claimant("mine", 1), bystander()]] {
                let refused = refusals("mine", std::slice::from_ref(&other), claimants, &there);
                assert_eq!(refused.len(), 1, "{metadata}");
                assert_eq!(refused[0].reason(), "ApiOwned");
                assert!(refused[0].to_string().contains(owner), "{}", refused[0]);
                let adopted = refusals("mine", std::slice::from_ref(&adopt), claimants, &there);
                assert_eq!(adopted.is_empty(), adoptable, "{metadata}");
            }
        }
        let there = [crd(
            "widgets.example.com",
            "{annotations: {windlass.dev/released-by: other}}",
        )];
        assert_eq!(reasons("mine", &[claimant("mine", 1)], &there), [""; 0]);
    }

    #[test]
    fn a_kind_under_another_name_is_refused_and_cannot_be_adopted() {
        let there = [crd("widgetes.example.com", "{managedFields: [{manager: helm}]}")];
        let adopt: Adoption = "CustomResourceDefinition/widgetes.example.com".parse().unwrap();
        let refused = refusals("mine", &[adopt], &[claimant("mine", 1)], &there);
        assert_eq!(refused.len(), 1);
        let message = refused[0].to_string();
        for part in ["widgets.example.com", "widgetes.example.com", "Widget", "helm"] {
            assert!(message.contains(part), "{message}");
        }
        let elsewhere = crd("widgets.example.org", "{}");
        assert_eq!(reasons("mine", &[], &[elsewhere]), [""; 0]);
    }

    #[test]
    fn an_object_that_is_no_crd_is_foreign_to_everybody_else() {
        let account =
            |metadata: Value| json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata});
        let plan = plan(false);
        let refused = |object: &Value, adopt: &[Adoption]| {
            let scene = PreflightObservation {
                claimant: "mine",
                plan: &plan,
                adopt,
                claimants: &[bystander()],
                live: &[object],
                crds: &[],
                deployments: &[],
                called: &[],
                unserved: &[],
                allow_interruption: false,
            };
            preflight(&scene).iter().map(Refusal::reason).collect::<Vec<_>>()
        };
        let adopt: Adoption = "ServiceAccount/a".parse().unwrap();
        let strange = account(json!({"name": "a", "namespace": "n"}));
        assert_eq!(refused(&strange, &[]), ["ForeignObject"]);
        assert_eq!(refused(&strange, std::slice::from_ref(&adopt)), [""; 0]);
        let labelled = |name: &str, manager: &str| {
            account(json!({
                "name": "a", "namespace": "n", "labels": {"windlass.dev/bundle-deployment": name},
                "managedFields": [{"manager": manager, "operation": "Apply"}],
            }))
        };
        let adopt = std::slice::from_ref(&adopt);
        let others = labelled("other", "windlass-install");
        assert_eq!(refused(&others, adopt), ["ForeignObject"]);
        // Nobody's any more: the BundleDeployment is gone.
        assert_eq!(refused(&labelled("gone", "windlass-install"), &[]), [""; 0]);
        for name in ["other", "mine", "gone"] {
            let copy = labelled(name, "kubectl");
            assert_eq!(refused(&copy, &[]), ["ForeignObject"], "{name}");
            assert_eq!(refused(&copy, adopt), [""; 0], "{name}");
        }
    }

    #[test]
    fn a_change_is_refused_with_the_way_out() {
        let finding = |rule: UpgradeRule, enforcement| Finding {
            crd: "widgets.example.com".into(),
            version: Some("v1".into()),
            field: Some("^.spec.size".into()),
            rule,
            message: "broken".into(),
            enforcement,
        };
        let strict = |rule| finding(rule, Enforcement::Strict);
        let warned = finding(UpgradeRule::StoredObjects, Enforcement::Warn);
        for (findings, expected) in [
            (vec![], None),
            (vec![warned.clone()], None),
            (
                vec![strict(UpgradeRule::Type), warned],
                Some("type: broken; to allow this, add exceptions to spec.crdUpgradeExceptions"),
            ),
            (
                vec![strict(UpgradeRule::StoredObjects)],
                Some(
                    "storedObjects: broken; change the listed objects, and the upgrade is retried; or add exceptions to spec.crdUpgradeExceptions",
                ),
            ),
        ] {
            let refusal = Refusal::of_crd_upgrade(&findings).map(|refusal| refusal.to_string());
            match (refusal, expected) {
                (None, None) => {}
                (Some(message), Some(expected)) => assert!(message.ends_with(expected), "{message}"),
                (refusal, expected) => panic!("{refusal:?} for {expected:?}"),
            }
        }
    }
}
