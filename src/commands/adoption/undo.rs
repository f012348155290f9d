//! `windlass adoption undo`: returns everything to its previous owner.

use std::{process::ExitCode, time::Duration};

use anyhow::bail;
use serde_json::{Value, json};
use windlass_adoption::{
    AdoptionRecord, AdoptionSource, CA_INJECTORS, RecordedObject, restored_object, trusted_pem,
    unknown_stored_versions, with_bundle_mark, with_trusted_pem,
};
use windlass_bundle::Phase;
use windlass_cluster::{Cluster, RequestError, kinds};
use windlass_object::{GoDuration, ObjectKey, json, names, object, patch::relabelled};

use super::{
    super::object_changes::{change, create, delete, wait_for_propagation, wait_until, with_key},
    ca, olm, records,
    remaining_callers::{force_reconnect, new_marker},
    servers,
    takeover::hide,
};
use crate::{
    commands::{
        arguments,
        cluster::{ClusterArgs, OperatorArgs, explain_error},
    },
    terminal::{Progress, ProgressFormat},
};

const AFTER_HELP: &str =
    "Pauses the BundleDeployment, points webhooks to the previous servers, restores all other objects,
and deletes the objects that only the bundle has.";

/// Returns everything to its previous owner without a failed request, and removes the BundleDeployment.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    /// Name of the BundleDeployment.
    #[arg(value_parser = arguments::bundle_deployment)]
    name: String,

    /// Maximum time to wait for each step.
    #[arg(long, default_value = "5m", value_name = "DURATION")]
    timeout: GoDuration,

    #[command(flatten)]
    operator: OperatorArgs,

    #[command(flatten)]
    cluster: ClusterArgs,
}

/// An adoption that is being undone.
struct AdoptionUndo<'a> {
    cluster: &'a Cluster,
    record: &'a AdoptionRecord,
    patience: Duration,
    progress: Progress,
}

/// How often a change is tried that conflicts with another client's change.
const TRIES: usize = 5;

impl Args {
    /// Undoes the adoption.
    ///
    /// # Errors
    ///
    /// When an object cannot be restored; the next run resumes there.
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let cluster = self.cluster.connect().await?;
        let namespace = &self.operator.operator_namespace;
        let record = records::require(&cluster, namespace, &self.name).await?;
        let is_olms = matches!(record.source, AdoptionSource::Olm(_));
        if is_olms && !olm::is_untouched(&cluster, &record).await? {
            bail!(
                "an operator detached from OLM cannot be returned to it. To let OLM install it again, run windlass adoption confirm, \
             delete the BundleDeployment, then apply the Subscription or the ClusterServiceVersion"
            );
        }
        let mut undo = AdoptionUndo {
            cluster: &cluster,
            record: &record,
            patience: self.timeout.0.unsigned_abs(),
            progress: Progress::new(ProgressFormat::Text),
        };
        if is_olms {
            undo.remove_copies().await?;
        } else {
            undo.run().await?;
        }
        records::delete(&cluster, namespace, &self.name).await?;
        drop(undo.progress);
        println!("{} is managed by {} again", record.source, record.source.owner());
        Ok(ExitCode::SUCCESS)
    }
}

