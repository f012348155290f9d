//! The stages in which a CustomResourceDefinition changes from its live to its desired state. No version is
//! served that an endpoint does not know, and no stored version is lost.

use serde_json::{Value, json};

use crate::{is_served, is_storage, storage_version, stored_versions, version, version_name, versions};

/// The progress of an install when it applies a CustomResourceDefinition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Webhooks still call pods of the previous revision.
    Rollout,
    /// Conversions and webhooks go from pods of one revision to those of the other, or a conversion is about to end: requests may
    /// reach pods of both.
    Common,
    /// Webhooks call only pods of the new revision, which are proven.
    Proven,
    /// Every API server has observed this.
    Settled,
}

impl Stage {
    /// All stages in order.
    pub const ALL: [Self; 4] = [Self::Rollout, Self::Common, Self::Proven, Self::Settled];
}

/// Returns the body to apply for `desired`, without its conversion. `converts` says whether a webhook
/// converts between its versions, now or in the desired state.
///
/// Without a live object, all versions are served immediately, because nothing is stored. Otherwise:
///
/// - [`Stage::Rollout`]: served versions stay served. New versions are added, but served only if nothing converts, because pods of the
///   previous revision do not know them.
/// - [`Stage::Common`]: only versions that both states serve are served.
/// - From [`Stage::Proven`] on, the desired versions are served. A dropped version that may be stored stays, but is not served.
/// - [`Stage::Settled`]: the storage version changes. Earlier, an API server that has not observed the new version could not read objects
///   stored in it.
pub fn staged(desired: &Value, live: Option<&Value>, stage: Stage, converts: bool) -> Value {
    let mut body = desired.clone();
    if let Some(spec) = body.get_mut("spec").and_then(Value::as_object_mut) {
        spec.remove("conversion");
    }
    let Some(live) = live else { return body };
    let mut all = versions(desired).to_vec();
    for version in &mut all {
        let is_live = serves(live, version_name(version));
        version["served"] = json!(match stage {
            Stage::Rollout => is_live || (!converts && is_served(version)),
            Stage::Common => is_live && is_served(version),
            Stage::Proven | Stage::Settled => is_served(version),
        });
    }
    let stored = stored_versions(live);
    for dropped in dropped_versions(desired, live) {
        let mut dropped = dropped.clone();
        if matches!(stage, Stage::Rollout | Stage::Common) || stored.contains(&version_name(&dropped)) {
            dropped["served"] = json!(stage == Stage::Rollout && is_served(&dropped));
            all.push(dropped);
        }
    }
    let storage = match stage {
        Stage::Settled => storage_version(desired),
        _ => storage_version(live),
    };
    for version in &mut all {
        version["storage"] = json!(Some(version_name(version)) == storage);
    }
    body["spec"]["versions"] = Value::from(all);
    body
}

/// Reports whether a part of `desired` must wait until the new revision is proven: an additional served
/// version, or another storage version.
pub fn waits_for_proof(desired: &Value, live: &Value) -> bool {
    let serves_more = stops_serving(live, desired);
    serves_more || storage_version(desired) != storage_version(live)
}

/// Reports whether `live` serves a version that `desired` does not.
pub fn stops_serving(desired: &Value, live: &Value) -> bool {
    versions(live)
        .iter()
        .filter(|version| is_served(version))
        .any(|version| !serves(desired, version_name(version)))
}

/// Returns the versions of `live` that `desired` drops.
pub fn dropped_versions<'a>(desired: &'a Value, live: &'a Value) -> impl Iterator<Item = &'a Value> {
    versions(live)
        .iter()
        .filter(move |there| version(desired, version_name(there)).is_none())
}

/// Returns the versions that `desired` drops although objects may be stored in them.
pub fn dropped_but_stored<'a>(desired: &Value, live: &'a Value) -> Vec<&'a str> {
    stored_versions(live)
        .into_iter()
        .filter(|stored| version(desired, stored).is_none())
        .collect()
}

/// Reports whether a live CRD needs no conversion: nothing is stored, or everything is stored in the only
/// served version.
pub fn may_stop_converting(live: &Value, has_objects: bool) -> bool {
    let served: Vec<_> = versions(live)
        .iter()
        .filter(|version| is_served(version))
        .map(version_name)
        .collect();
    !has_objects || (served.len() == 1 && stored_versions(live) == served)
}

