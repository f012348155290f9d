//! `windlass uninstall`: removes a bundle from a cluster.

use std::{collections::BTreeSet, process::ExitCode, sync::Arc};

use anyhow::bail;
use serde_json::{Value, json};
use windlass_api::{BundleDeployment, DeletionPolicy};
use windlass_cluster::{Cluster, kinds};
use windlass_object::{ObjectKey, names, object, patch::guarded, text::OneLine};
use windlass_operator::removal_obstacles;

use super::{
    arguments,
    cluster::{ClusterArgs, OperatorArgs, explain_error},
    install::list_config_maps,
    wait::{Judgement, WaitArgs, condition, wait_for_object},
};
use crate::terminal::{Progress, ProgressFormat};

const AFTER_HELP: &str =
    "Keeps the namespace, and without --delete-crds also the CRDs with all their objects. Nothing is
removed if stored objects need a conversion that would be removed, or if other objects call the
servers of the bundle.

Examples:
  windlass uninstall widgets
  windlass uninstall widgets --delete-crds";

/// Removes an installed bundle: first its webhooks, then everything else.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    /// Name of the BundleDeployment.
    #[arg(value_parser = arguments::bundle_deployment)]
    name: String,

    /// Also delete the CRDs, and with them all their objects.
    #[arg(long)]
    delete_crds: bool,

    /// Rewrite converted objects, and serve only their stored version.
    #[arg(long, conflicts_with = "delete_crds")]
    keep_stored_version: bool,

    /// Also remove servers that other objects still call.
    #[arg(long)]
    allow_interruption: bool,

    #[command(flatten)]
    waiting: WaitArgs,

    #[command(flatten)]
    operator: OperatorArgs,

    #[command(flatten)]
    cluster: ClusterArgs,
}

