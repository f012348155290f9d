//! Looking at everything that a plan is made from.

use std::sync::Arc;

use jiff::SignedDuration;
use serde_json::Value;
use windlass_api::ReloadStrategy;
use windlass_cluster::kinds;
use windlass_object::{ObjectKey, object};
use windlass_trust::{
    objects::{
        CaSecret, CertificateRequirements, CertificateStore, ServingSecret, read_deployment, read_target,
    },
    pki::DnsNames,
    rotation::{ClockReading, Mark, Observation, Timing, Versioned},
};

use super::{
    desired::DesiredCertificate, endpoints, error::ServingCertificateError,
    reconciler::CertificateReconciler, targets,
};
use crate::{bundle_deployment::rollout_status::RolloutStatus, injection::TARGET_KINDS};

/// What was seen, and what is needed to act on a plan.
pub(super) struct Gathered {
    /// What the plan is made from.
    pub(super) observation: Observation,
    /// The names that are served.
    pub(super) names: DnsNames,
    /// Every certificate that was seen.
    pub(super) certificates: CertificateStore,
    /// The CA Secret.
    pub(super) authority: Option<CaSecret>,
    /// The serving Secret.
    pub(super) serving: Option<ServingSecret>,
    /// The targets as they were seen.
    pub(super) targets: Vec<Arc<Value>>,
    /// The Deployment that may be restarted.
    pub(super) deployment: Option<Value>,
}

/// Why there is nothing to plan.
pub(super) struct Unobservable {
    /// In CamelCase, as the reason of a condition.
    pub(super) reason: &'static str,
    /// What is in the way, and what to do.
    pub(super) message: String,
}

// === impl CertificateReconciler ===

impl CertificateReconciler {
    /// Looks at everything.
    pub(super) async fn gather(
        &self,
        desired: &DesiredCertificate,
        timing: &Timing,
    ) -> Result<Result<Gathered, Unobservable>, ServingCertificateError> {
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
                &gathered.names,
                &services,
                &gathered.targets,
                &mut gathered.certificates,
            )
            .await;
        }
        gathered.deployment = self.look_at_deployment(desired).await?;
        gathered.observation.rollout = gathered.deployment.as_ref().map(|deployment| {
            let progressing = RolloutStatus::of(deployment) != RolloutStatus::Complete;
            read_deployment(deployment, progressing)
        });
        Ok(Ok(gathered))
    }

    /// Looks at what keeps nobody waiting: not at endpoints. Both Secrets are read from the API server, so that a plan
    /// sees what the one before wrote.
    pub(super) async fn gather_fast(
        &self,
        desired: &DesiredCertificate,
        timing: &Timing,
    ) -> Result<Result<Gathered, Unobservable>, ServingCertificateError> {
        let names = match desired.names() {
            Ok(names) => names,
            Err(invalid) => {
                return Ok(Err(Unobservable {
                    reason: "InvalidNames",
                    message: invalid.to_string(),
                }));
            }
        };
        let mut certificates = CertificateStore::default();
        let (authority, serving) = match self.read_secrets(desired, &names, &mut certificates).await? {
            Ok(secrets) => secrets,
            Err(obstacle) => return Ok(Err(obstacle)),
        };
        let clock = self.clock();
        let trust = authority
            .as_ref()
            .map(|secret| secret.authorities.trust_bundle(clock.now))
            .unwrap_or_default();
        let secret = serving
            .as_ref()
            .filter(|secret| secret.allows_direct_injection)
            .map(|_| desired.spec.secret_name.as_str());
        let asking = targets::requesting_targets(&self.context.index, &desired.key, secret);
        let mut observation = observe_secrets(desired, clock, authority.as_ref(), serving.as_ref());
        observation.targets = asking
            .iter()
            .filter_map(|target| read_target(target, &names, &trust, &mut certificates))
            .collect();
        let unlisted = self.context.watches.unlisted();
        observation.unlisted = unlisted
            .iter()
            .filter(|kind| TARGET_KINDS.contains(kind))
            .map(ToString::to_string)
            .collect();
        self.histories
            .complete(&desired.key, &mut observation, &trust, timing);
        Ok(Ok(Gathered {
            observation,
            names,
            certificates,
            authority,
            serving,
            targets: asking,
            deployment: None,
        }))
    }

    /// The CA Secret and the serving Secret, as far as they exist.
    async fn read_secrets(
        &self,
        desired: &DesiredCertificate,
        names: &DnsNames,
        certificates: &mut CertificateStore,
    ) -> Result<Result<(Option<CaSecret>, Option<ServingSecret>), Unobservable>, ServingCertificateError>
    {
        let requirements = desired.requirements(names);
        let authority_key = CaSecret::key(&self.context.namespace, &desired.key);
        let serving_key = ServingSecret::key(&requirements);
        let cluster = &self.context.cluster;
        let (authority, serving) =
            tokio::try_join!(cluster.read(&authority_key), cluster.read(&serving_key))?;
        let obstacle = authority
            .as_ref()
            .and_then(|secret| in_way_of_authorities(secret, desired));
        let obstacle = obstacle.or_else(|| in_way_of_serving(serving.as_ref()?, &requirements));
        if let Some(obstacle) = obstacle {
            return Ok(Err(obstacle));
        }
        let authority = authority.map(|secret| CaSecret::read(&secret, &requirements, certificates));
        let serving = serving.map(|secret| ServingSecret::read(secret, &requirements, certificates));
        Ok(Ok((authority, serving)))
    }

    /// What the clocks say.
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

    async fn look_at_deployment(
        &self,
        desired: &DesiredCertificate,
    ) -> Result<Option<Value>, ServingCertificateError> {
        let reload = &desired.spec.reload;
        let Some(name) = &reload.deployment_name else {
            return Ok(None);
        };
        if reload.strategy == ReloadStrategy::Never {
            return Ok(None);
        }
        let key = kinds::DEPLOYMENT.object(Some(desired.namespace()), name);
        Ok(self.context.cluster.read(&key).await?)
    }
}

