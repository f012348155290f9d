//! Of which revision the pods of Deployments are, and what keeps them from being ready.

use std::collections::{HashMap, HashSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use windlass_cluster::{Cluster, RequestError, endpoints::Endpoint, kinds};
use windlass_object::{ObjectKey, object};

use super::rollout_status::{pause, replica_failure};
use crate::install::{
    canary::{self, PodState, UNSCHEDULABLE},
    plan::{Phase, Plan},
    traffic::crowding,
};

/// Annotation of the Deployment controller on Deployments and their ReplicaSets.
const REVISION: &str = "deployment.kubernetes.io/revision";

/// Label on pods and ReplicaSets: which pod template they are of.
const TEMPLATE_HASH: &str = "pod-template-hash";

/// How long after its grace period a pod may still be there before it is thought to be on a node that is lost.
const LAGGARD: SignedDuration = SignedDuration::from_secs(30);

/// The pods of Deployments by their revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Revisions {
    /// The uids of those that are current: of the newest revision, or of that of a plan.
    current: HashSet<String>,
    /// How many of those are ready.
    ready: usize,
    /// The names of those of another revision that may still answer.
    pub(super) old: Vec<String>,
    /// What those of the newest revision say that are not ready.
    starting: Vec<String>,
    /// What those of the newest revision say that have ended, as when their node evicted them; others come in their place.
    ended: Vec<String>,
    /// The same, of those for which no node has room.
    unscheduled: Vec<String>,
}

impl Revisions {
    /// Looks at the pods of `deployments`, which live in `namespace`; the newest of each are current.
    pub(super) async fn observe(
        cluster: &Cluster,
        namespace: &str,
        deployments: &[impl AsRef<Value>],
        now: Timestamp,
    ) -> Result<Self, RequestError> {
        let (sets, pods) = list(cluster, namespace).await?;
        let is_current = |set: &Value| {
            let deployment = owner(set, deployments)?;
            Some(is_newest(set, deployment))
        };
        Ok(Self::of(&sets, &pods, is_current, now))
    }

    /// Looks at the pods of `deployments`, as they are there of a plan; those of the plan are current. Webhooks may go back to
    /// pods that are not the newest, and to some that were left behind when their Deployment was replaced.
    pub(super) async fn observe_plan(
        cluster: &Cluster,
        plan: &Plan,
        deployments: &[impl AsRef<Value>],
        now: Timestamp,
    ) -> Result<Self, RequestError> {
        let (sets, pods) = list(cluster, &plan.namespace).await?;
        let desired: Vec<_> = plan.phases.of(Phase::Deployments).collect();
        let is_current = |set: &Value| is_of_plan(set, owner(set, deployments), &desired);
        Ok(Self::of(&sets, &pods, is_current, now))
    }

    /// Sorts the pods of those ReplicaSets of which `is_current` says anything.
    fn of(
        sets: &[Value],
        pods: &[Value],
        is_current: impl Fn(&Value) -> Option<bool>,
        now: Timestamp,
    ) -> Self {
        let sets: HashMap<_, _> = sets
            .iter()
            .filter_map(|set| Some((object::text(set, "/metadata/uid")?, is_current(set)?)))
            .collect();
        let mut revisions = Self::default();
        for pod in pods {
            let Some(is_current) = owners(pod).find_map(|owner| sets.get(owner)) else {
                continue;
            };
            let text = |pointer| object::text(pod, pointer).unwrap_or_default().to_owned();
            if *is_current {
                revisions.current.insert(text("/metadata/uid"));
                if !object::is_terminating(pod) {
                    revisions.see(pod);
                }
            } else if !has_ended(pod, now) {
                revisions.old.push(text("/metadata/name"));
            }
        }
        revisions
    }

    /// How many pods of the newest revision are ready.
    pub(super) fn ready(&self) -> i64 {
        i64::try_from(self.ready).unwrap_or(i64::MAX)
    }

    /// Whether `expected` pods of the newest revision are ready, or all of these for which there is room.
    pub(super) fn have_settled(&self, expected: i64) -> bool {
        let count = |pods: usize| i64::try_from(pods).unwrap_or(i64::MAX);
        let is_complete = count(self.ready) >= expected;
        let is_full = self.starting.is_empty() && count(self.ready + self.unscheduled.len()) >= expected;
        (is_complete || is_full) && (self.ready > 0 || expected == 0)
    }

    /// What the pods of the newest revision say that are not ready.
    pub(super) fn unready(&self) -> Vec<String> {
        [self.starting.as_slice(), &self.unscheduled, &self.ended].concat()
    }