impl Args {
    /// Removes the bundle.
    ///
    /// # Errors
    ///
    /// When the BundleDeployment does not exist, or is not removed in time.
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let cluster = self.cluster.connect().await?;
        let key = kinds::BUNDLE_DEPLOYMENT.object(None, &self.name);
        let deployment = cluster.read(&key).await.map_err(explain_error)?;
        // Listed before the deletion: later ones belong to another install.
        let config_maps = list_config_maps(&cluster, &self.operator.operator_namespace, &self.name).await;
        let Some(deployment) = deployment else {
            let left = config_maps.unwrap_or_default();
            if left.is_empty() {
                bail!("{}", not_found_message(&cluster, &key).await?);
            }
            delete(&cluster, &left).await?;
            println!("{key} not found; removed the objects of an interrupted install");
            return Ok(ExitCode::SUCCESS);
        };
        let uid = object::text(&deployment, "/metadata/uid").unwrap_or_default();
        self.check(&cluster, &deployment).await?;
        for (path, value) in self.changes(&deployment) {
            let patch = guarded(&[("/metadata/uid", &json!(uid))], path, &value);
            let patched = cluster.patch(&key, &patch, names::COMMAND).await;
            patched.map_err(explain_error)?;
        }
        cluster.delete(&key, Some(uid)).await.map_err(explain_error)?;
        if !self.waiting.wait {
            eprintln!("{key} is being removed");
            return Ok(ExitCode::SUCCESS);
        }
        let mut progress = Progress::new(self.waiting.output);
        let patience = self.waiting.timeout;
        let judge = |object: Option<&Value>, _| Ok(judge(object, uid));
        wait_for_object::<BundleDeployment, _>(&cluster, &key, patience, &mut progress, judge).await?;
        match config_maps {
            Ok(config_maps) => delete(&cluster, &config_maps).await?,
            // Their owner reference lets the garbage collector delete them.
            Err(error) => progress.done(&format!(
                "its ConfigMaps are left to the garbage collector: {error}"
            )),
        }
        let kept = kept_objects(&cluster, &self.name).await;
        progress.finish(&format!("{key} removed"), json!({ "kept": kept }));
        if kept.is_empty() || self.waiting.output == ProgressFormat::Json {
            return Ok(ExitCode::SUCCESS);
        }
        println!(
            "Kept from this and earlier installs of {}, with everything in them:",
            self.name
        );
        for object in kept {
            println!("  {}", OneLine(&object));
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Returns the changes of the BundleDeployment that the flags request.
    fn changes(&self, deployment: &Value) -> Vec<(&'static str, Value)> {
        let mut changes = Vec::new();
        changes.extend(
            self.policy()
                .map(|policy| ("/spec/deletionPolicy", json!(policy))),
        );
        if self.allow_interruption {
            let mut upgrade = deployment["spec"]["upgrade"].clone();
            upgrade["allowInterruption"] = true.into();
            changes.push(("/spec/upgrade", upgrade));
        }
        changes
    }

    /// Returns the requested deletion policy.
    fn policy(&self) -> Option<DeletionPolicy> {
        if self.delete_crds {
            Some(DeletionPolicy::DeleteCRDs)
        } else {
            self.keep_stored_version
                .then_some(DeletionPolicy::KeepStoredVersion)
        }
    }

    /// Rejects a removal that could not finish. If the user may not read CustomResourceDefinitions or their
    /// objects, only the guard checks this.
    async fn check(&self, cluster: &Cluster, deployment: &Value) -> anyhow::Result<()> {
        if object::is_terminating(deployment) {
            return Ok(());
        }
        let policy = self
            .policy()
            .unwrap_or_else(|| removal_obstacles::deletion_policy(deployment));
        let selector = format!("{}={}", names::BUNDLE_DEPLOYMENT, self.name);
        let kind = kinds::CUSTOM_RESOURCE_DEFINITION;
        let crds = cluster
            .list(&kind, None, Some(&selector))
            .await
            .unwrap_or_default();
        let in_use = removal_obstacles::conversions_in_use(cluster, policy, &crds).await;
        let in_use = in_use.unwrap_or_default();
        if !in_use.is_empty() {
            bail!(
                "{} serve several versions and have stored objects, which would be lost without their conversion; nothing was removed. Delete the objects, or run this again with --keep-stored-version to rewrite them and serve only the version in which they are stored, or with --delete-crds to delete them all",
                in_use.join(", ")
            );
        }
        let is_allowed =
            object::at(deployment, "/spec/upgrade/allowInterruption") == Some(&Value::Bool(true));
        if self.allow_interruption || is_allowed {
            return Ok(());
        }
        let calls = self.external_calls(cluster, deployment).await;
        if !calls.is_empty() {
            let calls: Vec<_> = calls.into_iter().collect();
            bail!(
                "{}, which would be removed with its pods, so requests would fail; nothing was removed. Delete the caller, point it to another Service, or after an adoption run windlass adoption confirm {}. If the caller cannot be changed, or its requests may fail, run this again with --allow-interruption",
                calls.join(", "),
                self.name
            );
        }
        Ok(())
    }

    /// Returns the other callers of the bundle's Services, as far as the user may read them.
    async fn external_calls(&self, cluster: &Cluster, deployment: &Value) -> BTreeSet<String> {
        let selector = format!("{}={}", names::BUNDLE_DEPLOYMENT, self.name);
        let namespace = object::text(deployment, "/spec/namespace");
        let services = cluster.list(&kinds::SERVICE, namespace, Some(&selector)).await;
        let services: Vec<_> = services
            .unwrap_or_default()
            .iter()
            .filter_map(ObjectKey::from_object)
            .collect();
        let mut callers = Vec::new();
        for kind in kinds::CALLERS {
            for caller in cluster.list(&kind, None, None).await.unwrap_or_default() {
                if !self.is_deleted_with_bundle(cluster, &caller).await {
                    callers.push(Arc::new(caller));
                }
            }
        }
        removal_obstacles::external_calls(
            callers,
            |caller| self.belongs_to_bundle(caller),
            |service| services.contains(service),
        )
    }

    /// Reports whether the garbage collector deletes a caller together with the bundle.
    async fn is_deleted_with_bundle(&self, cluster: &Cluster, caller: &Value) -> bool {
        for key in removal_obstacles::cluster_scoped_owners(caller) {
            if let Ok(Some(owner)) = cluster.read(&key).await
                && self.belongs_to_bundle(&owner)
            {
                return true;
            }
        }
        false
    }

    fn belongs_to_bundle(&self, object: &Value) -> bool {
        object::label(object, names::BUNDLE_DEPLOYMENT) == Some(&self.name)
    }
}

/// Judges the removal: `Done` if the BundleDeployment no longer exists.
fn judge(object: Option<&Value>, uid: &str) -> Judgement<()> {
    let Some(object) = object.filter(|object| object::text(object, "/metadata/uid") == Some(uid)) else {
        return Judgement::Done(());
    };
    let message = match condition(object, "Ready") {
        Some(ready) => format!("{} ({})", ready.message, ready.reason),
        None => "the operator has not reported a status yet".to_owned(),
    };
    Judgement::Wait(message.into())
}

async fn delete(cluster: &Cluster, config_maps: &[Value]) -> anyhow::Result<()> {
    for config_map in config_maps {
        let Some(key) = ObjectKey::from_object(config_map) else {
            continue;
        };
        match cluster
            .delete(&key, object::text(config_map, "/metadata/uid"))
            .await
        {
            // Another object now has the same name.
            Err(error) if error.is_conflict() => {}
            deleted => deleted.map_err(explain_error)?,
        }
    }
    Ok(())
}

/// Returns the message that the BundleDeployment does not exist, with the names of existing ones.
///
/// # Errors
///
/// When they cannot be listed.
pub(super) async fn not_found_message(cluster: &Cluster, key: &ObjectKey) -> anyhow::Result<String> {
    let listed = cluster.list(&kinds::BUNDLE_DEPLOYMENT, None, None).await;
    let names: Vec<String> = listed
        .map_err(explain_error)?
        .iter()
        .filter_map(|deployment| object::text(deployment, "/metadata/name").map(str::to_owned))
        .collect();
    Ok(if names.is_empty() {
        format!("{key} not found: no BundleDeployments exist")
    } else {
        format!("{key} not found; available: {}", names.join(", "))
    })
}

/// Returns the released objects that are kept, as far as the user may read them.
async fn kept_objects(cluster: &Cluster, name: &str) -> Vec<String> {
    let mut kept = Vec::new();
    for kind in [kinds::CUSTOM_RESOURCE_DEFINITION, kinds::NAMESPACE] {
        let objects = cluster.list(&kind, None, None).await.unwrap_or_default();
        kept.extend(
            objects
                .iter()
                .filter(|object| object::annotation(object, names::RELEASED_BY) == Some(name))
                .filter_map(|object| Some(ObjectKey::from_object(object)?.to_string())),
        );
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_with_another_uid_counts_as_deleted() {
        let object = json!({"metadata": {"uid": "old", "generation": 2}, "status": {"observedGeneration": 2,
            "conditions": [{"type": "Ready", "status": "False", "reason": "Removing", "message": "waiting"}]}});
        assert_eq!(
            judge(Some(&object), "old"),
            Judgement::Wait("waiting (Removing)".to_owned().into())
        );
        assert_eq!(judge(Some(&object), "new"), Judgement::Done(()));
        assert_eq!(judge(None, "old"), Judgement::Done(()));
    }
}
