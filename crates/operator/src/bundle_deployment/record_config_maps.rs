//! The ConfigMaps with records and with bundles, in the operator's namespace. Somebody else's of the same name stays as it is.

use serde_json::Value;
use tracing::info;
use windlass_api::BundleDeployment;
use windlass_cluster::{RequestError, kinds};
use windlass_object::{ObjectKey, names, object};

use super::{halt::Halt, reconciler::BundleReconciler};
use crate::install::{revision::record_name, status::Milestone};

impl BundleReconciler {
    /// Writes a ConfigMap of the BundleDeployment with this uid, unless it is somebody else's.
    pub(super) async fn write_config_map(&self, desired: &Value, uid: &str) -> Result<(), Halt> {
        let key = ObjectKey::from_object(desired).ok_or(RequestError::Nameless)?;
        let cluster = &self.context.cluster;
        // The watches show those with our labels only.
        let written = match cluster.read(&key).await? {
            None => cluster.create_by_apply(desired, names::INSTALL).await,
            Some(live) if is_ours(&live, desired, uid) => {
                let mut changed = desired.clone();
                changed["metadata"]["uid"] = live["metadata"]["uid"].clone();
                cluster.apply(&changed, names::INSTALL, true).await
            }
            Some(_) => {
                let message = format!(
                    "{key} exists and was not created by Windlass: rename or delete it; Windlass records revisions under that name"
                );
                return Err(refused(message));
            }
        };
        match written {
            Ok(_) => Ok(()),
            Err(error) if error.is_invalid() => {
                Err(refused(format!("{error}: delete the ConfigMap to recreate it")))
            }
            Err(error) if error.is_forbidden() => Err(refused(error.to_string())),
            Err(error) => Err(error.into()),
        }
    }

    /// Deletes the record of a revision that nobody needs, if it still is the one that was seen.
    pub(super) async fn delete_record(
        &self,
        deployment: &BundleDeployment,
        revision: i64,
    ) -> Result<(), Halt> {
        let (name, uid) = identity(deployment);
        let key = kinds::CONFIG_MAP.object(Some(&self.context.namespace), &record_name(name, revision));
        let Some(live) = self.live(&key).await?.filter(|live| is_owned(live, uid)) else {
            return Ok(());
        };
        let seen = object::text(&live, "/metadata/uid");
        self.context.cluster.delete(&key, seen).await?;
        self.ledgers.forget(name);
        info!(
            bundle_deployment = name,
            revision, "Deleted the record of an old revision"
        );
        Ok(())
    }
}

/// The name and the uid of a BundleDeployment.
pub(super) fn identity(deployment: &BundleDeployment) -> (&str, &str) {
    let metadata = &deployment.metadata;
    (
        metadata.name.as_deref().unwrap_or_default(),
        metadata.uid.as_deref().unwrap_or_default(),
    )
}

/// Whether a ConfigMap goes with the BundleDeployment of this uid.
pub(super) fn is_owned(config_map: &Value, uid: &str) -> bool {
    object::items(config_map, "/metadata/ownerReferences")
        .iter()
        .any(|owner| object::text(owner, "/uid") == Some(uid))
}

/// Whether `live` is what was written as `desired` for the BundleDeployment of this uid, or for one before it of the same name.
/// What `windlass install` has stored has our label before it has an owner.
fn is_ours(live: &Value, desired: &Value, uid: &str) -> bool {
    let is_labelled = [names::REVISION_OF, names::BUNDLE_SOURCE].iter().any(|label| {
        let of = object::label(desired, label);
        of.is_some() && object::label(live, label) == of
    });
    is_labelled || is_owned(live, uid)
}

fn refused(message: String) -> Halt {
    Halt::failed(Milestone::Accepted, "RecordRefused", message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::install::revision::owner_reference;

    #[test]
    fn what_neither_goes_with_the_deployment_nor_is_labelled_is_of_somebody_else() {
        let desired = json!({"metadata": {"labels": {names::REVISION_OF: "a"}}});
        let owned = |uid: &str| json!([owner_reference("a", uid)]);
        for (metadata, expected) in [
            (json!({}), false),
            (
                json!({"labels": {"app": "x"}, "ownerReferences": owned("2")}),
                false,
            ),
            (json!({"labels": {names::REVISION_OF: "b"}}), false),
            (json!({"labels": {names::BUNDLE_SOURCE: "a"}}), false),
            (json!({"labels": {names::REVISION_OF: "a"}}), true),
            // Left behind by one of the same name.
            (
                json!({"labels": {names::REVISION_OF: "a"}, "ownerReferences": owned("2")}),
                true,
            ),
            (json!({"ownerReferences": owned("1")}), true),
        ] {
            let live = json!({ "metadata": metadata });
            assert_eq!(is_ours(&live, &desired, "1"), expected, "{live}");
        }
    }
}
