//! A held Deployment: pods of its new revision come up beside those of the old one, and none of these ends. Before webhooks
//! call the new ones it is frozen, too: no third revision begins.

use serde_json::{Value, json};
use windlass_object::{json, names, object};

use crate::install::canary::revision;

/// How long a held Deployment lets a new pod be ready before it counts as available, in seconds: a year, after which an old
/// one would end.
const HELD_SECONDS: i64 = 365 * 24 * 60 * 60;

/// What the annotation says on a held Deployment that is not frozen: the name of no Service.
const UNFROZEN: &str = "true";

/// The default of `progressDeadlineSeconds` (`SetDefaults_Deployment` of pkg/apis/apps/v1).
const DEFAULT_DEADLINE_SECONDS: i64 = 600;

/// Returns `deployment`, changed so that its rollout stops when the new pods are ready and keeps the old
/// ones.
///
/// A rollout with `maxUnavailable: 0` ends an old pod when a new one is available, and a pod is available
/// when it has been ready for `minReadySeconds`. The progress deadline must be longer
/// (`ValidateDeploymentSpec`). All new pods start at the same time, whatever the bundle's own strategy,
/// because all of them are called at the same time.
pub fn held(deployment: &Value) -> Value {
    let mut held = deployment.clone();
    json::fields(&mut held, &["metadata", "annotations"])
        .insert(names::OLD_PODS_HELD.into(), UNFROZEN.into());
    let spec = json::fields(&mut held, &["spec"]);
    spec.insert("minReadySeconds".into(), HELD_SECONDS.into());
    spec.insert("progressDeadlineSeconds".into(), (HELD_SECONDS + 1).into());
    spec.insert(
        "strategy".into(),
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "100%", "maxUnavailable": 0}}),
    );
    held
}

/// `deployment` held, and paused, since webhooks are about to call its new pods through `service`.
///
/// These never were available, and so would be the first to go when somebody changes the template (`kubectl rollout restart`,
/// `kubectl set image`): a paused Deployment begins no rollout, and goes on replacing pods that are lost.
pub fn frozen(deployment: &Value, service: &str) -> Value {
    let mut frozen = held(deployment);
    json::fields(&mut frozen, &["metadata", "annotations"])
        .insert(names::OLD_PODS_HELD.into(), service.into());
    json::fields(&mut frozen, &["spec"]).insert("paused".into(), true.into());
    frozen
}

/// The Service through which webhooks call, or are about to call, the new pods of a live Deployment that is frozen.
pub fn frozen_for(live: &Value) -> Option<&str> {
    object::annotation(live, names::OLD_PODS_HELD).filter(|service| *service != UNFROZEN)
}

/// Whether the Deployment controller has seen that a live Deployment is frozen. It handles one change after the other.
pub fn is_frozen(live: &Value) -> bool {
    frozen_for(live).is_some() && is_seen(live)
}

/// Whether a live Deployment is held.
pub fn is_held(live: &Value) -> bool {
    object::annotation(live, names::OLD_PODS_HELD).is_some()
}

/// Reports whether the old pods of a Deployment must stay: webhooks call pods other than those of `desired`
/// (`called_elsewhere`), or did until recently, which some API servers may not have observed (`unobserved`).
pub fn keeps_old_pods(
    desired: &Value,
    live: Option<&Value>,
    called_elsewhere: bool,
    unobserved: bool,
) -> bool {
    let is_new = live.is_none_or(|live| revision(live) != revision(desired));
    let is_held = live.is_some_and(is_held);
    (called_elsewhere && (is_new || is_held)) || (unobserved && is_held)
}

/// Reports whether a Deployment with pods of two revisions is left unchanged while webhooks return to the
/// older one (`desired`, which `has_pods`). A held ReplicaSet that is no longer the newest loses its pods
/// immediately, because they never were available (`cleanupUnhealthyReplicas` of
/// pkg/controller/deployment/rolling.go).
pub fn leaves_as_is(desired: &Value, live: Option<&Value>, has_pods: bool) -> bool {
    has_pods && live.is_some_and(|live| is_held(live) && revision(live) != revision(desired))
}

/// Whether the newest pods of a live Deployment have never all been there, and are still on their way.
pub fn is_coming_up(live: &Value) -> bool {
    // Without a deadline there is no such condition.
    let has_come_up = object::condition(live, "Progressing").is_none_or(|progressing| {
        object::text(progressing, "/status") != Some("True")
            || object::text(progressing, "/reason") == Some("NewReplicaSetAvailable")
    });
    let is_over = is_seen(live) && has_come_up;
    let is_paused = live.pointer("/spec/paused") == Some(&Value::Bool(true));
    !is_over && !is_paused && !is_held(live)
}

fn is_seen(live: &Value) -> bool {
    let count = |pointer: &str| live.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
    count("/status/observedGeneration") >= count("/metadata/generation")
}

/// Whether a Deployment may have pods of another revision that are called.
pub fn is_rolling(desired: &Value, live: &Value) -> bool {
    is_held(live) || revision(live) != revision(desired)
}

/// How many pods of a new revision a Deployment has beside the old ones: as many as its strategy allows, at most all.
pub fn surge(deployment: &Value) -> i64 {
    let replicas = deployment
        .pointer("/spec/replicas")
        .and_then(Value::as_i64)
        .unwrap_or(1);
    let allowed = match deployment.pointer("/spec/strategy/rollingUpdate/maxSurge") {
        Some(Value::String(percent)) => {
            let percent: i64 = percent.trim_end_matches('%').parse().unwrap_or(100);
            // Rounded up, as the Deployment controller does (`ResolveFenceposts` of pkg/controller/deployment/util).
            (replicas * percent + 99) / 100
        }
        surge => surge.and_then(Value::as_i64).unwrap_or(replicas),
    };
    allowed.clamp(0, replicas)
}

