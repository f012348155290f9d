//! Execution of a plan's steps.

use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    sync::Arc,
};

use futures::{StreamExt, TryStreamExt, stream::FuturesUnordered};
use serde_json::Value;
use tracing::info;
use windlass_cluster::{
    IndexedObject, RequestError, keys,
    telemetry::traces::{OpenSpan, SpanAttribute, run_in_span},
};
use windlass_object::{ObjectKey, names, object};
use windlass_trust::{
    injection::{self, Injection},
    objects::{
        CaSecret, IssueCaError, Mint, SecretContents, ServingSecret, new_authorities, restart_patch, summary,
    },
    pki::{CertificateAuthority, Credentials, PrivateKey, Terms},
    rotation::{CaChange, Leaf, Publication, Step, Timing, TrustSet, blocks_rotation},
};

use super::{
    desired::DesiredCertificate, error::ServingCertificateError, gather::Gathered, history::InjectionRecord,
    reconciler::CertificateReconciler,
};
use crate::{
    ca_injectors,
    injection::{InjectionOutcome, inject, release},
};

/// What to do after the steps of a plan. Of several outcomes, the last variant counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum StepsOutcome {
    /// Wait for a change that a watch reports.
    Settled,
    /// A target was written, by Windlass or by another client. Wait for the watch to deliver it before
    /// reporting status.
    Awaited,
    /// A Secret was written, by Windlass or by another client. The observation is outdated: gather again.
    GatherAgain,
}

