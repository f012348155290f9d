//! Gathers everything that a plan is made from.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::SignedDuration;
use serde_json::Value;
use tracing::warn;
use windlass_api::ReloadStrategy;
use windlass_cluster::{Kind, SeenObjects, kinds, remote::RemoteCluster, telemetry::chain};
use windlass_object::{InCluster, ObjectKey, object};
use windlass_trust::{
    injection::{InjectionScope, release},
    objects::{CaSecret, CertificateStore, ServingSecret, limit_adoption, read_target, read_workload},
    pki::DnsNames,
    rotation::{CertificateId, ClockReading, Mark, Observation, ObservedEndpoint, Timing, TrustSet},
};

use super::{
    desired::DesiredCertificate,
    endpoints,
    error::ServingCertificateError,
    obstacle::{ObservationObstacle, ca_secret_obstacle, serving_secret_obstacle},
    reconciler::CertificateReconciler,
    secrets::Secrets,
    service_pods::{self, ServicePod},
    targets::{is_requesting, requesting_targets, scope},
    workloads::{self, Workload},
};
use crate::servers::CalledPorts;

/// What was observed, and what is needed to execute a plan.
pub(super) struct Gathered {
    /// Input of the plan.
    pub(super) observation: Observation,
    /// DNS names of the certificate.
    pub(super) names: DnsNames,
    /// Fields of targets that get the trust bundle.
    pub(super) scope: InjectionScope,
    /// Every observed certificate.
    pub(super) certificates: CertificateStore,
    pub(super) authority: Option<CaSecret>,
    pub(super) serving: Option<ServingSecret>,
    /// The targets as observed.
    pub(super) targets: SeenObjects,
    /// Services and ports that the targets call.
    pub(super) called: CalledPorts,
    /// Targets with leftover field ownership of an injection.
    pub(super) unreleased: Vec<ObjectKey>,
    /// Workloads that may be restarted.
    pub(super) workloads: BTreeMap<ObjectKey, Workload>,
}

impl CertificateReconciler {
    /// Gathers everything, including endpoints.
    pub(super) async fn gather(
        &self,
        desired: &DesiredCertificate,
        timing: &Timing,
    ) -> Result<Result<Gathered, ObservationObstacle>, ServingCertificateError> {
        let mut gathered = match self.gather_fast(desired, timing).await? {
            Ok(gathered) => gathered,
            Err(obstacle) => return Ok(Err(obstacle)),
        };
        let services = endpoints::services(&self.context.index, desired.namespace(), &gathered.names);
        if !services.is_empty() {
            let is_own = |service: &Arc<Value>| {
                object::text(service, "/metadata/name") == Some(&desired.spec.service_name)
            };
            gathered.observation.service.exists = services.iter().any(is_own);
            gathered.observation.endpoints = endpoints::observe(
                &self.context,
                &self.probe_schedule,
                &desired.key,
                &gathered.names,
                &services,
                &gathered.called,
                &mut gathered.certificates,
            )
            .await;
            let pods = self
                .list_pods(desired, &services, &mut gathered.observation)
                .await;
            gathered.workloads = self.read_workloads(desired, &pods, &gathered.observation).await;
            let workloads = gathered.workloads.values();
            gathered.observation.workloads = workloads
                .filter_map(|(workload, pods)| read_workload(workload, pods.clone()))
                .collect();
        }
        Ok(Ok(gathered))
    }

    /// Gathers what takes little time: everything except endpoints. Reads both Secrets from the API server, so that a plan
    /// sees the writes of the previous one.
    pub(super) async fn gather_fast(
        &self,
        desired: &DesiredCertificate,
        timing: &Timing,
    ) -> Result<Result<Gathered, ObservationObstacle>, ServingCertificateError> {
        let names = match desired.names() {
            Ok(names) => names,
            Err(invalid) => {
                return Ok(Err(ObservationObstacle::new("InvalidNames", invalid.to_string())));
            }
        };
        let mut certificates = CertificateStore::default();
        let (authority, serving) = match self.read_secrets(desired, &names, &mut certificates).await? {
            Ok(secrets) => secrets,
            Err(obstacle) => {
                self.secrets.forget(&desired.key);
                return Ok(Err(obstacle));
            }
        };
        let secrets = Secrets::from_read(authority.as_ref(), serving.as_ref(), &certificates);
        self.secrets.insert(&desired.key, secrets.clone());
        let named = desired.requestable_secret_name(&secrets);
        let targets = requesting_targets(&self.context.index, &desired.key, named);
        let scope = self.scope(desired, named, &names);
        let mut called = CalledPorts::new();
        let mut unreleased = Vec::new();
        let kinds = self.context.index.target_kinds();
        // One at a time, since all parsed targets together take a lot of memory.
        let seen = targets.iter().map(|(key, target)| {
            let target = target.read();
            called.extend(endpoints::called_ports(&scope, &target));
            if release(&target, &kinds).is_some() {
                unreleased.push(key.clone());
            }
            (key, target)
        });
        let mut observation = self.observe(desired, &scope, secrets, seen, &mut certificates);
        observation.unlisted = self.unlisted_targets();
        let trust = trust_bundle(&observation);
        self.histories
            .complete(&desired.key, &mut observation, &trust, timing);
        Ok(Ok(Gathered {
            observation,
            names,
            scope,
            certificates,
            authority,
            serving,
            targets,
            called,
            unreleased,
            workloads: BTreeMap::new(),
        }))
    }

