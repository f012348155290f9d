//! Whose claim holds.

use std::cmp::Ordering;

use serde_json::Value;
use windlass_object::object;

use super::Api;

/// A BundleDeployment with what it claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimant {
    /// Name of the BundleDeployment.
    pub name: String,
    /// When it was created, in RFC 3339 with UTC, whose order is the order of time.
    pub created: String,
    /// `metadata.uid`; it decides between two that were created in one second.
    pub uid: String,
    /// Whether it has said what it claims since its spec was changed last.
    pub is_observed: bool,
    /// The APIs that it says it converts.
    pub claims: Vec<Api>,
}

// === impl Claimant ===

impl Claimant {
    /// What a live BundleDeployment says of itself.
    pub fn from_object(deployment: &Value) -> Self {
        let text = |pointer| object::text(deployment, pointer).unwrap_or_default().to_owned();
        let observed = deployment.pointer("/status/observedGeneration");
        Self {
            name: text("/metadata/name"),
            created: text("/metadata/creationTimestamp"),
            uid: text("/metadata/uid"),
            is_observed: observed.is_some() && observed == deployment.pointer("/metadata/generation"),
            claims: object::items(deployment, "/status/conversions")
                .iter()
                .filter_map(|conversion| {
                    Some(Api {
                        crd: object::text(conversion, "/crd")?.to_owned(),
                        kind: object::text(conversion, "/kind").unwrap_or_default().to_owned(),
                    })
                })
                .collect(),
        }
    }

    /// Whether it says that it converts `api`, or what cannot be beside it.
    pub fn claims(&self, api: &Api) -> bool {
        self.claims.iter().any(|claimed| claimed.clashes_with(api))
    }

    /// The older comes first; of two that are equally old, the one with the smaller uid.
    fn seniority(&self, other: &Self) -> Ordering {
        (&self.created, &self.uid).cmp(&(&other.created, &other.uid))
    }
}

/// Whose claim on `api` holds.
///
/// Who has it keeps it: `owner` is the BundleDeployment that the live CRD belongs to, and its claim holds for as
/// long as it makes it, also while it is being removed. Otherwise the oldest BundleDeployment's does; of two that are
/// equally old, that of the one with the smaller uid.
pub fn holder<'a>(api: &Api, claimants: &'a [Claimant], owner: Option<&str>) -> Option<&'a Claimant> {
    let rivals = || claimants.iter().filter(|claimant| claimant.claims(api));
    let owned = owner.and_then(|owner| rivals().find(|claimant| claimant.name == owner));
    owned.or_else(|| rivals().min_by(|one, other| one.seniority(other)))
}

/// Somebody older than the BundleDeployment with `uid` who may claim anything yet, since it has not said what it claims.
pub fn older_unobserved_claimant<'a>(uid: &str, claimants: &'a [Claimant]) -> Option<&'a Claimant> {
    let own = claimants.iter().find(|claimant| claimant.uid == uid)?;
    claimants
        .iter()
        .filter(|claimant| claimant.seniority(own) == Ordering::Less)
        .find(|claimant| !claimant.is_observed)
}
