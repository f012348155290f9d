//! CRDs that stay when their BundleDeployment, or its bundle, leaves them: their conversion ends without losing anything.

use json_patch::Patch;
use serde_json::{Value, json};
use tracing::info;
use windlass_api::{BundleDeployment, DeletionPolicy};
use windlass_cluster::{apply::FieldOwner, kinds};
use windlass_crd::{crd_release::changes_to_serve_stored_only, is_converting};
use windlass_object::{
    ObjectKey, names, object,
    patch::{put, test},
    text::Listing,
};

use super::{
    disarming::conversion_in_use, halt::Halt, reconciler::BundleReconciler, report::InstallReport,
    triggers::OWNED_KINDS, unlisted::WOULD_STAY,
};
use crate::{
    install::status::Milestone,
    removal_obstacles::{can_remove_conversion, conversions_in_use, has_objects},
};

/// How a message lists names.
const NAMES: Listing = Listing {
    most: 10,
    separator: ", ",
    way_to_rest: "",
};

impl BundleReconciler {
    /// Halts a removal that could not finish, before it deletes or disarms anything: a kind cannot be listed,
    /// or stored objects need a conversion.
    pub(super) async fn gate_on_leaving(
        &self,
        owner: &FieldOwner,
        deployment: &BundleDeployment,
        report: &mut InstallReport,
    ) -> Result<(), Halt> {
        self.gate_on_listed(&OWNED_KINDS, WOULD_STAY, Milestone::Migrated)?;
        let policy = deployment.spec.deletion_policy;
        let crds = self.list_owned(owner, &kinds::CUSTOM_RESOURCE_DEFINITION).await?;
        let in_use = conversions_in_use(&self.context.cluster, policy, &crds).await?;
        if !in_use.is_empty() {
            let message = format!(
                "{} serve several versions and have stored objects, which would be lost without their conversion; nothing is removed yet. Set spec.deletionPolicy: KeepStoredVersion to rewrite the objects and serve only the version in which they are stored; or DeleteCRDs to delete the CustomResourceDefinitions with all their objects; or delete the objects. The removal then resumes automatically",
                NAMES.summarize(&in_use)
            );
            return Err(Halt::failed(Milestone::Migrated, "ConversionInUse", message));
        }
        if policy == DeletionPolicy::KeepStoredVersion {
            self.store_in_one_version(owner, &crds, report).await?;
        }
        Ok(())
    }

    /// Rewrites the objects of CRDs that may be stored in several versions, while their conversion is there.
    async fn store_in_one_version(
        &self,
        owner: &FieldOwner,
        crds: &[Value],
        report: &mut InstallReport,
    ) -> Result<(), Halt> {
        for live in crds.iter().filter(|live| is_converting(live)) {
            let Some(key) = ObjectKey::from_object(live) else {
                continue;
            };
            let has_objects = has_objects(&self.context.cluster, live).await?;
            if !can_remove_conversion(live, DeletionPolicy::KeepStoredVersion, has_objects) {
                self.migrate(owner, &key, None, report).await?;
            }
        }
        Ok(())
    }

    /// Ends the conversion of every CRD.
    pub(super) async fn leave_crds(
        &self,
        owner: &FieldOwner,
        deployment: &BundleDeployment,
    ) -> Result<(), Halt> {
        let policy = deployment.spec.deletion_policy;
        let crds = self.list_owned(owner, &kinds::CUSTOM_RESOURCE_DEFINITION).await?;
        if crds.iter().any(is_converting) {
            self.gate_on_disarmed(owner, Milestone::Armed)?;
        }
        for live in crds {
            self.leave_crd(&live, policy, Milestone::Armed).await?;
        }
        Ok(())
    }

    /// Takes the conversion of a CRD that stays back to None, if that loses nothing. In the same write only the version
    /// stays served in which objects are stored: whoever created an object in another one would lose fields of it,
    /// now or later. Reports whether the conversion ended only now.
    pub(super) async fn leave_crd(
        &self,
        live: &Value,
        policy: DeletionPolicy,
        step: Milestone,
    ) -> Result<bool, Halt> {
        let Some(key) = ObjectKey::from_object(live) else {
            return Ok(false);
        };
        let applier = &self.context.applier;
        if !is_converting(live) {
            // A crash may have left the entry of an earlier change.
            return Ok(applier.release(&key, live, names::CONVERSION).await?);
        }
        let has_objects = has_objects(&self.context.cluster, live).await?;
        if !can_remove_conversion(live, policy, has_objects) {
            return Err(conversion_in_use(&key.name, step));
        }
        let patch = ending(live, has_objects);
        let patched = self
            .context
            .cluster
            .patch(&key, &patch, names::CONVERSION)
            .await?;
        info!(object = %key, "Removed the conversion; serving only the version in which objects are stored");
        applier.release(&key, &patched, names::CONVERSION).await?;
        Ok(true)
    }
}

/// The patch that ends the conversion of a CRD if it still is as it was seen, and leaves one version served.
fn ending(live: &Value, has_objects: bool) -> Patch {
    let mut operations = vec![
        test("/metadata/uid", &live["metadata"]["uid"]),
        test("/spec/conversion", &live["spec"]["conversion"]),
    ];
    for (index, version) in object::items(live, "/spec/versions").iter().enumerate() {
        for field in ["name", "storage"] {
            operations.push(test(&format!("/spec/versions/{index}/{field}"), &version[field]));
        }
    }
    if has_objects {
        // Objects may have come to be stored in another version meanwhile.
        operations.push(test("/status/storedVersions", &live["status"]["storedVersions"]));
    }
    for (index, _, served) in changes_to_serve_stored_only(live) {
        operations.push(put(&format!("/spec/versions/{index}/served"), json!(served)));
    }
    operations.push(put("/spec/conversion", json!({"strategy": "None"})));
    Patch(operations)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crd(conversion: Value) -> Value {
        json!({
            "metadata": {"name": "widgets.example.com", "uid": "u"},
            "spec": {"conversion": conversion, "versions": [
                {"name": "v1", "served": true, "storage": true}, {"name": "v2", "served": true, "storage": false},
            ]},
            "status": {"storedVersions": ["v1"]},
        })
    }

    #[test]
    fn one_write_ends_the_conversion_and_leaves_one_version_served() {
        let live = crd(json!({"strategy": "Webhook"}));
        let mut after = live.clone();
        json_patch::patch(&mut after, &ending(&live, true)).unwrap();
        let served: Vec<_> = object::items(&after, "/spec/versions")
            .iter()
            .map(|version| version["served"].clone())
            .collect();
        assert_eq!(served, [true, false]);
        assert_eq!(after["spec"]["conversion"], json!({"strategy": "None"}));
    }

    #[test]
    fn what_changed_meanwhile_is_not_overwritten() {
        let live = crd(json!({"strategy": "Webhook"}));
        let mut restored = live.clone();
        restored["spec"]["conversion"]["webhook"] = json!({});
        let mut stored = live.clone();
        stored["status"]["storedVersions"] = json!(["v1", "v2"]);
        let mut moved = live.clone();
        moved["spec"]["versions"][1]["storage"] = json!(true);
        let mut other = live.clone();
        other["metadata"]["uid"] = json!("w");
        for mut changed in [restored, stored, moved, other] {
            assert!(
                json_patch::patch(&mut changed, &ending(&live, true)).is_err(),
                "{changed}"
            );
        }
    }
}