    /// Gathers one target only. Reads the Secrets only if the watch has seen a change since the last read. A
    /// plan from slightly old Secrets does no harm: a target is written only if it still contains what was
    /// observed, and a later plan corrects it. Returns `None` if there is an obstacle or the target does not
    /// request the trust bundle.
    pub(super) async fn gather_target(
        &self,
        desired: &DesiredCertificate,
        target: &ObjectKey,
        timing: &Timing,
    ) -> Result<Option<Gathered>, ServingCertificateError> {
        let Ok(names) = desired.names() else {
            return Ok(None);
        };
        let index = &self.context.index;
        let authority = CaSecret::key(&self.context.namespace, &desired.key);
        let serving = ServingSecret::key(&desired.requirements(&names));
        let secrets = match self.secrets.find(&desired.key, index, &authority, &serving) {
            Some(secrets) => secrets,
            None => {
                let mut certificates = CertificateStore::default();
                let read = self.read_secrets(desired, &names, &mut certificates).await?;
                let Ok((authority, serving)) = read else {
                    return Ok(None);
                };
                let secrets = Secrets::from_read(authority.as_ref(), serving.as_ref(), &certificates);
                self.secrets.insert(&desired.key, secrets.clone());
                secrets
            }
        };
        let Some(indexed) = index.find_indexed(target) else {
            return Ok(None);
        };
        let object = indexed.read();
        let named = desired.requestable_secret_name(&secrets);
        if !is_requesting(&object, &desired.key, named, &self.context.index.target_kinds()) {
            return Ok(None);
        }
        let scope = self.scope(desired, named, &names);
        let mut certificates = secrets.certificates.clone();
        let mut observation = self.observe(desired, &scope, secrets, [(target, object)], &mut certificates);
        let trust = trust_bundle(&observation);
        self.histories
            .complete_some(&desired.key, &mut observation, &trust, timing);
        Ok(Some(Gathered {
            observation,
            names,
            scope,
            certificates,
            authority: None,
            serving: None,
            targets: SeenObjects::from([(target.clone(), indexed)]),
            called: CalledPorts::new(),
            unreleased: Vec::new(),
            workloads: BTreeMap::new(),
        }))
    }

    /// Returns where targets may exist that are not listed yet: kinds of the local cluster, and the remote
    /// cluster as a whole.
    fn unlisted_targets(&self) -> Vec<String> {
        let unlisted = self.context.watches.unlisted_targets();
        let (own, remote): (Vec<_>, Vec<_>) =
            unlisted.iter().partition(|kind| kind.cluster == InCluster::Local);
        let mut unlisted: Vec<_> = own.into_iter().map(ToString::to_string).collect();
        if !remote.is_empty() {
            // Some kinds are watched in several versions.
            let kinds: BTreeSet<_> = remote.iter().map(|kind| &*kind.kind).collect();
            let kinds = || kinds.into_iter().collect::<Vec<_>>().join(", ");
            let problem = self.context.cluster.remote().and_then(RemoteCluster::problem);
            let why = problem.map_or_else(kinds, |problem| problem.to_string());
            unlisted.push(format!("the remote cluster ({why})"));
        }
        unlisted
    }

    /// Returns the fields of targets that get the trust bundle.
    fn scope(&self, desired: &DesiredCertificate, named: Option<&str>, names: &DnsNames) -> InjectionScope {
        scope(&desired.key, named, names).with_kinds(self.context.index.target_kinds())
    }

    /// Creates an observation of Secrets and targets only.
    fn observe<'t>(
        &self,
        desired: &DesiredCertificate,
        scope: &InjectionScope,
        secrets: Secrets,
        targets: impl IntoIterator<Item = (&'t ObjectKey, Arc<Value>)>,
        certificates: &mut CertificateStore,
    ) -> Observation {
        let mut observation = Observation {
            authorities: secrets.authorities,
            serving: secrets.serving,
            request: desired.request.clone(),
            ..Observation::new(self.clock(), &desired.spec.service_name)
        };
        let trust = trust_bundle(&observation);
        observation.targets = targets
            .into_iter()
            .filter_map(|(key, target)| read_target(key, &target, scope, &trust, certificates))
            .collect();
        observation
    }

