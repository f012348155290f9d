//! Status of an InjectionTarget: whether its kind is watched, and which rights are required for that.

use jiff::Timestamp;
use serde_json::json;
use windlass_api::{InjectionTarget, InjectionTargetStatus};
use windlass_cluster::injection_targets::InvalidInjectionTarget;
use windlass_trust::injection::TargetKind;

use crate::{
    admission::CERTIFICATES_ACCOUNT,
    install::status::{ConditionUpdate, Conditions},
};

/// State of the watch for a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WatchState {
    /// The first list has not completed.
    Pending,
    /// The list failed, for example because rights are missing.
    Refused(String),
    /// The cluster does not serve the kind.
    NotServed,
    /// Objects are watched, and this number of them requests a CA bundle.
    Listed(usize),
}

/// ServiceAccount of a process that runs all controllers.
const ACCOUNT: &str = "windlass";

/// Computes the status of `target`, from the kind that it `added` and the state of its watch.
pub(super) fn next_status(
    target: &InjectionTarget,
    added: &Result<TargetKind, InvalidInjectionTarget>,
    listed: Option<WatchState>,
    own_namespace: &str,
    now: Timestamp,
) -> InjectionTargetStatus {
    let name = target.metadata.name.as_deref().unwrap_or_default();
    let generation = target.metadata.generation;
    let known = target.status.clone().unwrap_or_default();
    let listed = listed.unwrap_or(WatchState::Pending);
    let mut next = InjectionTargetStatus {
        observed_generation: generation,
        targets: match listed {
            WatchState::Listed(count) => Some(i64::try_from(count).unwrap_or(i64::MAX)),
            _ => None,
        },
        rights: added.as_ref().ok().map(|kind| rights(kind, name, own_namespace)),
        conditions: known.conditions,
    };
    let refusal = |invalid| ConditionUpdate::fails(reason(invalid), invalid.to_string());
    let failure = added.as_ref().err().map(refusal);
    let (accepted, ready) = match added {
        Err(invalid) => (refusal(invalid), refusal(invalid)),
        Ok(kind) => (
            ConditionUpdate::holds(
                "Accepted",
                format!("objects of {} may request CA bundles", kind.kind),
            ),
            ready_condition(kind, name, &listed),
        ),
    };
    for (condition_type, verdict) in [("Accepted", accepted), ("Ready", ready)] {
        next.conditions.record(condition_type, verdict, generation, now);
    }
    next.conditions.record_failure(failure, generation, now);
    next
}

fn reason(invalid: &InvalidInjectionTarget) -> &'static str {
    match invalid {
        InvalidInjectionTarget::Spec(_) | InvalidInjectionTarget::Paths(_) => "Invalid",
        InvalidInjectionTarget::Reserved(_) => "KindReserved",
        InvalidInjectionTarget::Taken(_) => "KindTaken",
    }
}

fn ready_condition(kind: &TargetKind, name: &str, listed: &WatchState) -> ConditionUpdate {
    let TargetKind {
        group,
        version,
        plural,
        ..
    } = kind;
    match listed {
        WatchState::Pending => {
            ConditionUpdate::unknown("Listing", format!("waiting for the first list of {plural}"))
        }
        WatchState::NotServed => ConditionUpdate::fails(
            "NotServed",
            format!(
                "waiting for the cluster to serve {plural} of {group}/{version}: create its CustomResourceDefinition"
            ),
        ),
        WatchState::Refused(problem) => ConditionUpdate::fails(
            "Unlisted",
            format!(
                "{problem}. If rights are missing: kubectl get injectiontarget {name} -o jsonpath='{{.status.rights}}' | \
                 kubectl apply -f -"
            ),
        ),
        WatchState::Listed(_) => ConditionUpdate::holds("Watched", format!("{plural} are watched")),
    }
}

