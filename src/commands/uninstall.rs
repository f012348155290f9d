//! `windlass uninstall`: takes a bundle out of a cluster.

use std::{collections::BTreeSet, process::ExitCode, sync::Arc};

use anyhow::bail;
use serde_json::{Value, json};
use windlass_api::{BundleDeployment, DeletionPolicy};
use windlass_cluster::{Cluster, kinds};
use windlass_object::{ObjectKey, names, object, patch::guarded, text::OneLine};
use windlass_operator::leaving;

use super::{
    arguments,
    cluster::{ClusterArgs, OperatorArgs, explain_error},
    wait::{Judgement, WaitArgs, condition, wait_for_object},
    install::list_config_maps,
};
use crate::terminal::{Progress, ProgressFormat};

/// Removes what a BundleDeployment installed: first its webhooks, then everything else.
///
/// Keeps CustomResourceDefinitions and all their objects, unless --delete-crds is set or spec.deletionPolicy is
/// DeleteCRDs; always keeps the namespace. Refuses to begin where stored objects need a conversion that would go, unless
/// --keep-stored-version or --delete-crds is set: a deletion cannot be taken back. Refuses to begin, too, while something else in the
/// cluster calls the servers of the bundle: its requests would fail.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Name of the BundleDeployment.
    #[arg(value_parser = arguments::bundle_deployment)]
    name: String,

    /// Also delete the CustomResourceDefinitions, and with them all their objects in the whole cluster.
    #[arg(long)]
    delete_crds: bool,

    /// Rewrite all objects of CustomResourceDefinitions with a conversion webhook in the version in which they are
    /// stored, and serve only that version afterwards.
    #[arg(long, conflicts_with = "delete_crds")]
    keep_stored_version: bool,

    /// Also remove servers that something else in the cluster calls, whose requests then fail.
    #[arg(long)]
    allow_interruption: bool,

    #[command(flatten)]
    waiting: WaitArgs,

    #[command(flatten)]
    operator: OperatorArgs,

    #[command(flatten)]
    cluster: ClusterArgs,
}

// === impl Args ===

impl Args {
    /// Removes it.
    ///
    /// # Errors
    ///
    /// When there is no such BundleDeployment, or it does not go in time.
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let cluster = self.cluster.connect().await?;
        let key = kinds::BUNDLE_DEPLOYMENT.object(None, &self.name);
        let deployment = cluster.read(&key).await.map_err(explain_error)?;
        // Those that are there now: what comes later is of another install.
        let config_maps = list_config_maps(&cluster, &self.operator.operator_namespace, &self.name).await;
        let Some(deployment) = deployment else {
            let left = config_maps.unwrap_or_default();
            if left.is_empty() {
                bail!("{}", not_found_message(&cluster, &key).await?);
            }
            delete(&cluster, &left).await?;
            println!("{key} not found; removed what an interrupted install had left behind");
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
            // They have an owner and go with it.
            Err(error) => progress.done(&format!(
                "its ConfigMaps are left to the garbage collector: {error}"
            )),
        }
        let kept = kept_objects(&cluster, &self.name).await;
        progress.finish(&format!("{key} removed"), json!({ "kept": kept }));
        if kept.is_empty() || self.waiting.output == ProgressFormat::Json {
            return Ok(ExitCode::SUCCESS);
        }
        println!("Kept, with everything in them:");
        for object in kept {
            println!("  {}", OneLine(&object));
        }
        Ok(ExitCode::SUCCESS)
    }

    /// What the flags change in the BundleDeployment.
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

    /// The policy that the flags ask for.
    fn policy(&self) -> Option<DeletionPolicy> {
        if self.delete_crds {
            Some(DeletionPolicy::DeleteCRDs)
        } else {
            self.keep_stored_version
                .then_some(DeletionPolicy::KeepStoredVersion)
        }
    }

    /// Refuses a removal that could not end. A user who may not see CustomResourceDefinitions or their objects is
    /// stopped by the guard, if at all.
    async fn check(&self, cluster: &Cluster, deployment: &Value) -> anyhow::Result<()> {
        if object::is_terminating(deployment) {
            return Ok(());
        }
        let policy = self.policy().unwrap_or_else(|| leaving::policy_of(deployment));
        let selector = format!("{}={}", names::BUNDLE_DEPLOYMENT, self.name);
        let kind = kinds::CUSTOM_RESOURCE_DEFINITION;
        let crds = cluster
            .list(&kind, None, Some(&selector))
            .await
            .unwrap_or_default();
        let in_use = leaving::conversions_in_use(cluster, policy, &crds).await;
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
                "{}, which would be removed with its pods: requests would fail; nothing was removed. Delete it, point it elsewhere, or after an adoption run windlass adoption confirm {}. If it comes back, or its requests may fail, run this again with --allow-interruption",
                calls.join(", "),
                self.name
            );
        }
        Ok(())
    }

    /// Who else calls the Services of the bundle, as far as the user may see that.
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
        leaving::external_calls(
            callers,
            |caller| self.is_ours(caller),
            |service| services.contains(service),
        )
    }

    /// Whether the garbage collector deletes a caller with the bundle.
    async fn is_deleted_with_bundle(&self, cluster: &Cluster, caller: &Value) -> bool {
        for key in leaving::owner_keys(caller) {
            if let Ok(Some(owner)) = cluster.read(&key).await
                && self.is_ours(&owner)
            {
                return true;
            }
        }
        false
    }

    fn is_ours(&self, object: &Value) -> bool {
        object::label(object, names::BUNDLE_DEPLOYMENT) == Some(&self.name)
    }
}

/// Whether the BundleDeployment is gone, or what keeps it.
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
            // Its name has been taken by another.
            Err(error) if error.is_conflict() => {}
            deleted => deleted.map_err(explain_error)?,
        }
    }
    Ok(())
}

/// Says that there is no such BundleDeployment, and which ones there are.
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

/// What was released and stays. A user who may not see it is not told.
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
    fn it_is_gone_when_another_has_its_name() {
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