    /// What keeps the pods of the newest revision of `deployment`, the only one that was looked at, from being there and ready, and
    /// what to do where they find no place beside the old ones. Why they do not start is guessed only of a rollout that
    /// `is_stuck`.
    pub(super) fn obstacles(&self, deployment: &Value, is_stuck: bool) -> Vec<String> {
        let mut obstacles = self.unready();
        obstacles.extend(replica_failure(deployment));
        obstacles.extend(pause(deployment));
        let finds_no_place = !self.unscheduled.is_empty() || (is_stuck && !self.starting.is_empty());
        let cause = crowding(deployment, deployment).filter(|_| finds_no_place);
        obstacles.extend(cause.map(|cause| {
            format!(
                "{cause}; to stop old pods first, although requests fail until new pods are ready, set spec.upgrade.allowInterruption: true"
            )
        }));
        obstacles
    }

    fn see(&mut self, pod: &Value) {
        let name = object::text(pod, "/metadata/name").unwrap_or_default();
        match canary::state(pod) {
            PodState::Ready(_) => self.ready += 1,
            PodState::Waiting { reason, message } if reason == UNSCHEDULABLE => {
                self.unscheduled.push(format!("{name} {message}"));
            }
            PodState::Waiting { message, .. } | PodState::Crashing(message) => {
                self.starting.push(format!("{name} {message}"));
            }
            PodState::Ended(message) => self.ended.push(format!("{name} {message}")),
        }
    }

    /// The addresses among `endpoints` that are not of the newest revision.
    pub(super) fn strangers(&self, endpoints: &[Endpoint]) -> Vec<String> {
        endpoints
            .iter()
            .filter(|endpoint| {
                !endpoint
                    .pod
                    .as_ref()
                    .is_some_and(|pod| self.current.contains(&pod.uid))
            })
            .map(|endpoint| endpoint.address.to_string())
            .collect()
    }
}

/// Whether nothing of a pod runs any more: it says so, or it should have been gone for a while, and its node cannot say.
fn has_ended(pod: &Value, now: Timestamp) -> bool {
    let due = object::text(pod, "/metadata/deletionTimestamp").and_then(|due| due.parse::<Timestamp>().ok());
    matches!(object::text(pod, "/status/phase"), Some("Succeeded" | "Failed"))
        || due.is_some_and(|due| now.duration_since(due) > LAGGARD)
}

fn is_newest(set: &Value, deployment: &Value) -> bool {
    let revision = object::annotation(deployment, REVISION);
    let Some(uid) = object::text(deployment, "/metadata/uid") else {
        return false;
    };
    revision.is_some()
        && object::annotation(set, REVISION) == revision
        && owners(set).any(|owner| owner == uid)
}

/// The Deployment among `deployments` that has a ReplicaSet.
fn owner<'a>(set: &Value, deployments: &'a [impl AsRef<Value>]) -> Option<&'a Value> {
    deployments.iter().map(AsRef::as_ref).find(|deployment| {
        let uid = object::text(deployment, "/metadata/uid");
        uid.is_some_and(|uid| owners(set).any(|owner| owner == uid))
    })
}

/// Whether a ReplicaSet is of a plan, with these Deployments; `None` where it has nothing to do with them. `live` is the one
/// that has it.
fn is_of_plan(set: &Value, live: Option<&Value>, desired: &[&Value]) -> Option<bool> {
    if let Some(live) = live {
        let key = ObjectKey::from_object(live);
        let same = desired
            .iter()
            .find(|desired| ObjectKey::from_object(desired) == key);
        return Some(is_of(set, live, same.copied()));
    }
    let revision = canary::revision(set)?;
    let mut revisions = desired.iter().filter_map(|desired| canary::revision(desired));
    let is_left_behind = owners(set).next().is_none() && revisions.any(|desired| desired == revision);
    is_left_behind.then_some(true)
}

/// Whether a ReplicaSet of a Deployment is of the revision that is `desired`. The number of the newest one comes from the
/// Deployment controller, and is of the one before until that has seen the Deployment.
fn is_of(set: &Value, live: &Value, desired: Option<&Value>) -> bool {
    let Some(desired) = desired.and_then(canary::revision) else {
        return is_newest(set, live);
    };
    let is_newest = canary::revision(live) != Some(desired) || is_newest(set, live);
    is_newest && canary::revision(set) == Some(desired)
}

