//! A new revision is tried out in one pod before the Deployment is touched: what serves now goes on serving.

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use jiff::Timestamp;
use serde_json::Value;
use tracing::info;
use windlass_api::BundleDeployment;
use windlass_cluster::{
    RequestError,
    apply::FieldOwner,
    endpoints::{Endpoint, Pod},
    kinds,
};
use windlass_crd::is_converting;
use windlass_object::{ObjectKey, names, object};

use super::{
    halt::Halt, install_traces::InstallPhase, objects::Armament, proof::CalledService,
    reconciler::BundleReconciler, report::InstallReport, trust::TrustBundles,
};
use crate::install::{
    canary::{self, PodState},
    plan::{Phase, Plan, Stage},
    status::{InstallOutcome, Milestone},
    traffic::Traffic,
};

/// What a canary shows.
struct Finding {
    reason: &'static str,
    message: String,
    /// It may pass without anybody doing anything.
    may_pass: bool,
}

/// A canary is asked again after this part of the time for which it has been there.
const PART_OF_AGE: u32 = 4;

/// The longest pause before a canary is asked again.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

impl Finding {
    fn waits(reason: &'static str, message: String) -> Self {
        Self {
            reason,
            message,
            may_pass: true,
        }
    }

    fn fails(reason: &'static str, message: String) -> Self {
        Self {
            reason,
            message,
            may_pass: false,
        }
    }
}

impl BundleReconciler {
    /// Proves the webhooks of each new revision in a canary pod before its rollout, if the plan requests that
    /// and an earlier revision serves. Halts until they are proven.
    pub(super) async fn try_out(
        &self,
        deployment: &BundleDeployment,
        owner: &FieldOwner,
        plan: &Plan,
        traffic: &Traffic,
        report: &mut InstallReport,
    ) -> Result<(), Halt> {
        let uid = deployment.metadata.uid.as_deref().unwrap_or_default();
        let mut canaries = Vec::new();
        for desired in self.untried(plan, report).await? {
            canaries.extend(canary::pod(desired, &owner.bundle_deployment, uid).map(|pod| (desired, pod)));
        }
        let revisions: Vec<_> = canaries
            .iter()
            .filter_map(|(_, pod)| object::label(pod, names::CANARY))
            .collect();
        self.dismiss_canaries(owner, &revisions).await?;
        if canaries.is_empty() {
            return Ok(());
        }
        InstallPhase::Canary.enter();
        self.prepare(owner, plan, traffic, true).await?;
        let trust_bundles = self.trust_bundles(plan)?;
        let armament = Armament {
            traffic,
            trust_bundles: &trust_bundles,
        };
        self.ensure_harmless_crds(owner, plan, &armament, report).await?;
        // All of them start before one is waited for.
        let mut started = Vec::new();
        for (desired, pod) in canaries {
            started.push((desired, self.ensure_canary(owner, pod).await?));
        }
        for (desired, pod) in started {
            let address = match canary::state(&pod) {
                PodState::Ready(address) => Ok(address),
                PodState::Waiting { reason, message } => Err(Finding::waits(reason, message)),
                PodState::Crashing(message) => Err(Finding::fails("CanaryCrashing", message)),
                PodState::Ended(message) => {
                    if self.age(&pod) >= self.pause(&pod).saturating_mul(PART_OF_AGE) {
                        self.delete(&pod, owner).await?;
                    }
                    Err(Finding::fails("CanaryEnded", message))
                }
            };
            let address = address.map_err(|finding| self.judged(desired, &pod, finding))?;
            // A canary is called by the names that OLM gives, as if it were the only pod.
            let called = Traffic::new(plan, &BTreeMap::new());
            let servers = servers(plan, desired, &pod, address, &trust_bundles)?;
            let name = &owner.bundle_deployment;
            if let Some(problem) = self.ask_servers(name, plan, &servers, &called).await? {
                let finding = Finding::fails("CanaryFailed", format!("failed: {}", problem.message));
                return Err(self.judged(desired, &pod, finding));
            }
        }
        Ok(())
    }

    /// Deletes canaries, but for those of `revisions`.
    pub(super) async fn dismiss_canaries(&self, owner: &FieldOwner, revisions: &[&str]) -> Result<(), Halt> {
        for live in self.owned(owner, &kinds::POD) {
            let revision = object::label(&live, names::CANARY);
            if revision.is_some_and(|revision| !revisions.contains(&revision)) {
                self.delete(&live, owner).await?;
            }
        }
        Ok(())
    }

