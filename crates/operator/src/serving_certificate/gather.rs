//! Looking at everything that a plan is made from.

use std::sync::Arc;

use jiff::SignedDuration;
use serde_json::Value;
use windlass_api::ReloadStrategy;
use windlass_cluster::kinds;
use windlass_object::{ObjectKey, object};
use windlass_trust::{
    pki::DnsNames,
    rotation::{ClockReading, Mark, Observation, ObservedService, Timing, Versioned},
};

use super::{
    CertificateReconciler, ServingCertificateError, ca_secret::CaSecret, certificates::CertificateStore,
    desired::DesiredCertificate, endpoints, rollout, secrets, serving_secret::ServingSecret, targets,
};

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
    /// A word.
    pub(super) reason: &'static str,
    /// What is in the way, and what to do.
    pub(super) message: String,
}

// === impl Reconciler ===

impl CertificateReconciler {
    /// Looks at everything.
    pub(super) async fn gather(
        &self,
        desired: &DesiredCertificate,
        timing: &Timing,
    ) -> Result<Result<Gathered, Unobservable>, ServingCertificateError> {
        let mut scene = match self.gather_fast(desired, timing).await? {
            Ok(scene) => scene,
            Err(obstacle) => return Ok(Err(obstacle)),
        };
        let service = kinds::SERVICE.object(Some(desired.namespace()), &desired.spec.service_name);
        if let Some(service) = self.context.index.find(&service) {
            scene.observation.service.exists = true;
            scene.observation.endpoints = endpoints::observe(
                &self.context,
                desired,
                &scene.names,
                &service,
                &scene.targets,
                &mut scene.certificates,
            )
            .await;
        }
        scene.deployment = self.look_at_deployment(desired).await?;
        scene.observation.rollout = scene.deployment.as_ref().map(rollout::read);
        Ok(Ok(scene))
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
        let authority_key = secrets::authority_key(&self.context.namespace, &desired.key);
        let serving_key = ServingSecret::key(desired);
        let cluster = &self.context.cluster;
        let (authority, serving) =
            tokio::try_join!(cluster.read(&authority_key), cluster.read(&serving_key))?;
        let obstacles = [
            authority
                .as_ref()
                .and_then(|secret| in_way_of_authorities(secret, desired)),
            serving
                .as_ref()
                .and_then(|secret| in_way_of_serving(secret, desired)),
        ];
        if let Some(obstacle) = obstacles.into_iter().flatten().next() {
            return Ok(Err(obstacle));
        }
        let authority = authority.map(|secret| CaSecret::read(&secret, desired, &names, &mut certificates));
        let serving = serving.map(|secret| ServingSecret::read(secret, desired, &names, &mut certificates));
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
        let observed = asking
            .iter()
            .filter_map(|target| targets::read(target, &names, &trust, &mut certificates));
        let mut observation = Observation {
            clock,
            authorities: authority.as_ref().map(|secret| Versioned {
                version: secret.version.clone(),
                content: secret.authorities.clone(),
            }),
            serving: serving.as_ref().map(|secret| Versioned {
                version: secret.version.clone(),
                content: secret.content.clone(),
            }),
            targets: observed.collect(),
            service: ObservedService {
                name: desired.spec.service_name.clone(),
                exists: false,
            },
            regressed: None,
            endpoints: Vec::new(),
            rollout: None,
            request: desired.request.clone(),
        };
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

    /// What the clocks say.
    fn clock(&self) -> ClockReading {
        let uptime = SignedDuration::try_from(self.started.elapsed()).unwrap_or(SignedDuration::MAX);
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

// === impl Obstacle ===

impl Unobservable {
    fn terminating(object: &ObjectKey) -> Self {
        Self {
            reason: "SecretTerminating",
            message: format!("{object} is being deleted; another is made when it is gone"),
        }
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
        message: format!("{key} exists and was not made by Windlass: remove it"),
    })
}

/// Why the serving Secret must not be read.
fn in_way_of_serving(secret: &Value, desired: &DesiredCertificate) -> Option<Unobservable> {
    if object::is_terminating(secret) {
        return ObjectKey::of(secret).map(|key| Unobservable::terminating(&key));
    }
    ServingSecret::objection(secret, desired).map(|message| Unobservable {
        reason: "ForeignSecret",
        message,
    })
}
