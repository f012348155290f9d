//! The pipeline of an install, gate by gate.

use std::{collections::BTreeMap, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::{
    Halt, Reconciler,
    namespace::Namespace,
    report::Survey,
    rollout::{Revisions, Rollout},
};
use crate::{
    api::{BundleDeployment, CertificateStatus, ServingCertificate, WebhookState},
    cluster::{
        RequestError,
        apply::{ApplyError, Owner},
        kinds,
        prober::TrustAnchors,
    },
    controllers::worker::{Next, chain},
    domain::{
        object::{self, ObjectKey},
        plan::{Phase, Plan, Stage, staged, stops_serving, waits_for_proof},
        status::{Standing, Step},
    },
};

// === impl Reconciler ===

impl Reconciler {
    /// Walks the pipeline as far as it is open.
    pub(super) async fn install(
        &self,
        deployment: &BundleDeployment,
        survey: &mut Survey,
    ) -> Result<Next, Halt> {
        let name = deployment.metadata.name.clone().unwrap_or_default();
        let owner = self.owner(deployment);
        survey.at = Step::Accepted;
        let namespace = &deployment.spec.namespace;
        if self.namespace(namespace).await? == Namespace::Terminating {
            self.let_go(&owner, namespace).await?;
        }
        let accepted = self.accept(&owner, deployment, survey).await;
        if matches!(accepted, Err(Halt::Gate(_))) {
            // What was tried out is not asked for any more.
            self.dismiss_canaries(&owner, &[]).await?;
        }
        let loaded = match accepted {
            Err(Halt::Gate(standing)) => return Err(self.migrate_meanwhile(&owner, standing, survey).await),
            accepted => accepted?,
        };
        let plan = &loaded.plan;
        survey.begin(&loaded.bundle);

        survey.at = Step::Installed;
        self.ensure_namespace(&owner, plan).await?;
        self.try_out(deployment, &owner, plan, survey).await?;
        self.disarm_dropped(&owner, plan).await?;
        for phase in [
            Phase::Identity,
            Phase::Configuration,
            Phase::Services,
            Phase::Certificates,
        ] {
            self.ensure_phase(&owner, plan, phase).await?;
        }
        let trust_bundles = self.trust_bundles(plan, survey)?;
        self.ensure_definitions(&owner, plan, &trust_bundles, Stage::Rollout, survey)
            .await?;
        self.disarm_conversions(&owner, plan).await?;
        if self.rolls_out(plan).await? {
            self.gate_on_disarmed(&owner, Step::Installed)?;
        }
        self.ensure_phase(&owner, plan, Phase::Deployments).await?;
        self.dismiss_canaries(&owner, &[]).await?;

        survey.at = Step::Available;
        self.gate_on_deployments(&owner, plan).await?;

        survey.at = Step::Armed;
        if self.is_anything_unarmed(&owner, plan, survey) {
            self.prove(&name, plan, &trust_bundles).await?;
        }
        self.arm(&owner, plan, &trust_bundles, survey).await?;

        survey.at = Step::Migrated;
        self.migrate_storage(&owner, plan, survey).await?;
        self.remove_dropped(&owner, plan).await?;
        survey.finish();
        Ok(Next::Change)
    }

    async fn ensure_phase(&self, owner: &Owner, plan: &Plan, phase: Phase) -> Result<(), Halt> {
        for object in plan.phases.of(phase) {
            self.ensure(object, owner).await?;
        }
        Ok(())
    }

    /// Applies an object.
    pub(super) async fn ensure(&self, object: &Value, owner: &Owner) -> Result<(), Halt> {
        self.context
            .applier
            .ensure(object, owner)
            .await
            .map_err(refused)?;
        Ok(())
    }

    /// Each Service's trust bundle, from the Secret of its ServingCertificate.
    pub(super) fn trust_bundles(
        &self,
        plan: &Plan,
        survey: &mut Survey,
    ) -> Result<BTreeMap<String, Vec<u8>>, Halt> {
        let mut bundles = BTreeMap::new();
        survey.certificates.clear();
        for certificate in &plan.certificates {
            survey
                .certificates
                .push(self.certificate_status(plan, &certificate.service));
            let key = kinds::SECRET.object(Some(&plan.namespace), &certificate.secret);
            let pem = self
                .context
                .index
                .find(&key)
                .and_then(|secret| STANDARD.decode(object::text(&secret, "/data/ca.crt")?).ok());
            let waiting = |message| {
                Halt::Gate(Standing::waiting(
                    Step::Installed,
                    "WaitingForCertificate",
                    message,
                ))
            };
            let Some(pem) = pem else {
                return Err(waiting(format!(
                    "{key} does not hold a certificate and its CA yet"
                )));
            };
            // What cannot be read must never become a CA bundle.
            TrustAnchors::parse(&pem).map_err(|error| waiting(format!("{key}: {}", chain(&error))))?;
            bundles.insert(certificate.service.clone(), pem);
        }
        Ok(bundles)
    }

    fn certificate_status(&self, plan: &Plan, name: &str) -> CertificateStatus {
        let key = kinds::SERVING_CERTIFICATE.object(Some(&plan.namespace), name);
        let status = self
            .context
            .index
            .find(&key)
            .and_then(|live| serde_json::from_value::<ServingCertificate>(Value::clone(&live)).ok())
            .and_then(|live| live.status)
            .unwrap_or_default();
        CertificateStatus {
            name: name.to_owned(),
            not_after: status.not_after,
            renewal_time: status.renewal_time,
        }
    }

    /// Applies the definitions as far as `stage` allows. One that is new and converts is born armed: nothing can be
    /// stored in it before its webhook answers.
    pub(super) async fn ensure_definitions(
        &self,
        owner: &Owner,
        plan: &Plan,
        trust_bundles: &BTreeMap<String, Vec<u8>>,
        stage: Stage,
        survey: &mut Survey,
    ) -> Result<(), Halt> {
        for wanted in plan.phases.of(Phase::Definitions) {
            let Some(key) = ObjectKey::of(wanted) else {
                continue;
            };
            let live = self.definition(&key, wanted).await?;
            if live.as_deref().is_some_and(|live| stops_serving(wanted, live)) {
                self.note_disarmed(owner);
            }
            let body = staged(wanted, live.as_deref(), stage);
            let conversion = plan
                .conversions
                .iter()
                .find(|conversion| conversion.crd == key.name);
            let Some(conversion) = conversion else {
                self.context.applier.ensure(&body, owner).await.map_err(refused)?;
                continue;
            };
            let mut armed = body.clone();
            let trust_bundle = trust_bundles
                .get(&conversion.service)
                .map(|pem| STANDARD.encode(pem));
            let stanza = conversion.stanza(trust_bundle.as_deref());
            armed["spec"]["conversion"] = stanza;
            self.context
                .applier
                .ensure_armed(&armed, &body, owner)
                .await
                .map_err(refused)?;
            if live.is_none() {
                survey.set_conversion(&key.name, WebhookState::Arming);
            }
        }
        Ok(())
    }

    /// The live definition; whole, and as the API server has it, where it is not as wanted: what a watch that lags shows
    /// would take a version away that is served already, and a version that the bundle dropped must be kept as it is.
    pub(super) async fn definition(
        &self,
        key: &ObjectKey,
        wanted: &Value,
    ) -> Result<Option<Arc<Value>>, RequestError> {
        let seen = self.live(key).await?;
        let is_as_wanted = seen.as_deref().is_none_or(|seen| {
            let has = |name: &Value| {
                object::items(wanted, "/spec/versions")
                    .iter()
                    .any(|version| version.get("name") == Some(name))
            };
            let drops = object::items(seen, "/spec/versions")
                .iter()
                .any(|version| !version.get("name").is_some_and(has));
            !drops && !waits_for_proof(wanted, seen) && !stops_serving(wanted, seen)
        });
        if is_as_wanted {
            return Ok(seen);
        }
        Ok(self.context.cluster.read(key).await?.map(Arc::new))
    }

    async fn gate_on_deployments(&self, owner: &Owner, plan: &Plan) -> Result<(), Halt> {
        let mut running = Vec::new();
        let mut rolling = Vec::new();
        for object in plan.phases.of(Phase::Deployments) {
            let Some(key) = ObjectKey::of(object) else {
                continue;
            };
            // A watch that lags shows the revision before, which is complete and says nothing of this one.
            let seen = self.context.index.find(&key);
            let seen = seen.filter(|live| self.context.applier.is_applied(object, live, owner));
            match seen.as_deref().map(Rollout::of) {
                Some(Rollout::Complete) => {}
                Some(Rollout::Running(message)) => {
                    running.push(message);
                    rolling.extend(seen);
                }
                Some(Rollout::Stuck(message)) => {
                    return Err(Halt::Gate(Standing::failed(
                        Step::Available,
                        "RolloutStuck",
                        message,
                    )));
                }
                None => running.push(format!("{key} has not been seen as it was applied yet")),
            }
        }
        if running.is_empty() {
            return Ok(());
        }
        let now = self.context.clock.now();
        let revisions = Revisions::observe(&self.context.cluster, &plan.namespace, &rolling, now).await?;
        running.extend(revisions.unready);
        Err(Halt::Gate(Standing::waiting(
            Step::Available,
            "RollingOut",
            running.join("; "),
        )))
    }

    /// The object as a watch sees it, else as the API server has it.
    pub(super) async fn live(&self, key: &ObjectKey) -> Result<Option<Arc<Value>>, RequestError> {
        if let Some(seen) = self.context.index.find(key) {
            return Ok(Some(seen));
        }
        match self.context.cluster.read(key).await {
            // What is not served is not there.
            Err(RequestError::UnknownKind { .. }) => Ok(None),
            read => Ok(read?.map(Arc::new)),
        }
    }
}

/// A foreign object is no error that goes away by trying again.
pub(super) fn refused(error: ApplyError) -> Halt {
    match error {
        ApplyError::Foreign { .. } => Halt::Gate(Standing::failed(
            Step::Installed,
            "ForeignObject",
            error.to_string(),
        )),
        ApplyError::Terminating { .. } => Halt::Gate(Standing::waiting(
            Step::Installed,
            "ObjectTerminating",
            error.to_string(),
        )),
        ApplyError::Request(error) if error.is_invalid() => Halt::Gate(Standing::failed(
            Step::Installed,
            "ObjectInvalid",
            error.to_string(),
        )),
        ApplyError::Request(error) if error.is_forbidden() => {
            Halt::Gate(Standing::failed(Step::Installed, "Forbidden", error.to_string()))
        }
        error => error.into(),
    }
}