    /// The Deployments whose new revision is to be tried out: another one of it serves, and the new one does not yet.
    async fn untried<'a>(&self, plan: &'a Plan, report: &InstallReport) -> Result<Vec<&'a Value>, Halt> {
        let mut untried = Vec::new();
        if !plan.has_canary() {
            return Ok(untried);
        }
        for desired in plan.phases.of(Phase::Deployments) {
            if !plan.is_serving(desired) {
                continue;
            }
            let Some(live) = self.other_revision(desired).await? else {
                continue;
            };
            let available = live.pointer("/status/availableReplicas").and_then(Value::as_i64);
            let serves = report.installed.is_some() || available.unwrap_or(0) > 0;
            if serves && !self.is_serving(plan, desired).await? {
                untried.push(desired);
            }
        }
        Ok(untried)
    }

    /// The live Deployment, if it is of another revision than `desired`. What a watch says is not believed: one that lags
    /// shows the revision before.
    async fn other_revision(&self, desired: &Value) -> Result<Option<Value>, Halt> {
        let Some(key) = ObjectKey::from_object(desired) else {
            return Ok(None);
        };
        let differs = |live: &Value| canary::revision(live) != canary::revision(desired);
        if self.context.index.find(&key).is_some_and(|seen| !differs(&seen)) {
            return Ok(None);
        }
        Ok(self.context.cluster.read(&key).await?.filter(differs))
    }

    /// Whether a pod of the Deployment's revision `desired` is ready now: it serves already, and has been tried out.
    async fn is_serving(&self, plan: &Plan, desired: &Value) -> Result<bool, RequestError> {
        let namespace = Some(plan.namespace.as_str());
        let pods = self.context.cluster.list(&kinds::POD, namespace, None).await?;
        Ok(pods.iter().any(|pod| {
            let of_revision = object::label(pod, names::REVISION) == canary::revision(desired);
            let is_canary = object::label(pod, names::CANARY).is_some();
            of_revision && !is_canary && matches!(canary::state(pod), PodState::Ready(_))
        }))
    }

    /// Applies CRDs that nobody uses yet, and those of which more versions can be served at once: an operator may not start
    /// without what it brings along.
    async fn ensure_harmless_crds(
        &self,
        owner: &FieldOwner,
        plan: &Plan,
        armament: &Armament<'_>,
        report: &mut InstallReport,
    ) -> Result<(), Halt> {
        for desired in plan.phases.of(Phase::Crds) {
            let Some(key) = ObjectKey::from_object(desired) else {
                continue;
            };
            let live = self.crd_seen(&key.name);
            let converts = plan.conversion(&key.name).is_some() || live.as_deref().is_some_and(is_converting);
            if live.is_none() || !converts {
                self.ensure_crd(owner, plan, desired, armament, Stage::Rollout, report)
                    .await?;
            }
        }
        Ok(())
    }

    async fn ensure_canary(&self, owner: &FieldOwner, pod: Value) -> Result<Value, Halt> {
        let key = ObjectKey::from_object(&pod).ok_or(RequestError::Nameless)?;
        let gate = |reason: &str, message: String| Halt::failed(Milestone::Installed, reason, message);
        if let Some(live) = self.live(&key).await? {
            if FieldOwner::name_in_label(&live) != Some(&owner.bundle_deployment) {
                let message = format!("{key} exists and was not created by Windlass: delete it");
                return Err(gate("ForeignObject", message));
            }
            return Ok(Value::clone(&live));
        }
        match self.context.cluster.create(&pod, names::INSTALL).await {
            Ok(live) => {
                info!(object = %key, "Created a canary of a new revision");
                Ok(live)
            }
            // What admission has against the pod it would have against those of the Deployment.
            Err(error) if error.is_forbidden() || error.is_invalid() => {
                Err(gate("CanaryRefused", error.to_string()))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn judged(&self, deployment: &Value, pod: &Value, finding: Finding) -> Halt {
        let text = |object, pointer| object::text(object, pointer).unwrap_or_default();
        let message = format!(
            "canary {} of Deployment {} {}; the previous revision keeps serving",
            text(pod, "/metadata/name"),
            text(deployment, "/metadata/name"),
            finding.message
        );
        let outcome = if finding.may_pass {
            InstallOutcome::waiting(Milestone::Installed, finding.reason, message)
        } else {
            InstallOutcome::failed(Milestone::Installed, finding.reason, message)
        };
        Halt::Later(outcome, self.pause(pod))
    }

    fn pause(&self, pod: &Value) -> Duration {
        (self.age(pod) / PART_OF_AGE).clamp(self.timing.recheck, LONGEST_PAUSE.max(self.timing.recheck))
    }

    fn age(&self, pod: &Value) -> Duration {
        let created = object::text(pod, "/metadata/creationTimestamp")
            .and_then(|created| created.parse::<Timestamp>().ok());
        created
            .map(|created| self.context.clock.now().duration_since(created))
            .and_then(|age| Duration::try_from(age).ok())
            .unwrap_or_default()
    }
}

/// What webhooks of the plan would call of a Deployment, with its canary at `address` as the only endpoint.
fn servers(
    plan: &Plan,
    deployment: &Value,
    canary: &Value,
    address: IpAddr,
    trust_bundles: &TrustBundles,
) -> Result<Vec<CalledService>, Halt> {
    let text = |pointer| object::text(canary, pointer).unwrap_or_default().to_owned();
    let pod = Pod {
        name: text("/metadata/name"),
        uid: text("/metadata/uid"),
    };
    let mut servers = Vec::new();
    for call in Traffic::new(plan, &BTreeMap::new()).calls() {
        let Some(target) = target(plan, deployment, &call.service, call.port) else {
            continue;
        };
        let endpoint = Endpoint {
            address: SocketAddr::new(address, target),
            pod: Some(pod.clone()),
        };
        servers.push(CalledService::new(
            &call.service,
            call.port,
            vec![endpoint],
            trust_bundles,
        )?);
    }
    Ok(servers)
}

/// The port of a Deployment's pods behind a port of a Service of the plan, if that leads to them.
fn target(plan: &Plan, deployment: &Value, service: &str, port: i64) -> Option<u16> {
    let service = plan
        .phases
        .of(Phase::Services)
        .find(|object| object::text(object, "/metadata/name") == Some(service))?;
    canary::leads_to(service, deployment)
        .then(|| canary::target_port(service, deployment, port))
        .flatten()
}