// === impl Unobservable ===

impl Unobservable {
    fn terminating(object: &ObjectKey) -> Self {
        Self {
            reason: "SecretTerminating",
            message: format!("waiting for {object} to be deleted before recreating it"),
        }
    }
}

/// What both Secrets show; nothing else was looked at.
fn observe_secrets(
    desired: &DesiredCertificate,
    clock: ClockReading,
    authority: Option<&CaSecret>,
    serving: Option<&ServingSecret>,
) -> Observation {
    Observation {
        authorities: authority.map(|secret| Versioned {
            version: secret.version.clone(),
            content: secret.authorities.clone(),
        }),
        serving: serving.map(|secret| Versioned {
            version: secret.version.clone(),
            content: secret.content.clone(),
        }),
        request: desired.request.clone(),
        ..Observation::new(clock, &desired.spec.service_name)
    }
}

/// Why the CA Secret must not be read.
fn in_way_of_authorities(secret: &Value, desired: &DesiredCertificate) -> Option<Unobservable> {
    let key = ObjectKey::of(secret)?;
    if object::is_terminating(secret) {
        return Some(Unobservable::terminating(&key));
    }
    (!CaSecret::is_ours(secret, &desired.key)).then(|| Unobservable {
        reason: "ForeignSecret",
        message: format!("{key} exists and was not created by Windlass: delete it"),
    })
}

/// Why the serving Secret must not be read.
fn in_way_of_serving(secret: &Value, requirements: &CertificateRequirements<'_>) -> Option<Unobservable> {
    if object::is_terminating(secret) {
        return ObjectKey::of(secret).map(|key| Unobservable::terminating(&key));
    }
    ServingSecret::objection(secret, requirements).map(|message| Unobservable {
        reason: "ForeignSecret",
        message,
    })
}