impl CertificateReconciler {
    /// Executes all steps, even if one fails, and returns the first error.
    pub(super) async fn execute(
        &self,
        desired: &DesiredCertificate,
        gathered: &mut Gathered,
        steps: &[Step],
        timing: &Timing,
    ) -> Result<StepsOutcome, ServingCertificateError> {
        let mut outcome = StepsOutcome::Settled;
        let mut failure = None;
        let mut injections = Vec::new();
        for step in steps {
            let is_secret = matches!(step, Step::ChangeAuthorities { .. } | Step::PublishServing(_));
            if is_secret {
                self.secrets.forget(&desired.key);
            }
            let done = match step {
                Step::ChangeAuthorities { replacing, change } => {
                    let changed = self.change_authorities(desired, gathered, replacing.as_deref(), change);
                    run_in_span(step_span(step), changed).await
                }
                Step::PublishServing(publication) => {
                    run_in_span(step_span(step), self.publish(desired, gathered, publication)).await
                }
                Step::InjectTarget { target, bundle } => {
                    injections.push((target, bundle));
                    continue;
                }
                Step::RestartRollout { workload, leaf } => {
                    let Some((seen, _)) = gathered.workloads.get(workload) else {
                        continue;
                    };
                    let patch = restart_patch(seen, leaf);
                    run_in_span(step_span(step), self.patch_workload(workload, &patch)).await
                }
            };
            match done {
                Ok(done) => {
                    if done == WriteOutcome::Written {
                        self.announce_step(desired, step);
                    }
                    if done == WriteOutcome::Stale || (done == WriteOutcome::Written && is_secret) {
                        outcome = StepsOutcome::GatherAgain;
                    }
                }
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        let targets = gathered.observation.targets.iter();
        let refused: HashSet<_> = targets
            .filter(|target| target.refused.is_some())
            .map(|target| &target.id)
            .collect();
        let is_pending = injections.iter().any(|(target, _)| !refused.contains(target));
        let mut note = |done| match done {
            Ok(done) => outcome = outcome.max(done),
            Err(error) => failure = failure.take().or(Some(error)),
        };
        let prepared = prepare_injections(gathered, &injections)?;
        let mut injecting = FuturesUnordered::new();
        for prepared in &prepared {
            // Leave capacity for repairs, which share this pace.
            while injecting.len() >= self.context.pace.limit() {
                injecting.next().await.map(&mut note);
            }
            // Boxed: these futures are many and get moved.
            injecting.push(Box::pin(
                self.inject(desired, gathered, prepared, &refused, timing),
            ));
        }
        while let Some(done) = injecting.next().await {
            note(done);
        }
        drop(injecting);
        // Runs last: leftover ownership affects only clients that apply the target, while programs wait for
        // the injections.
        if !is_pending && let Err(error) = self.release_targets(gathered).await {
            failure = failure.or(Some(error));
        }
        failure.map_or(Ok(outcome), Err)
    }

    async fn change_authorities(
        &self,
        desired: &DesiredCertificate,
        gathered: &mut Gathered,
        replacing: Option<&str>,
        change: &CaChange,
    ) -> Result<WriteOutcome, ServingCertificateError> {
        let Some(signers) = self.signers(desired, gathered).await? else {
            return Ok(WriteOutcome::Stale);
        };
        let mut fresh = Vec::new();
        for _ in 0..new_authorities(change) {
            fresh.push(PrivateKey::from(keys::generate(&desired.spec.private_key).await?));
        }
        let before = gathered.observation.authorities.as_ref();
        let before = before.map(|secret| secret.content.clone()).unwrap_or_default();
        gathered.authority = None;
        let mut mint = Mint {
            names: &gathered.names,
            now: gathered.observation.clock.now,
            keys: fresh,
            serial: keys::serial,
            signers,
            certificates: &mut gathered.certificates,
        };
        let after = before.with_change(change, &mut mint)?;
        let signers = mint.signers;
        let key = CaSecret::key(&self.context.namespace, &desired.key);
        let mut secret = CaSecret::write(
            &key,
            &desired.key,
            replacing,
            &after,
            &signers,
            &gathered.certificates,
        )?;
        let done = self.write_secret(&secret, replacing.is_some()).await;
        object::wipe_data(&mut secret);
        let done = done?;
        if done == WriteOutcome::Written {
            info!(certificate = %desired.key, "{change}");
        }
        Ok(done)
    }

    /// Reads the CAs with their keys, which stay in memory only while they sign. Returns `None` if the Secret
    /// has changed since it was observed.
    async fn signers(
        &self,
        desired: &DesiredCertificate,
        gathered: &Gathered,
    ) -> Result<Option<Vec<CertificateAuthority>>, ServingCertificateError> {
        let Some(seen) = &gathered.authority else {
            return Ok(Some(Vec::new()));
        };
        let key = CaSecret::key(&self.context.namespace, &desired.key);
        let Some(mut secret) = self.context.cluster.read(&key).await? else {
            return Ok(None);
        };
        let is_as_seen = object::text(&secret, "/metadata/resourceVersion") == Some(&seen.version);
        let signers = is_as_seen.then(|| CaSecret::signers(&secret));
        object::wipe_data(&mut secret);
        Ok(signers)
    }

    async fn publish(
        &self,
        desired: &DesiredCertificate,
        gathered: &Gathered,
        publication: &Publication,
    ) -> Result<WriteOutcome, ServingCertificateError> {
        let (leaf, key) = match &publication.leaf {
            Leaf::Keep => {
                let credentials = gathered
                    .serving
                    .as_ref()
                    .and_then(|secret| secret.credentials.as_ref());
                let Some(credentials) = credentials else {
                    return Ok(WriteOutcome::Stale);
                };
                let key = PrivateKey::from_pem(credentials.key().to_pem().as_bytes())?;
                (credentials.leaf().clone(), key)
            }
            Leaf::Issue { by, validity } => {
                let Some(signers) = self.signers(desired, gathered).await? else {
                    return Ok(WriteOutcome::Stale);
                };
                let signer = signers
                    .iter()
                    .find(|signer| summary(signer.certificate()).key_id == *by);
                let signer = signer.ok_or(IssueCaError::NoKey)?;
                let key = PrivateKey::from(keys::generate(&desired.spec.private_key).await?);
                let terms = Terms {
                    serial: keys::serial(),
                    now: gathered.observation.clock.now,
                    validity: *validity,
                };
                (signer.issue(&gathered.names, &key, &terms)?, key)
            }
        };
        let cross = publication.cross.as_ref();
        let cross = cross.map(|cross| gathered.certificates.find(cross).cloned());
        let credentials = Credentials::new(leaf, cross.transpose()?.into_iter().collect(), key)?;
        let trust = gathered.certificates.trust_bundle(&publication.bundle)?;
        let authority = publication.authority.as_ref();
        let authority = authority.map(|authority| gathered.certificates.find(authority));
        let contents = SecretContents {
            credentials: &credentials,
            trust: &trust,
            authority: authority.transpose()?,
            operator_namespace: &self.context.namespace,
        };
        let secret = ServingSecret::write(
            gathered.serving.as_ref(),
            &desired.requirements(&gathered.names),
            &contents,
        );
        let done = self
            .write_secret(&secret, publication.replacing.is_some())
            .await?;
        if done == WriteOutcome::Written {
            info!(certificate = %desired.key, secret = desired.spec.secret_name, "Published the serving certificate");
        }
        Ok(done)
    }

    async fn inject(
        &self,
        desired: &DesiredCertificate,
        gathered: &Gathered,
        prepared: &PreparedInjection<'_>,
        refused: &HashSet<&ObjectKey>,
        timing: &Timing,
    ) -> Result<StepsOutcome, ServingCertificateError> {
        let PreparedInjection {
            target,
            bundle,
            injection,
        } = prepared;
        let awaited = match blocks_rotation(target) {
            true => StepsOutcome::Awaited,
            false => StepsOutcome::Settled,
        };
        if !self.context.is_target_known(target) {
            return Ok(StepsOutcome::Settled);
        }
        let permit = self.context.pace_of(target).acquire().await;
        let Some(seen) = gathered.targets.get(target).map(IndexedObject::read) else {
            return Ok(StepsOutcome::Settled);
        };
        // With many targets, this one may have waited for others for seconds, and a repair may have been
        // faster. Use the latest version.
        let Some(latest) = self.context.index.find(target) else {
            return Ok(StepsOutcome::Settled);
        };
        let is_repair = self.histories.last_bundle(&desired.key, target).as_ref() == Some(*bundle);
        let is_lacking = || injection.is_needed(&latest) == Ok(true);
        if is_repair && is_lacking() && ca_injectors::is_overwritten(&self.context, &latest) {
            // Plan again, which leaves the target to the other injector.
            return Ok(StepsOutcome::GatherAgain);
        }
        let injected = match injection::CaRequests::from_object(&latest, &self.context.index.target_kinds()) {
            Err(error) => InjectionOutcome::Refused(error.to_string()),
            Ok(_) => {
                let version = object::text(&latest, "/metadata/resourceVersion");
                let is_begun = injection.has_same_bundles(&seen, &latest)
                    && self.histories.begin_write(&desired.key, target, version);
                if !is_begun {
                    return Ok(awaited);
                }
                let injected = inject(&self.context.cluster, permit, target, &latest, injection).await;
                if injected.is_err() {
                    self.histories.abandon_write(&desired.key, target);
                }
                injected?
            }
        };
        let limiter = self.histories.record(&InjectionRecord {
            certificate: &desired.key,
            target,
            trust: bundle,
            is_repair,
            by: injection::last_writer(&seen),
            injected: &injected,
            uptime: gathered.observation.clock.mark.uptime,
            timing,
        });
        if let Some(limiter) = limiter {
            self.announce_repair(desired, target, &limiter);
        }
        Ok(match injected {
            InjectionOutcome::Written(_) | InjectionOutcome::Unchanged | InjectionOutcome::Overtaken => {
                awaited
            }
            // Plan again, with this refusal.
            InjectionOutcome::Refused(_) if !refused.contains(target) => StepsOutcome::GatherAgain,
            InjectionOutcome::Refused(_) | InjectionOutcome::Gone => StepsOutcome::Settled,
        })
    }

    /// Releases leftover field ownership of injections in all targets where it would obstruct clients that
    /// apply them.
    async fn release_targets(&self, gathered: &Gathered) -> Result<(), ServingCertificateError> {
        let mut releasing = FuturesUnordered::new();
        for target in &gathered.unreleased {
            while releasing.len() >= self.context.pace.limit() {
                releasing.next().await.transpose()?;
            }
            releasing.push(Box::pin(self.release(target)));
        }
        Ok(releasing.try_collect().await?)
    }

    async fn release(&self, key: &ObjectKey) -> Result<(), RequestError> {
        let permit = self.context.pace_of(key).acquire().await;
        match self.context.index.find(key) {
            Some(target) if self.context.is_target_known(key) => {
                let kinds = self.context.index.target_kinds();
                release(&self.context.cluster, permit, key, &target, &kinds).await
            }
            _ => Ok(()),
        }
    }

    async fn patch_workload(
        &self,
        key: &ObjectKey,
        patch: &json_patch::Patch,
    ) -> Result<WriteOutcome, ServingCertificateError> {
        match self.context.cluster.patch(key, patch, names::CERTIFICATES).await {
            Ok(_) => {
                info!(object = %key, "Restarted the rollout");
                Ok(WriteOutcome::Written)
            }
            // The workload has changed since it was read, for example its status.
            Err(error) if error.is_invalid() || error.is_conflict() || error.is_not_found() => {
                Ok(WriteOutcome::Nothing)
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn write_secret(
        &self,
        secret: &Value,
        replaces: bool,
    ) -> Result<WriteOutcome, ServingCertificateError> {
        let cluster = &self.context.cluster;
        let written = if replaces {
            cluster.replace(secret, names::CERTIFICATES).await
        } else {
            cluster.create(secret, names::CERTIFICATES).await
        };
        match written {
            Ok(_) => Ok(WriteOutcome::Written),
            Err(error) if error.is_conflict() => Ok(WriteOutcome::Stale),
            Err(error) if error.is_not_found() && replaces => Ok(WriteOutcome::Stale),
            Err(error) => Err(error.into()),
        }
    }

    /// Forgets a deleted ServingCertificate, and deletes its CAs.
    pub(super) async fn forget(&self, certificate: &ObjectKey) -> Result<(), ServingCertificateError> {
        self.histories.forget(certificate);
        self.probe_schedule.forget(certificate);
        self.obstacle_backoff.forget(certificate);
        self.secrets.forget(certificate);
        self.announced.forget(certificate);
        self.rotations.forget(certificate);
        let cluster = &self.context.cluster;
        let key = CaSecret::key(&self.context.namespace, certificate);
        let Some(secret) = cluster.read(&key).await? else {
            return Ok(());
        };
        // Confirm the deletion with the API server before keys are deleted.
        let is_gone = cluster.read(certificate).await?.is_none();
        if !is_gone || !CaSecret::was_created_for(&secret, certificate) {
            return Ok(());
        }
        cluster
            .delete(&key, object::text(&secret, "/metadata/uid"))
            .await?;
        info!(%certificate, "Deleted the CAs of a deleted ServingCertificate");
        Ok(())
    }
}

/// A target and its injection.
struct PreparedInjection<'a> {
    target: &'a ObjectKey,
    bundle: &'a TrustSet,
    /// Shared by all targets with the same trust bundle.
    injection: Arc<Injection>,
}

fn prepare_injections<'a>(
    gathered: &Gathered,
    injections: &[(&'a ObjectKey, &'a TrustSet)],
) -> Result<Vec<PreparedInjection<'a>>, ServingCertificateError> {
    let mut made: HashMap<&TrustSet, Arc<Injection>> = HashMap::new();
    let mut prepared = Vec::new();
    for (target, bundle) in injections {
        let injection = match made.entry(bundle) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let trust = gathered.certificates.trust_bundle(bundle)?;
                entry.insert(Arc::new(Injection::new(trust, gathered.scope.clone())))
            }
        };
        prepared.push(PreparedInjection {
            target,
            bundle,
            injection: injection.clone(),
        });
    }
    Ok(prepared)
}

/// Starts the span of a step, if the step belongs to a trace. An injection needs none, as its request has a
/// span.
fn step_span(step: &Step) -> Option<OpenSpan> {
    let name = match step {
        Step::ChangeAuthorities { .. } => "change CAs",
        Step::PublishServing(_) => "publish certificate",
        Step::InjectTarget { .. } => "inject trust bundle",
        Step::RestartRollout { .. } => "restart pods",
    };
    let span = OpenSpan::internal(name)?;
    Some(span.with(SpanAttribute::new("windlass.step", step.to_string())))
}

/// Result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteOutcome {
    Written,
    /// There was nothing to write.
    Nothing,
    /// The observation is outdated.
    Stale,
}
