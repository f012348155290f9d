//! Objects of a bundle as override policies have them.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;
use tokio::task::spawn_blocking;
use windlass_api::BundleDeployment;
use windlass_bundle::{Files, check, render, sources};
use windlass_object::object;

use super::{
    halt::Halt,
    loading::PROBLEMS,
    memory::{DecisionOutcome, Loaded, OverrideInputs},
    reconciler::BundleReconciler,
    report::InstallReport,
};
use crate::{
    install::{
        overrides::{OverrideDecision, decide, namespace_as_seen},
        plan::Plan,
        status::Milestone,
    },
    namespaces::namespace,
    policies::POLICY_KINDS,
};

/// What is said where the evaluator itself fails.
const EVALUATOR: &str = "the evaluation of a policy failed; report this as a bug of Windlass";

impl BundleReconciler {
    /// Applies the current override policies to the loaded bundle. If the policies cannot be listed, or one
    /// of them fails and must not, halts, so that the installed revision stays as recorded.
    pub(super) async fn overridden(
        &self,
        deployment: &BundleDeployment,
        loaded: Arc<Loaded>,
        report: &mut InstallReport,
    ) -> Result<Arc<Loaded>, Halt> {
        let decided = self.decided(deployment, &loaded).await;
        let decision = match decided {
            Ok(decision) => decision,
            Err(halt @ Halt::Gate(_)) => {
                let next = report.next.get_or_insert_default();
                next.digest.get_or_insert_with(|| loaded.bundle.digest.clone());
                return Err(halt);
            }
            Err(halt) => return Err(halt),
        };
        report.notices.extend(decision.notices.iter().cloned());
        if loaded.settings.overrides == decision.overrides {
            return Ok(loaded);
        }
        let name = deployment.metadata.name.as_deref().unwrap_or_default();
        let settings = loaded.settings.overridden(decision.overrides.clone());
        let digest = &loaded.bundle.digest;
        let outcome = match self.loader.find(name, digest, &settings) {
            Some(outcome) => outcome,
            None => {
                let files = unpacked(loaded.clone()).await?;
                self.planned(name, files, digest.clone(), settings).await?
            }
        };
        outcome.map_err(|(reason, message)| Halt::failed(Milestone::Accepted, reason, message))
    }

    async fn decided(
        &self,
        deployment: &BundleDeployment,
        loaded: &Arc<Loaded>,
    ) -> Result<Arc<OverrideDecision>, Halt> {
        let mut unlisted = self.context.watches.unlisted();
        unlisted.retain(|kind| POLICY_KINDS.contains(kind));
        if !unlisted.is_empty() {
            let unlisted: Vec<_> = unlisted.iter().map(|kind| &*kind.kind).collect();
            let message = format!(
                "waiting to list {}, which may override objects of the bundle: check that the operator is allowed to list and watch them",
                unlisted.join(", ")
            );
            return Err(Halt::waiting(Milestone::Accepted, "PoliciesUnknown", message));
        }
        let policies = self.context.policies.synced().await?;
        if !policies.has_overrides() {
            return Ok(Arc::default());
        }
        let inputs = OverrideInputs {
            digest: loaded.bundle.digest.clone(),
            settings: loaded.settings.overridden(Vec::new()),
            namespaces: self.namespaces_of(&loaded.plan).await?,
            policies,
        };
        let name = deployment.metadata.name.as_deref().unwrap_or_default();
        let outcome = match self.decisions.find(name, &inputs) {
            Some(outcome) => outcome,
            None => {
                let files = unpacked(loaded.clone()).await?;
                let asked = inputs.clone();
                let outcome = match spawn_blocking(move || decision(&files, &asked)).await {
                    Ok(outcome) => outcome,
                    // What is installed is not to suffer from it.
                    Err(failed) if failed.is_panic() => Err(("PolicyFailed", EVALUATOR.to_owned())),
                    Err(stopped) => return Err(stopped.into()),
                };
                self.decisions.keep(name, inputs, outcome.clone());
                outcome
            }
        };
        outcome.map_err(|(reason, message)| Halt::failed(Milestone::Accepted, reason, message))
    }

    /// The Namespaces that objects of a plan are in, by name.
    async fn namespaces_of(&self, plan: &Plan) -> Result<BTreeMap<String, Value>, Halt> {
        let mut namespaces = BTreeMap::new();
        for object in plan.phases.all() {
            let Some(name) = object::text(object, "/metadata/namespace") else {
                continue;
            };
            if namespaces.contains_key(name) {
                continue;
            }
            let live = namespace(&self.context.index, &self.context.cluster, name).await?;
            namespaces.insert(name.to_owned(), namespace_as_seen(name, live.as_deref()));
        }
        Ok(namespaces)
    }
}

/// The files of what was loaded.
async fn unpacked(loaded: Arc<Loaded>) -> Result<Files, Halt> {
    let unpacking = spawn_blocking(move || {
        let parts = loaded.stored.config_maps("", "");
        let archive = sources::config_maps::assemble(&parts).map_err(|error| error.to_string())?;
        sources::archive::load(archive.as_slice(), "the bundle")
            .map_err(|error| format!("{}: {error}", error.file()))
    });
    let files = unpacking.await?;
    files.map_err(|problem| Halt::failed(Milestone::Accepted, "SourceInvalid", problem))
}

/// What policies make of the objects that a bundle is rendered to.
fn decision(files: &Files, inputs: &OverrideInputs) -> DecisionOutcome {
    let OverrideInputs {
        settings,
        policies,
        namespaces,
        ..
    } = inputs;
    let bundle = check::parse_for(files, settings.tolerance())
        .map_err(|problems| ("BundleInvalid", PROBLEMS.summarize(&problems)))?;
    let options = settings
        .options()
        .map_err(|problems| ("ConfigInvalid", PROBLEMS.summarize(&problems)))?;
    let rendered = render::render(&bundle, &options)
        .map_err(|errors| ("InstallUnsupported", PROBLEMS.summarize(&errors)))?;
    decide(&rendered, &policies.set, namespaces)
        .map(Arc::new)
        .map_err(|refusals| {
            let message = format!(
                "{}. The install resumes automatically once the policy is corrected, excludes these objects, or has failurePolicy: Ignore",
                PROBLEMS.summarize(&refusals)
            );
            ("PolicyFailed", message)
        })
}