async fn list(cluster: &Cluster, namespace: &str) -> Result<(Vec<Value>, Vec<Value>), RequestError> {
    let sets = cluster.list(&kinds::REPLICA_SET, Some(namespace), None).await?;
    let pods = cluster
        .list(&kinds::POD, Some(namespace), Some(TEMPLATE_HASH))
        .await?;
    Ok((sets, pods))
}

fn owners(object: &Value) -> impl Iterator<Item = &str> {
    object::items(object, "/metadata/ownerReferences")
        .iter()
        .filter_map(|owner| object::text(owner, "/uid"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::rollout_status::tests::deployment, *};

    #[test]
    fn pods_that_find_no_place_beside_the_old_ones_are_told_what_is_in_their_way() {
        let revisions = |starting: &[&str], unscheduled: &[&str]| Revisions {
            starting: starting.iter().map(ToString::to_string).collect(),
            unscheduled: unscheduled.iter().map(ToString::to_string).collect(),
            ..Revisions::default()
        };
        let mut crowded = deployment(2, 2, 1, 1);
        crowded["spec"]["template"] = json!({
            "metadata": {"labels": {"app": "a"}},
            "spec": {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "a"}}},
            ]}}},
        });
        let plain = deployment(2, 2, 1, 1);
        for (deployment, revisions, is_stuck, is_said) in [
            (&crowded, revisions(&[], &["a is Pending"]), false, true),
            (&crowded, revisions(&["a is starting"], &[]), false, false),
            (&crowded, revisions(&["a is starting"], &[]), true, true),
            (&crowded, revisions(&[], &[]), true, false),
            (&plain, revisions(&[], &["a is Pending"]), true, false),
        ] {
            let obstacles = revisions.obstacles(deployment, is_stuck).join("; ");
            for part in ["podAntiAffinity", "allowInterruption: true", "windlass.replicas"] {
                assert_eq!(obstacles.contains(part), is_said, "{obstacles}");
            }
        }
    }

    #[test]
    fn pods_that_have_ended_or_are_ending_keep_nobody_waiting() {
        let set = json!({"metadata": {"uid": "set"}});
        let pod = |name: &str, status: Value, deleted: bool| {
            let mut pod = json!({
                "metadata": {"name": name, "uid": name, "ownerReferences": [{"uid": "set"}]}, "status": status,
            });
            if deleted {
                pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            }
            pod
        };
        let ready = json!({"phase": "Running", "podIP": "10.0.0.1", "conditions": [{"type": "Ready", "status": "True"}]});
        let evicted = json!({"phase": "Failed", "reason": "Evicted", "message": "low on memory"});
        let now = "2026-01-01T00:00:05Z".parse().unwrap();
        let seen = |pods: &[Value]| Revisions::of(std::slice::from_ref(&set), pods, |_| Some(true), now);
        let settled = seen(&[
            pod("a", ready.clone(), false),
            pod("b", ready.clone(), false),
            pod("c", evicted.clone(), false),
            pod("d", json!({"phase": "Running"}), true),
        ]);
        assert!(settled.have_settled(2), "{settled:?}");
        assert!(!settled.have_settled(3));
        let waiting = seen(&[pod("a", ready, false), pod("c", evicted, false)]);
        assert!(!waiting.have_settled(2));
        assert!(waiting.unready().join("; ").contains("c "), "{waiting:?}");
    }

    #[test]
    fn why_pods_cannot_be_created_is_an_obstacle() {
        let mut deployment = deployment(2, 3, 1, 2);
        let failure = json!({"type": "ReplicaFailure", "status": "True", "message": "exceeded quota: pods"});
        deployment["status"]["conditions"] = json!([failure]);
        let obstacles = Revisions::default().obstacles(&deployment, false);
        assert_eq!(obstacles, ["pods cannot be created: exceeded quota: pods"]);
        deployment["status"]["conditions"] = json!([]);
        deployment["spec"]["paused"] = json!(true);
        let obstacles = Revisions::default().obstacles(&deployment, false).join("; ");
        assert!(
            obstacles.contains("kubectl rollout resume deployment/d"),
            "{obstacles}"
        );
    }

    #[test]
    fn pods_that_webhooks_go_back_to_are_current_although_others_are_newer() {
        let stamped = |image: &str| {
            let mut deployment = deployment(2, 2, 2, 2);
            deployment["spec"]["template"] = json!({"spec": {"containers": [{"image": image}]}});
            canary::stamp(&mut deployment);
            deployment
        };
        let (live, desired) = (stamped("newer"), stamped("older"));
        let set = |of: &Value, number: &str| {
            json!({
                "metadata": {"annotations": {REVISION: number}, "ownerReferences": [{"uid": live["metadata"]["uid"]}]},
                "spec": {"template": of["spec"]["template"]},
            })
        };
        let newest = object::annotation(&live, REVISION).unwrap();
        let (old, new) = (set(&desired, "0"), set(&live, newest));
        for (set, desired, expected) in [
            (&old, Some(&desired), true),
            (&new, Some(&desired), false),
            (&old, Some(&live), false),
            (&new, Some(&live), true),
            // The Deployment controller has not seen it yet.
            (&set(&desired, newest), Some(&live), false),
            (&old, None, false),
            (&new, None, true),
        ] {
            assert_eq!(is_of(set, &live, desired), expected, "{set} {desired:?}");
        }
        let mut left_behind = old.clone();
        left_behind["metadata"]["ownerReferences"] = json!([]);
        assert_eq!(is_of_plan(&left_behind, None, &[&desired]), Some(true));
        assert_eq!(is_of_plan(&left_behind, None, &[&live]), None);
        assert_eq!(
            is_of_plan(&old, None, &[&desired]),
            None,
            "it is of another Deployment"
        );
    }

    #[test]
    fn only_the_replica_set_of_the_deployments_revision_is_newest() {
        let deployment = deployment(2, 2, 2, 2);
        let set = |revision: &str, owner: &str| {
            json!({"metadata": {
                "annotations": {REVISION: revision}, "ownerReferences": [{"uid": owner}]
            }})
        };
        assert!(is_newest(&set("2", "d"), &deployment));
        assert!(!is_newest(&set("1", "d"), &deployment));
        assert!(!is_newest(&set("2", "other"), &deployment));
    }

    #[test]
    fn a_pod_of_an_older_revision_counts_until_it_has_ended() {
        let deployment = std::sync::Arc::new(deployment(2, 2, 2, 2));
        let set = |name: &str, revision: &str| {
            json!({"metadata": {
                "uid": name, "annotations": {REVISION: revision}, "ownerReferences": [{"uid": "d"}]
            }})
        };
        let pod = |name: &str, set: &str, more: Value| {
            let mut pod = json!({
                "metadata": {"name": name, "uid": name, "ownerReferences": [{"uid": set}]},
                "status": {"phase": "Running"}
            });
            json_patch::merge(&mut pod, &more);
            pod
        };
        let ending = |at: &str| json!({"metadata": {"deletionTimestamp": at}});
        let sets = [set("s1", "1"), set("s2", "2")];
        let pods = [
            pod("new", "s2", json!({})),
            pod("new-ending", "s2", ending("2026-01-01T00:00:30Z")),
            pod("old", "s1", json!({})),
            pod("old-ending", "s1", ending("2026-01-01T00:00:30Z")),
            pod("old-ended", "s1", json!({"status": {"phase": "Failed"}})),
            pod("old-lost", "s1", ending("2025-12-31T23:00:00Z")),
            pod("of-another", "s3", json!({})),
        ];
        let now = "2026-01-01T00:00:10Z".parse().unwrap();
        let revisions = Revisions::of(
            &sets,
            &pods,
            |set| owner(set, &[&deployment]).map(|owner| is_newest(set, owner)),
            now,
        );
        assert_eq!(revisions.old, ["old", "old-ending"]);
        assert_eq!(revisions.unready(), ["new has not started yet"]);
        let current = ["new", "new-ending"].map(str::to_owned);
        assert_eq!(revisions.current, HashSet::from(current));
    }

    #[test]
    fn new_pods_for_which_there_is_no_room_are_not_waited_for_where_another_one_is_ready() {
        let revisions = |ready, starting: &[&str], unscheduled: &[&str]| Revisions {
            ready,
            starting: starting.iter().map(ToString::to_string).collect(),
            unscheduled: unscheduled.iter().map(ToString::to_string).collect(),
            ..Revisions::default()
        };
        for (revisions, expected, settled) in [
            (revisions(0, &[], &[]), 0, true),
            (revisions(0, &[], &[]), 1, false),
            (revisions(1, &[], &[]), 2, false),
            (revisions(2, &[], &[]), 2, true),
            (revisions(1, &["a"], &[]), 2, false),
            (revisions(1, &[], &["a"]), 2, true),
            (revisions(0, &[], &["a", "b"]), 2, false),
        ] {
            assert_eq!(revisions.have_settled(expected), settled, "{revisions:?}");
        }
    }
}