/// Returns a role, as YAML, with the rights for injecting into a kind, and its binding.
fn rights(kind: &TargetKind, name: &str, own_namespace: &str) -> String {
    let role = format!("windlass-injection-target-{name}");
    let metadata = json!({"name": role});
    let subjects = [ACCOUNT, CERTIFICATES_ACCOUNT]
        .map(|account| json!({"kind": "ServiceAccount", "name": account, "namespace": own_namespace}));
    let documents = [
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": metadata,
            "rules": [{
                "apiGroups": [kind.group], "resources": [kind.plural], "verbs": ["get", "list", "watch", "patch"],
            }],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": subjects,
        }),
    ];
    // Serializing plain text cannot fail.
    let documents = documents.map(|document| serde_saphyr::to_string(&document).unwrap_or_default());
    documents.join("---\n")
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn target() -> InjectionTarget {
        let target = json!({
            "apiVersion": "windlass.dev/v1alpha1", "kind": "InjectionTarget",
            "metadata": {"name": "gateways", "generation": 2},
            "spec": {"group": "example.com", "version": "v1", "kind": "Gateway", "plural": "gateways",
                "paths": [{"path": "/spec/caBundle"}]},
        });
        serde_json::from_value(target).unwrap()
    }

    fn status_for(listed: Option<WatchState>) -> InjectionTargetStatus {
        let target = target();
        let object = serde_json::to_value(&target).unwrap();
        let added = windlass_cluster::injection_targets::added_kind(&object, &[]);
        next_status(&target, &added, listed, "windlass-system", Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn the_status_reports_the_state_of_the_watch() {
        for (listed, status, reason, targets) in [
            (WatchState::Pending, "Unknown", "Listing", None),
            (WatchState::NotServed, "False", "NotServed", None),
            (
                WatchState::Refused("forbidden".to_owned()),
                "False",
                "Unlisted",
                None,
            ),
            (WatchState::Listed(3), "True", "Watched", Some(3)),
        ] {
            let reported = status_for(Some(listed));
            let ready = reported.conditions.find("Ready").unwrap();
            assert_eq!(
                (&*ready.status, &*ready.reason, reported.targets),
                (status, reason, targets)
            );
            assert!(reported.conditions.holds("Accepted") && !reported.conditions.holds("Stalled"));
            assert_eq!(reported.observed_generation, Some(2));
        }
    }

    #[test]
    fn a_rejected_target_is_stalled_until_it_is_accepted() {
        let mut target = target();
        for (invalid, reason) in [
            (InvalidInjectionTarget::Spec("x".to_owned()), "Invalid"),
            (InvalidInjectionTarget::Reserved("x".to_owned()), "KindReserved"),
            (InvalidInjectionTarget::Taken("x".to_owned()), "KindTaken"),
        ] {
            let now = Timestamp::UNIX_EPOCH;
            let rejected = next_status(&target, &Err(invalid), None, "windlass-system", now);
            let stalled = rejected.conditions.find("Stalled").unwrap();
            assert_eq!((&*stalled.status, &*stalled.reason), ("True", reason));
            target.status = Some(rejected);
        }
        let object = serde_json::to_value(&target).unwrap();
        let added = windlass_cluster::injection_targets::added_kind(&object, &[]);
        let accepted = next_status(&target, &added, None, "windlass-system", Timestamp::UNIX_EPOCH);
        assert!(accepted.conditions.find("Stalled").is_none());
    }

    #[test]
    fn the_rights_are_a_role_and_its_binding() {
        let rights = status_for(None).rights.unwrap();
        let documents: Vec<Value> = rights
            .split("---\n")
            .map(|document| serde_saphyr::from_str(document).unwrap())
            .collect();
        assert_eq!(
            documents[0]["rules"],
            json!([{"apiGroups": ["example.com"], "resources": ["gateways"], "verbs": ["get", "list", "watch", "patch"]}])
        );
        assert_eq!(documents[1]["roleRef"]["name"], documents[0]["metadata"]["name"]);
        assert_eq!(documents[1]["subjects"][1]["namespace"], "windlass-system");
    }
}