/// How long the pods of a new revision have to become ready, in seconds.
pub fn deadline_seconds(desired: &Value) -> i64 {
    desired
        .pointer("/spec/progressDeadlineSeconds")
        .and_then(Value::as_i64)
        .unwrap_or(DEFAULT_DEADLINE_SECONDS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::install::canary::stamp;

    fn deployment(strategy: &Value) -> Value {
        let mut deployment = json!({
            "metadata": {"name": "d"},
            "spec": {"replicas": 1, "minReadySeconds": 3, "strategy": strategy, "template": {"spec": {}}},
        });
        stamp(&mut deployment);
        deployment
    }

    #[test]
    fn no_old_pod_ends_whatever_the_strategy_is() {
        for strategy in [
            json!(null),
            json!({"type": "Recreate"}),
            json!({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}),
            json!({"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}}),
        ] {
            let held = held(&deployment(&strategy));
            assert_eq!(
                held["spec"]["strategy"],
                json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "100%", "maxUnavailable": 0}})
            );
            let seconds = |field: &str| held["spec"][field].as_i64().unwrap();
            assert!(seconds("progressDeadlineSeconds") > seconds("minReadySeconds"));
            assert!(i32::try_from(seconds("progressDeadlineSeconds")).is_ok());
            assert!(is_held(&held));
        }
    }

    #[test]
    fn what_is_frozen_is_held_and_says_for_whom() {
        let desired = deployment(&json!(null));
        assert_eq!(frozen_for(&desired), None);
        assert_eq!(frozen_for(&held(&desired)), None);
        let frozen = frozen(&desired, "s-green");
        assert!(is_held(&frozen) && is_rolling(&desired, &frozen));
        assert_eq!(frozen_for(&frozen), Some("s-green"));
        assert_eq!(frozen["spec"]["paused"], true);
        let mut unseen = frozen.clone();
        unseen["metadata"]["generation"] = json!(2);
        assert!(is_frozen(&frozen) && !is_frozen(&unseen) && !is_frozen(&held(&desired)));
        assert_eq!(revision(&frozen), revision(&desired));
    }

    #[test]
    fn pods_that_were_there_once_do_not_come_up_again() {
        let with = |observed: i64, conditions: Value| {
            json!({
                "metadata": {"generation": 2}, "status": {"observedGeneration": observed, "conditions": conditions},
            })
        };
        let progressing =
            |status: &str, reason: &str| json!([{"type": "Progressing", "status": status, "reason": reason}]);
        for (live, expected) in [
            (with(2, json!([])), false),
            (with(1, json!([])), true),
            (with(2, progressing("True", "ReplicaSetUpdated")), true),
            // They crash now, and the next revision may mend it.
            (with(2, progressing("True", "NewReplicaSetAvailable")), false),
            (with(2, progressing("False", "ProgressDeadlineExceeded")), false),
            (with(2, progressing("Unknown", "DeploymentPaused")), false),
            (with(1, progressing("True", "NewReplicaSetAvailable")), true),
            (held(&with(2, json!([]))), false),
        ] {
            assert_eq!(is_coming_up(&live), expected, "{live}");
        }
    }

    #[test]
    fn a_surge_in_percent_is_rounded_up() {
        for (surge_of, replicas, expected) in [
            (json!("100%"), 2, 2),
            (json!("25%"), 2, 1),
            (json!(1), 3, 1),
            (json!(5), 3, 3),
            (json!("100%"), 0, 0),
            (json!(0), 3, 0),
        ] {
            let deployment = json!({"spec": {"replicas": replicas, "strategy": {"rollingUpdate": {"maxSurge": surge_of}}}});
            assert_eq!(surge(&deployment), expected, "{deployment}");
        }
    }

    #[test]
    fn a_hold_is_no_revision() {
        let desired = deployment(&json!(null));
        let held = held(&desired);
        assert_eq!(revision(&held), revision(&desired));
        assert!(is_rolling(&desired, &held));
        assert!(!is_rolling(&desired, &desired));
        let mut other = desired.clone();
        other["spec"]["template"]["spec"]["hostNetwork"] = json!(true);
        stamp(&mut other);
        assert!(is_rolling(&desired, &other));
    }

    #[test]
    fn old_pods_are_kept_while_they_are_called_and_until_that_is_known_to_be_over() {
        let desired = deployment(&json!(null));
        let mut other = desired.clone();
        other["spec"]["template"]["spec"]["hostNetwork"] = json!(true);
        stamp(&mut other);
        let held = held(&desired);
        for (live, called_elsewhere, unobserved, expected) in [
            (None, false, true, false),
            (None, true, false, true),
            (Some(&other), true, false, true),
            (Some(&other), false, true, false),
            (Some(&held), true, false, true),
            (Some(&held), false, true, true),
            (Some(&held), false, false, false),
            (Some(&desired), true, true, false),
        ] {
            assert_eq!(
                keeps_old_pods(&desired, live, called_elsewhere, unobserved),
                expected,
                "{live:?} {called_elsewhere} {unobserved}"
            );
        }
    }
}
