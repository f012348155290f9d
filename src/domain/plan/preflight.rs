//! What speaks against an install, found before anything is written.

use serde_json::Value;
use thiserror::Error;

use crate::domain::{
    claims::{self, Claim},
    crd_upgrade::{Enforcement, Finding},
    names,
    object::{self, ObjectKey},
    render::Conversion,
};

/// One reason not to install.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// Another BundleDeployment converts the CustomResourceDefinition.
    #[error(
        "the conversion of {crd} is claimed by the BundleDeployment {holder}: {claimant} takes over when {holder} is deleted"
    )]
    ConversionClaimed {
        /// The CustomResourceDefinition.
        crd: String,
        /// Whose claim holds.
        holder: String,
        /// Whose claim is refused.
        claimant: String,
    },
    /// Another BundleDeployment has installed the API.
    #[error("{object} belongs to the BundleDeployment {owner}: an API has one owner")]
    ApiOwned {
        /// The CustomResourceDefinition.
        object: ObjectKey,
        /// Who has installed it.
        owner: String,
    },
    /// An object of that name is there and Windlass did not create it.
    #[error("{object} exists and {}: delete it, or annotate the BundleDeployment with {}: \"true\"", .owner.as_ref().map_or("was not created by Windlass".to_owned(), |owner| format!("belongs to the BundleDeployment {owner}")), names::ADOPT_EXISTING)]
    Foreign {
        /// The object.
        object: ObjectKey,
        /// The BundleDeployment that it belongs to, if it is one.
        owner: Option<String>,
    },
    /// A change of a CustomResourceDefinition breaks clients or stored objects.
    #[error(
        "CustomResourceDefinitions would change in ways that break clients or stored objects: {}; to allow it, name it in spec.crdUpgradeExceptions",
        listed(findings)
    )]
    UnsafeCrdUpgrade {
        /// What it breaks.
        findings: Vec<Finding>,
    },
}

/// How many findings a message shows; `windlass check --crd-upgrade` shows them all.
const SHOWN: usize = 10;

// === impl Refusal ===

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
            Self::ApiOwned { .. } => "ApiOwned",
            Self::Foreign { .. } => "ForeignObject",
            Self::UnsafeCrdUpgrade { .. } => "UnsafeCrdUpgrade",
        }
    }
}

/// Everything that speaks against an install for `claimant`: claims that others hold, and live objects (those of the
/// plan that are there) that belong to others. `adopt_existing` lets it take over what belongs to nobody.
pub fn preflight<'a>(
    claimant: &str,
    adopt_existing: bool,
    conversions: &[Conversion],
    claims: &[Claim],
    live: impl IntoIterator<Item = &'a Value>,
) -> Vec<Refusal> {
    let live: Vec<_> = live.into_iter().collect();
    let mut refusals = Vec::new();
    for Conversion { crd, .. } in conversions {
        let owner = live
            .iter()
            .find(|object| is_definition(object) && object::text(object, "/metadata/name") == Some(crd))
            .and_then(|object| object::label(object, names::BUNDLE_DEPLOYMENT));
        let holder = claims::holder(crd, claims, owner);
        if let Some(holder) = holder.filter(|holder| holder.bundle_deployment != claimant) {
            refusals.push(Refusal::ConversionClaimed {
                crd: crd.clone(),
                holder: holder.bundle_deployment.clone(),
                claimant: claimant.to_owned(),
            });
        }
    }
    for object in live {
        let Some(key) = ObjectKey::of(object) else {
            continue;
        };
        let owner = object::label(object, names::BUNDLE_DEPLOYMENT);
        let released = object::annotation(object, names::RELEASED_BY).is_some();
        let named_already = refusals.iter().any(|refusal| {
            matches!(refusal, Refusal::ConversionClaimed { crd, .. } if is_definition(object) && *crd == key.name)
        });
        match owner {
            Some(owner) if owner == claimant => {}
            Some(_) if named_already => {}
            Some(owner) if is_definition(object) => {
                refusals.push(Refusal::ApiOwned {
                    object: key,
                    owner: owner.to_owned(),
                });
            }
            Some(owner) => refusals.push(Refusal::Foreign {
                object: key,
                owner: Some(owner.to_owned()),
            }),
            None if adopt_existing || released => {}
            None => refusals.push(Refusal::Foreign {
                object: key,
                owner: None,
            }),
        }
    }
    refusals
}

/// The first findings as one text.
pub fn listed(findings: &[Finding]) -> String {
    let mut shown: Vec<String> = findings.iter().take(SHOWN).map(ToString::to_string).collect();
    if findings.len() > SHOWN {
        shown.push(format!(
            "and {} more: windlass check --crd-upgrade shows them all",
            findings.len() - SHOWN
        ));
    }
    shown.join("; ")
}

fn is_definition(object: &Value) -> bool {
    object::text(object, "/kind") == Some("CustomResourceDefinition")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn conversion() -> Conversion {
        Conversion {
            crd: "widgets.example.com".into(),
            namespace: "n".into(),
            service: "s".into(),
            port: 443,
            path: "/convert".into(),
            review_versions: vec!["v1".into()],
        }
    }

    fn claim(bundle_deployment: &str, day: u8) -> Claim {
        Claim {
            crd: "widgets.example.com".into(),
            bundle_deployment: bundle_deployment.into(),
            created: format!("2026-01-0{day}T00:00:00Z"),
            uid: bundle_deployment.into(),
        }
    }

    fn definition(metadata: Value) -> Value {
        let mut definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com"}
        });
        for (name, value) in metadata.as_object().unwrap() {
            definition["metadata"][name] = value.clone();
        }
        definition
    }

    fn reasons(claimant: &str, claims: &[Claim], live: &[Value]) -> Vec<&'static str> {
        preflight(claimant, false, &[conversion()], claims, live)
            .iter()
            .map(Refusal::reason)
            .collect()
    }

    #[test]
    fn the_first_claim_passes_and_the_second_is_refused_once_with_both_names() {
        let claims = [claim("first", 1), claim("second", 2)];
        assert_eq!(reasons("first", &claims, &[]), [""; 0]);
        let live = [definition(
            json!({"labels": {"windlass.dev/bundle-deployment": "first"}}),
        )];
        assert_eq!(reasons("first", &claims, &live), [""; 0]);
        let refusals = preflight("second", false, &[conversion()], &claims, &live);
        assert_eq!(refusals.len(), 1);
        let message = refusals[0].to_string();
        assert!(
            message.contains("first") && message.contains("second"),
            "{message}"
        );
        assert_eq!(reasons("second", &claims[1..], &[]), [""; 0]);
    }

    #[test]
    fn what_others_own_is_refused_and_what_was_released_is_not() {
        for (metadata, expected) in [
            (
                json!({"labels": {"windlass.dev/bundle-deployment": "other"}}),
                vec!["ApiOwned"],
            ),
            (json!({}), vec!["ForeignObject"]),
            (
                json!({"annotations": {"windlass.dev/released-by": "other"}}),
                vec![],
            ),
        ] {
            let live = [definition(metadata.clone())];
            assert_eq!(
                reasons("mine", &[claim("mine", 1)], &live),
                expected,
                "{metadata}"
            );
        }
    }
}
