//! Kinds that cannot be listed: what no watch shows of them is not taken for gone.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::Value;
use windlass_api::BundleDeployment;
use windlass_cluster::{Kind, apply::FieldOwner, kinds};
use windlass_object::{ObjectKey, text::Listing};

use super::{deletion::keeps, halt::Halt, reconciler::BundleReconciler};
use crate::install::status::Milestone;

/// How a message lists kinds.
const KINDS: Listing = Listing {
    most: 10,
    separator: ", ",
    way_to_rest: "",
};

/// What becomes of what is not seen when it should be deleted.
pub(super) const WOULD_STAY: &str = "their objects would not be deleted";

impl BundleReconciler {
    /// Halts while one of the `needed` kinds cannot be listed; `otherwise` is the consequence of continuing.
    pub(super) fn gate_on_listed(
        &self,
        needed: &[Kind],
        otherwise: &str,
        step: Milestone,
    ) -> Result<(), Halt> {
        let mut unlisted = self.context.watches.unlisted();
        unlisted.retain(|kind| needed.contains(kind));
        gate_on_none(&unlisted, otherwise, step)
    }

    /// Returns objects of earlier revisions that are not in `kept` and whose kinds cannot be listed, by
    /// reading each by name. Halts if that fails, too.
    pub(super) async fn unlisted_rest(
        &self,
        owner: &FieldOwner,
        deployment: &BundleDeployment,
        kept: &[ObjectKey],
    ) -> Result<Vec<Arc<Value>>, Halt> {
        let mut unlisted = self.context.watches.unlisted();
        // These stay.
        unlisted.remove(&kinds::CUSTOM_RESOURCE_DEFINITION);
        if unlisted.is_empty() {
            return Ok(Vec::new());
        }
        let ledger = self.ledger(deployment).await?;
        let recorded = ledger
            .records()
            .iter()
            .flat_map(|record| record.inventory.items());
        let dropped: BTreeSet<_> = recorded
            .map(|item| &item.key)
            .filter(|key| !keeps(kept, key))
            .flat_map(|key| as_watched(key, &unlisted))
            .collect();
        let (mut found, mut unknown) = (Vec::new(), BTreeSet::new());
        for key in dropped {
            match self.live(&key).await {
                Ok(live) => found.extend(live.filter(|live| owner.owns(live))),
                Err(_) => {
                    unknown.insert(Kind::from_key(&key));
                }
            }
        }
        gate_on_none(&unknown, WOULD_STAY, Milestone::Migrated)?;
        Ok(found)
    }
}

/// An object in the versions in which it would be watched, if its kind is among these.
fn as_watched(key: &ObjectKey, kinds: &BTreeSet<Kind>) -> Vec<ObjectKey> {
    let same = kinds
        .iter()
        .map(|kind| kind.object(key.namespace.as_deref(), &key.name));
    same.filter(|other| other.is_same_object(key)).collect()
}

fn gate_on_none(unlisted: &BTreeSet<Kind>, otherwise: &str, step: Milestone) -> Result<(), Halt> {
    if unlisted.is_empty() {
        return Ok(());
    }
    let unlisted: Vec<_> = unlisted.iter().collect();
    let message = format!(
        "waiting to list these kinds, otherwise {otherwise}: {}; check why the API server cannot list them",
        KINDS.summarize(&unlisted)
    );
    Err(Halt::waiting(step, "KindUnlisted", message))
}