    /// Reads the CA Secret and the serving Secret, if they exist.
    async fn read_secrets(
        &self,
        desired: &DesiredCertificate,
        names: &DnsNames,
        certificates: &mut CertificateStore,
    ) -> Result<Result<(Option<CaSecret>, Option<ServingSecret>), ObservationObstacle>, ServingCertificateError>
    {
        let requirements = desired.requirements(names);
        let authority_key = CaSecret::key(&self.context.namespace, &desired.key);
        let serving_key = ServingSecret::key(&requirements);
        let cluster = &self.context.cluster;
        let (authority, serving) =
            tokio::try_join!(cluster.read(&authority_key), cluster.read(&serving_key))?;
        let obstacle = authority
            .as_ref()
            .and_then(|secret| ca_secret_obstacle(secret, desired));
        let obstacle = obstacle.or_else(|| serving_secret_obstacle(serving.as_ref()?, &requirements));
        if let Some(obstacle) = obstacle {
            return Ok(Err(obstacle));
        }
        if let Some(keeper) = self.conflicting_namespace(desired, serving.as_ref()).await? {
            return Ok(Err(ObservationObstacle::conflict(
                &self.context.namespace,
                &keeper,
            )));
        }
        let authority = authority.map(|mut secret| {
            let read = CaSecret::read(&secret, &requirements, certificates);
            object::wipe_data(&mut secret);
            read
        });
        let known = authority.as_ref().map(|secret| &secret.authorities);
        let serving = serving.map(|secret| {
            let mut secret = ServingSecret::read(secret, &requirements, certificates);
            limit_adoption(&mut secret.content, known, names, certificates);
            secret
        });
        Ok(Ok((authority, serving)))
    }

    fn clock(&self) -> ClockReading {
        let uptime = SignedDuration::try_from(self.since.elapsed()).unwrap_or(SignedDuration::MAX);
        ClockReading {
            now: self.context.clock.now(),
            mark: Mark {
                run: self.run,
                uptime,
            },
        }
    }

    /// Lists the pods of the Services if the endpoints alone do not show what is or will be served. Otherwise
    /// returns none.
    async fn list_pods(
        &self,
        desired: &DesiredCertificate,
        services: &[Arc<Value>],
        observation: &mut Observation,
    ) -> Vec<ServicePod> {
        let authorities = observation.authorities.as_ref().map(|secret| &secret.content);
        let is_settled =
            authorities.is_some_and(|state| state.retiring.is_empty() && state.leaves.len() <= 1);
        let published = published_leaf(observation).copied();
        let is_seen = |endpoint: &ObservedEndpoint| endpoint.ready && endpoint.serves(published.as_ref());
        let endpoints = &mut observation.endpoints;
        if is_settled && endpoints.iter().any(|endpoint| endpoint.ready) && endpoints.iter().all(is_seen) {
            return Vec::new();
        }
        match service_pods::list(&self.context.cluster, desired.namespace(), services).await {
            Ok(pods) => {
                observation.service.starting = Some(endpoints::add_pods(endpoints, &pods));
                pods
            }
            Err(error) => {
                warn!(certificate = %desired.key, error = chain(&error), "Cannot list the pods of the Service");
                observation.service.starting = None;
                Vec::new()
            }
        }
    }

    /// Reads the workloads whose ready pods do not serve the certificate in the Secret.
    async fn read_workloads(
        &self,
        desired: &DesiredCertificate,
        pods: &[ServicePod],
        observation: &Observation,
    ) -> BTreeMap<ObjectKey, Workload> {
        let reload = &desired.spec.reload;
        if reload.strategy == ReloadStrategy::Never {
            return BTreeMap::new();
        }
        let published = published_leaf(observation);
        let is_late = |endpoint: &&ObservedEndpoint| endpoint.ready && !endpoint.serves(published);
        let late = observation.endpoints.iter().filter(is_late);
        let late: BTreeSet<_> = late.map(|endpoint| &endpoint.name).collect();
        let pods = pods.iter().filter(|pod| late.contains(&pod.name));
        let mut workloads = workloads::read(&self.context.cluster, pods).await;
        if let Some(name) = &reload.deployment_name {
            workloads.retain(|workload, _| {
                Kind::from_key(workload) == kinds::DEPLOYMENT && workload.name == *name
            });
        }
        workloads
    }
}

/// Returns the serving certificate in the Secret.
fn published_leaf(observation: &Observation) -> Option<&CertificateId> {
    observation.serving.as_ref()?.content.leaf.as_ref()
}

/// Returns the trust bundle that targets should contain.
fn trust_bundle(observation: &Observation) -> TrustSet {
    let authorities = observation.authorities.as_ref();
    authorities
        .map(|secret| secret.content.trust_bundle(observation.clock.now))
        .unwrap_or_default()
}