impl AdoptionUndo<'_> {
    async fn run(&mut self) -> anyhow::Result<()> {
        self.pause().await?;
        servers::ensure_copies(self.cluster, self.record, &mut self.progress, self.patience).await?;
        self.serve_from_copies().await?;
        self.arm_callers(true).await?;
        self.disarm().await?;
        wait_for_propagation(&mut self.progress, "that webhooks call the old servers").await;
        self.restore().await?;
        self.serve_from_restored().await?;
        self.arm_callers(true).await?;
        force_reconnect(self.cluster, self.record, true).await?;
        wait_for_propagation(&mut self.progress, "that webhooks call the restored servers").await;
        self.remove().await?;
        self.remove_copies().await?;
        for service in self.record.narrowed_services() {
            self.restore_object(service).await?;
        }
        // Deleted only now: until here, API servers may have connections to the copies that use the previous
        // CA bundles.
        self.arm_callers(false).await?;
        force_reconnect(self.cluster, self.record, false).await?;
        if let AdoptionSource::Helm(_) = self.record.source {
            hide(self.cluster, self.record, false).await?;
        }
        Ok(())
    }

    async fn remove_copies(&mut self) -> anyhow::Result<()> {
        servers::remove_copies(self.cluster, self.record, &mut self.progress, self.patience).await
    }

    /// Pauses the BundleDeployment, so that the operator stops writing and its guard admits changes to
    /// adopted objects.
    async fn pause(&mut self) -> anyhow::Result<()> {
        let key = self.bundle_deployment();
        let annotations = json!({
            names::PAUSED: "windlass adoption undo",
            names::RETURN_TO_OWNER: self.record.source.to_string(),
        });
        for tries in 0.. {
            let Some(live) = self.cluster.read(&key).await.map_err(explain_error)? else {
                return Ok(());
            };
            if object::is_terminating(&live) {
                return Ok(());
            }
            let patch = relabelled(&live, &json!({}), &annotations);
            match self.cluster.patch(&key, &patch, names::COMMAND).await {
                Err(error) if tries < TRIES && (error.is_invalid() || error.is_conflict()) => {}
                written => {
                    written.map_err(explain_error)?;
                    break;
                }
            }
        }
        let cluster = self.cluster;
        wait_until(&mut self.progress, self.patience, async || {
            let live = cluster.read(&key).await.map_err(explain_error)?;
            let is_paused = live.is_none_or(|live| {
                let paused = object::condition(&live, "Paused");
                paused.is_some_and(|paused| object::text(paused, "/status") == Some("True"))
            });
            Ok((!is_paused).then(|| format!("the operator to pause {key}")))
        })
        .await
    }

    /// Points the previous Services to the copies. Callers of a Service that the bundle took over must trust
    /// both CAs until then.
    async fn serve_from_copies(&mut self) -> anyhow::Result<()> {
        for service in self.record.narrowed_services() {
            if service.is_adopted() {
                self.trust_both().await?;
            }
            let label = (names::KEPT_FOR, self.record.bundle_deployment.as_str());
            let as_before = |live: &Value| restored_object(live, &service.object);
            servers::restrict_service(
                self.cluster,
                service,
                label,
                as_before,
                &mut self.progress,
                self.patience,
            )
            .await?;
        }
        Ok(())
    }

    async fn trust_both(&mut self) -> anyhow::Result<()> {
        for caller in adopted_callers(self.record) {
            let Some(key) = caller.key() else { continue };
            let theirs = self.trusted_certificates(caller).await?;
            let change_of = |live: &Value| {
                if object::label(live, names::BUNDLE_DEPLOYMENT).is_none() {
                    return live.clone();
                }
                let mut trusting = with_trusted_pem(live, &theirs);
                json::fields(&mut trusting, &["metadata", "annotations"]).shift_remove(names::INJECT_CA_FROM);
                trusting
            };
            change(self.cluster, &key, change_of)
                .await
                .map_err(|error| with_key(&key, error))?;
        }
        wait_for_propagation(&mut self.progress, "that webhooks trust both servers").await;
        Ok(())
    }

    /// Returns the CAs in PEM that a caller trusted before, and those that it must trust since then.
    async fn trusted_certificates(&self, caller: &RecordedObject) -> anyhow::Result<String> {
        let mut pem = trusted_pem(&caller.object);
        pem.push('\n');
        pem.push_str(&ca::requested_certificates(self.cluster, &caller.object).await?);
        Ok(pem)
    }

    /// Points the adopted callers to the previous Services, with their CA bundles. With `is_marked`, the
    /// server behind a Service has changed, so API servers must open new connections, and CA injectors must
    /// not write in between.
    async fn arm_callers(&mut self, is_marked: bool) -> anyhow::Result<()> {
        let mark = new_marker();
        for caller in adopted_callers(self.record) {
            let Some(key) = caller.key() else { continue };
            let theirs = self.trusted_certificates(caller).await?;
            let change_of = |live: &Value| {
                let called = with_trusted_pem(&restored_object(live, &caller.object), &theirs);
                if !is_marked {
                    return called;
                }
                let mut called = with_bundle_mark(&called, Some(&mark));
                if let Some(Value::Object(annotations)) = called.pointer_mut("/metadata/annotations") {
                    annotations.retain(|name, _| !CA_INJECTORS.contains(&name.as_str()));
                }
                called
            };
            let written = change(self.cluster, &key, change_of)
                .await
                .map_err(|error| with_key(&key, error))?;
            match written {
                Some(live) => {
                    let versions = unknown_stored_versions(&live, &caller.object);
                    if !is_marked && !versions.is_empty() {
                        self.progress.done(&format!(
                            "{key} keeps its present versions: objects are stored in {}",
                            versions.join(", ")
                        ));
                    }
                }
                None => create(self.cluster, &caller.object).await?,
            }
        }
        Ok(())
    }

    /// Removes the callers that only the bundle has: their servers are about to go, and the previous callers
    /// replace them.
    async fn disarm(&mut self) -> anyhow::Result<()> {
        let selector = format!("{}={}", names::BUNDLE_DEPLOYMENT, self.record.bundle_deployment);
        for kind in [
            kinds::VALIDATING_WEBHOOK_CONFIGURATION,
            kinds::MUTATING_WEBHOOK_CONFIGURATION,
            kinds::API_SERVICE,
            kinds::EXTENSION_CONFIG,
        ] {
            let listed = match self.cluster.list(&kind, None, Some(&selector)).await {
                Err(RequestError::UnknownKind { .. }) => continue,
                listed => listed.map_err(explain_error)?,
            };
            for caller in listed {
                if let Some(key) = ObjectKey::from_object(&caller) {
                    delete(self.cluster, &key, object::text(&caller, "/metadata/uid")).await?;
                }
            }
        }
        Ok(())
    }

    /// Restores all other adopted objects: those that pods need first.
    async fn restore(&mut self) -> anyhow::Result<()> {
        let narrowed: Vec<_> = self
            .record
            .narrowed_services()
            .filter_map(RecordedObject::key)
            .collect();
        let callers: Vec<_> = self.record.callers().filter_map(RecordedObject::key).collect();
        let mut adopted: Vec<_> = self
            .record
            .objects
            .iter()
            .filter(|recorded| recorded.is_adopted())
            .filter(|recorded| {
                recorded
                    .key()
                    .is_some_and(|key| !narrowed.contains(&key) && !callers.contains(&key))
            })
            .collect();
        adopted.sort_by_key(|recorded| Phase::for_kind(recorded.kind()));
        for recorded in adopted {
            self.restore_object(recorded).await?;
            if let Some(key) = recorded.key().filter(|_| recorded.kind() == "Deployment") {
                servers::wait_for_available(self.cluster, &key, &mut self.progress, self.patience).await?;
            }
        }
        Ok(())
    }

    async fn restore_object(&self, recorded: &RecordedObject) -> anyhow::Result<()> {
        let Some(key) = recorded.key() else { return Ok(()) };
        match change(self.cluster, &key, |live| restored_object(live, &recorded.object)).await {
            Ok(None) => create(self.cluster, &recorded.object).await,
            // The bundle changed an immutable field.
            Err(error) if error.is_invalid() => {
                delete(self.cluster, &key, None).await?;
                create(self.cluster, &recorded.object).await
            }
            changed => changed.map(drop).map_err(|error| with_key(&key, error)),
        }
    }

    /// Points the previous Services to the restored Deployments instead of the copies.
    async fn serve_from_restored(&mut self) -> anyhow::Result<()> {
        for service in self.record.narrowed_services() {
            let Some((label, value)) = servers::newest_pods_label(self.cluster, self.record, service).await?
            else {
                continue;
            };
            let as_before = |live: &Value| restored_object(live, &service.object);
            servers::restrict_service(
                self.cluster,
                service,
                (label, &value),
                as_before,
                &mut self.progress,
                self.patience,
            )
            .await?;
        }
        Ok(())
    }

    /// Deletes the BundleDeployment, with the objects that only the bundle has. It no longer owns an adopted
    /// object.
    async fn remove(&mut self) -> anyhow::Result<()> {
        let key = self.bundle_deployment();
        let Some(live) = self.cluster.read(&key).await.map_err(explain_error)? else {
            return Ok(());
        };
        let uid = object::text(&live, "/metadata/uid");
        self.cluster.delete(&key, uid).await.map_err(explain_error)?;
        for _ in 0..TRIES {
            let Some(live) = self.cluster.read(&key).await.map_err(explain_error)? else {
                break;
            };
            let patch = relabelled(&live, &json!({}), &json!({ names::PAUSED: null }));
            match self.cluster.patch(&key, &patch, names::COMMAND).await {
                Err(error) if error.is_invalid() || error.is_conflict() => {}
                Err(error) if error.is_not_found() => break,
                written => {
                    written.map_err(explain_error)?;
                    break;
                }
            }
        }
        let cluster = self.cluster;
        wait_until(&mut self.progress, self.patience, async || {
            let live: Result<Option<Value>, RequestError> = cluster.read(&key).await;
            Ok(live
                .map_err(explain_error)?
                .map(|_| format!("{key} to be removed")))
        })
        .await
    }

    fn bundle_deployment(&self) -> ObjectKey {
        kinds::BUNDLE_DEPLOYMENT.object(None, &self.record.bundle_deployment)
    }
}

fn adopted_callers(record: &AdoptionRecord) -> impl Iterator<Item = &RecordedObject> {
    record.callers().filter(|caller| caller.is_adopted())
}
