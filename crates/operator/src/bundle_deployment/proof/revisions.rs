//! Whether those whom a Service sends calls to are of the newest revision.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tracing::info;
use windlass_cluster::kinds;
use windlass_object::{names, object, patch::relabelled};

use super::{CalledService, gate::gate};
use crate::{
    bundle_deployment::{halt::Halt, reconciler::BundleReconciler, revisions::Revisions},
    install::plan::Plan,
};

/// How long the endpoints of a Service may lag behind its pods before Kubernetes is asked to look at them again.
const LAG: SignedDuration = SignedDuration::from_secs(10);

/// The longest pause between two times that it is asked.
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_mins(10);

impl BundleReconciler {
    /// Halts while a Service sends requests that only the newest revision understands to pods of another
    /// revision.
    pub(super) async fn gate_on_revisions(&self, plan: &Plan, servers: &[CalledService]) -> Result<(), Halt> {
        let deployments = self.deployments_of(plan);
        let now = self.context.clock.now();
        let revisions = Revisions::observe_plan(&self.context.cluster, plan, &deployments, now).await?;
        for server in servers {
            let Some(closed) = misdirected(server, &revisions) else {
                continue;
            };
            let rolled_out = deployments.iter().filter_map(|live| rolled_out(live)).max();
            if let Some(rolled_out) = rolled_out {
                self.refresh_endpoints(plan, &server.service, rolled_out).await?;
            }
            return Err(closed);
        }
        Ok(())
    }

    /// Writes a Service whose endpoints are not those of its pods, although these are ready since `rolled_out`.
    ///
    /// After the API server has restarted, Kubernetes may have given up on a Service for up to 1,000 s, in which calls go
    /// to pods that are gone: each change of a pod that comes before its watches are back doubles the time (`handleErr`
    /// of pkg/controller/endpointslice). A write of the Service makes it look at once.
    async fn refresh_endpoints(&self, plan: &Plan, service: &str, rolled_out: Timestamp) -> Result<(), Halt> {
        let key = kinds::SERVICE.object(Some(&plan.namespace), service);
        let Some(live) = self.context.index.find(&key) else {
            return Ok(());
        };
        let refreshed = object::annotation(&live, names::ENDPOINTS_REFRESHED);
        let refreshed = refreshed.and_then(|at| at.parse().ok());
        let now = self.context.clock.now();
        if !is_refresh_due(rolled_out, refreshed, now) {
            return Ok(());
        }
        let annotation = json!({ names::ENDPOINTS_REFRESHED: now.to_string() });
        let patch = relabelled(&live, &json!({}), &annotation);
        self.context.cluster.patch(&key, &patch, names::INSTALL).await?;
        info!(object = %key, "Updated the Service so that its endpoints are reconciled again");
        Ok(())
    }
}

/// Why nobody of the newest revision is called, if it is so.
fn misdirected(server: &CalledService, revisions: &Revisions) -> Option<Halt> {
    let CalledService { service, port, .. } = server;
    if server.endpoints.is_empty() {
        let message = format!("the Service {service} has no ready endpoints on port {port}");
        return Some(gate("NoEndpoints", message));
    }
    let strangers = revisions.strangers(&server.endpoints);
    if strangers.is_empty() {
        return None;
    }
    let message = format!(
        "the Service {service} has endpoints that are not of the newest revision: {}",
        strangers.join(", ")
    );
    Some(gate("RollingOut", message))
}

/// Since when a Deployment that has rolled out says so.
fn rolled_out(deployment: &Value) -> Option<Timestamp> {
    let progressing = object::condition(deployment, "Progressing")?;
    object::text(progressing, "/lastUpdateTime")?.parse().ok()
}

/// Whether it is time for Kubernetes to look again: after a lag, and then after pauses that each double what has passed.
fn is_refresh_due(rolled_out: Timestamp, refreshed: Option<Timestamp>, now: Timestamp) -> bool {
    // Neither one of an earlier rollout counts, nor one of a clock that was ahead.
    let refreshed = refreshed.filter(|refreshed| (rolled_out..=now).contains(refreshed));
    let last = refreshed.unwrap_or(rolled_out);
    let pause = last.duration_since(rolled_out).clamp(LAG, LONGEST_PAUSE);
    now.duration_since(last) >= pause
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubernetes_is_asked_again_in_pauses_that_grow() {
        let at = |second: i64| Timestamp::from_second(1_000_000 + second).unwrap();
        let mut asked = Vec::new();
        let mut refreshed = Some(at(-50));
        for second in 0..3600 {
            if is_refresh_due(at(0), refreshed, at(second)) {
                asked.push(second);
                refreshed = Some(at(second));
            }
        }
        assert_eq!(asked, [10, 20, 40, 80, 160, 320, 640, 1240, 1840, 2440, 3040]);
        assert!(is_refresh_due(at(0), Some(at(90_000)), at(10)));
    }

    #[test]
    fn a_rollout_is_dated_by_the_condition_of_its_deployment() {
        let deployment = json!({"status": {"conditions": [
            {"type": "Available", "status": "True", "lastUpdateTime": "2026-01-01T00:00:00Z"},
            {"type": "Progressing", "status": "True", "lastUpdateTime": "2026-01-01T00:00:05Z"},
        ]}});
        assert_eq!(
            rolled_out(&deployment),
            Some("2026-01-01T00:00:05Z".parse().unwrap())
        );
        assert_eq!(rolled_out(&json!({})), None);
    }
}
