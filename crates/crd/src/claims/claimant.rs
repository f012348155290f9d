//! Determines which BundleDeployment's claim on an API holds.

use std::cmp::Ordering;

use serde_json::Value;
use windlass_object::object;

use super::Api;

/// A BundleDeployment and its claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimant {
    /// Name of the BundleDeployment.
    pub name: String,
    /// The creation time in RFC 3339 and UTC, which sorts by time.
    pub created: String,
    /// `metadata.uid`, which breaks ties between equal creation times.
    pub uid: String,
    /// Whether its status reports the claims of its present spec.
    pub is_observed: bool,
    /// The APIs that it reports to convert.
    pub claims: Vec<Api>,
}

impl Claimant {
    /// Reads a live BundleDeployment.
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

    /// Reports whether the claimant claims `api` or an API that clashes with it.
    pub fn claims(&self, api: &Api) -> bool {
        self.claims.iter().any(|claimed| claimed.clashes_with(api))
    }

    /// Orders by age, then by uid.
    fn seniority(&self, other: &Self) -> Ordering {
        (&self.created, &self.uid).cmp(&(&other.created, &other.uid))
    }
}

/// Returns the claimant whose claim on `api` holds.
///
/// An existing claim has precedence: `owner` is the BundleDeployment that owns the live CRD, and it keeps the
/// claim until it drops it, even during its removal. Otherwise the oldest BundleDeployment wins; among
/// equally old ones, that with the smallest uid.
pub fn holder<'a>(api: &Api, claimants: &'a [Claimant], owner: Option<&str>) -> Option<&'a Claimant> {
    let rivals = || claimants.iter().filter(|claimant| claimant.claims(api));
    let owned = owner.and_then(|owner| rivals().find(|claimant| claimant.name == owner));
    owned.or_else(|| rivals().min_by(|one, other| one.seniority(other)))
}

/// Returns a BundleDeployment that is older than the one with `uid` and has not reported its claims yet, so
/// it may claim any API.
pub fn older_unobserved_claimant<'a>(uid: &str, claimants: &'a [Claimant]) -> Option<&'a Claimant> {
    let own = claimants.iter().find(|claimant| claimant.uid == uid)?;
    claimants
        .iter()
        .filter(|claimant| claimant.seniority(own) == Ordering::Less)
        .find(|claimant| !claimant.is_observed)
}