/// Reports whether a CRD serves the version `name`.
fn serves(crd: &Value, name: &str) -> bool {
    version(crd, name).is_some_and(is_served)
}

/// Returns index and name of the versions of `live` that cannot stay served without a converter: all but the
/// storage version, if that is served.
pub fn unservable_versions(live: &Value) -> Vec<(usize, &str)> {
    if !storage_version(live).is_some_and(|storage| serves(live, storage)) {
        return Vec::new();
    }
    versions(live)
        .iter()
        .enumerate()
        .filter(|(_, version)| is_served(version) && !is_storage(version))
        .map(|(index, version)| (index, version_name(version)))
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn crd(versions: &[(&str, bool, bool)], stored: &[&str]) -> Value {
        let versions: Vec<_> = versions
            .iter()
            .map(|(name, served, storage)| json!({"name": name, "served": served, "storage": storage}))
            .collect();
        json!({
            "spec": {"conversion": {"strategy": "Webhook"}, "versions": versions},
            "status": {"storedVersions": stored}
        })
    }

    fn shape(body: &Value) -> Vec<(&str, bool, bool)> {
        versions(body)
            .iter()
            .map(|version| (version_name(version), is_served(version), is_storage(version)))
            .collect()
    }

    #[test]
    fn a_new_crd_is_served_immediately_without_conversion() {
        let desired = crd(&[("v1", true, true), ("v1beta1", true, false)], &[]);
        let body = staged(&desired, None, Stage::Rollout, true);
        assert_eq!(shape(&body), [("v1", true, true), ("v1beta1", true, false)]);
        assert_eq!(body["spec"].get("conversion"), None);
    }

    #[test]
    fn a_new_version_is_served_after_proof_and_stored_once_settled() {
        let live = crd(&[("v1", true, true)], &["v1"]);
        let desired = crd(&[("v1", true, false), ("v2", true, true)], &[]);
        assert!(waits_for_proof(&desired, &live));
        assert!(!stops_serving(&desired, &live));
        let during = staged(&desired, Some(&live), Stage::Rollout, true);
        assert_eq!(shape(&during), [("v1", true, true), ("v2", false, false)]);
        let proven = staged(&desired, Some(&live), Stage::Proven, true);
        assert_eq!(shape(&proven), [("v1", true, true), ("v2", true, false)]);
        let settled = staged(&desired, Some(&live), Stage::Settled, true);
        assert_eq!(shape(&settled), [("v1", true, false), ("v2", true, true)]);
    }

    #[test]
    fn without_conversion_a_new_version_is_served_immediately() {
        let live = crd(&[("v1", true, true)], &["v1"]);
        let desired = crd(&[("v1", true, true), ("v2", true, false)], &[]);
        let during = staged(&desired, Some(&live), Stage::Rollout, false);
        assert_eq!(shape(&during), [("v1", true, true), ("v2", true, false)]);
    }

    #[test]
    fn a_dropped_version_is_served_during_the_rollout_and_kept_while_stored() {
        let live = crd(&[("v1alpha1", true, true), ("v1", true, false)], &["v1alpha1"]);
        let desired = crd(&[("v1", true, true)], &[]);
        assert_eq!(dropped_but_stored(&desired, &live), ["v1alpha1"]);
        assert!(stops_serving(&desired, &live));
        for (stage, expected) in [
            (Stage::Rollout, [("v1", true, false), ("v1alpha1", true, true)]),
            (Stage::Common, [("v1", true, false), ("v1alpha1", false, true)]),
            (Stage::Proven, [("v1", true, false), ("v1alpha1", false, true)]),
            (Stage::Settled, [("v1", true, true), ("v1alpha1", false, false)]),
        ] {
            assert_eq!(
                shape(&staged(&desired, Some(&live), stage, true)),
                expected,
                "{stage:?}"
            );
        }
        let live = crd(&[("v1alpha1", true, false), ("v1", true, true)], &["v1"]);
        assert_eq!(
            shape(&staged(&desired, Some(&live), Stage::Proven, true)),
            [("v1", true, true)]
        );
    }

    #[test]
    fn conversion_may_stop_only_without_data_loss() {
        let both = crd(&[("v1", true, true), ("v1beta1", true, false)], &["v1"]);
        let one = crd(&[("v1", true, true), ("v1beta1", false, false)], &["v1"]);
        let leftover = crd(
            &[("v1", true, true), ("v1beta1", false, false)],
            &["v1beta1", "v1"],
        );
        for (live, has_objects, expected) in [
            (&both, false, true),
            (&both, true, false),
            (&one, true, true),
            (&leftover, true, false),
        ] {
            assert_eq!(may_stop_converting(live, has_objects), expected, "{live}");
        }
    }

    #[test]
    fn a_moved_storage_version_waits_for_proof() {
        let live = crd(&[("v1", true, true), ("v2", true, false)], &["v1"]);
        let desired = crd(&[("v1", true, false), ("v2", true, true)], &[]);
        assert!(waits_for_proof(&desired, &live));
        assert!(!waits_for_proof(&live, &live));
        let less = crd(&[("v1", true, true), ("v2", false, false)], &[]);
        assert!(!waits_for_proof(&less, &live) && stops_serving(&less, &live));
    }

    #[test]
    fn without_a_webhook_only_the_storage_version_can_be_served() {
        let several = crd(
            &[
                ("v2", true, false),
                ("v1", true, true),
                ("v1beta1", true, false),
                ("v1alpha1", false, false),
            ],
            &["v1"],
        );
        assert_eq!(unservable_versions(&several), [(0, "v2"), (2, "v1beta1")]);
        assert_eq!(unservable_versions(&crd(&[("v1", true, true)], &["v1"])), []);
        let hidden = crd(&[("v2", true, false), ("v1", false, true)], &["v1"]);
        assert_eq!(unservable_versions(&hidden), [], "no version would be served");
    }

    fn crds() -> impl Strategy<Value = Value> {
        let subset = prop::sample::subsequence(vec!["v1alpha1", "v1beta1", "v1", "v2"], 1..=4);
        (subset, any::<prop::sample::Index>(), any::<u8>()).prop_map(|(names, storage, served)| {
            let storage = storage.index(names.len());
            let versions: Vec<_> = names
                .iter()
                .enumerate()
                .map(|(index, name)| (*name, served & (1 << index) != 0, index == storage))
                .collect();
            let stored: Vec<_> = names.iter().copied().take(storage + 1).collect();
            crd(&versions, &stored)
        })
    }

    proptest! {
        #[test]
        fn every_stage_keeps_one_storage_version_and_all_stored_versions(
            desired in crds(), live in crds(), converts: bool,
        ) {
            for stage in Stage::ALL {
                let body = staged(&desired, Some(&live), stage, converts);
                let storage = shape(&body).iter().filter(|(_, _, storage)| *storage).count();
                prop_assert_eq!(storage, 1);
                for stored in stored_versions(&live) {
                    prop_assert!(version(&body, stored).is_some(), "{} is missing", stored);
                }
            }
        }

        #[test]
        fn a_rollout_with_conversion_does_not_change_the_served_versions(desired in crds(), live in crds()) {
            for (name, served, _) in shape(&staged(&desired, Some(&live), Stage::Rollout, true)) {
                prop_assert_eq!(served, serves(&live, name));
            }
        }

        #[test]
        fn while_pods_of_both_revisions_are_called_only_common_versions_are_served(desired in crds(), live in crds()) {
            for (name, served, _) in shape(&staged(&desired, Some(&live), Stage::Common, true)) {
                prop_assert_eq!(served, serves(&live, name) && serves(&desired, name));
            }
        }

        #[test]
        fn stages_never_regress(desired in crds(), live in crds(), converts: bool) {
            let mut now = live.clone();
            for stage in [Stage::Rollout, Stage::Proven, Stage::Settled] {
                let body = staged(&desired, Some(&now), stage, converts);
                now["spec"] = body["spec"].clone();
                let again = staged(&desired, Some(&now), Stage::Rollout, converts);
                prop_assert_eq!(shape(&again), shape(&now), "{:?}", stage);
            }
            prop_assert!(!waits_for_proof(&desired, &now) && !stops_serving(&desired, &now));
        }
    }
}
