//! What is overridden of an object, as it is recorded.

use json_patch::{Patch, PatchOperation, patch};
use policy::patch::JsonPatchOperation;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;
use windlass_object::{object, patch::test};

/// What override policies change of an object of an install.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectOverride {
    /// The `apiVersion` of the object.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace, where it is rendered with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// From the object as it is rendered to what it is to be. What is replaced or removed is tested first: a release of Windlass
    /// that renders it otherwise must not change something else.
    pub patch: Patch,
}

/// A recorded override is not for what the bundle is rendered to.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "the recorded override of {kind} {name} does not match the object that this release of Windlass renders"
)]
pub struct OutdatedOverride {
    kind: String,
    name: String,
}

impl ObjectOverride {
    /// That from `rendered` to what `operations` make of it; `None` where that cannot be said as a patch by the RFC.
    pub(super) fn new(rendered: &Value, operations: &[JsonPatchOperation]) -> Option<Self> {
        let mut object = rendered.clone();
        let mut guarded = Vec::new();
        for operation in operations {
            let operation: PatchOperation = serde_json::from_value(operation.to_json()).ok()?;
            if let PatchOperation::Replace(_) | PatchOperation::Remove(_) = &operation {
                let path = operation.path().as_str();
                guarded.push(test(path, object.pointer(path)?));
            }
            patch(&mut object, std::slice::from_ref(&operation)).ok()?;
            guarded.push(operation);
        }
        let text = |pointer| object::text(rendered, pointer).map(str::to_owned);
        Some(Self {
            api_version: text("/apiVersion")?,
            kind: text("/kind")?,
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name")?,
            patch: Patch(guarded),
        })
    }

    /// Whether it is for an object.
    fn is_for(&self, object: &Value) -> bool {
        let text = |pointer| object::text(object, pointer);
        text("/apiVersion") == Some(&self.api_version)
            && text("/kind") == Some(&self.kind)
            && text("/metadata/namespace") == self.namespace.as_deref()
            && text("/metadata/name") == Some(&self.name)
    }
}

/// Overrides rendered objects.
///
/// # Errors
///
/// When an override is for an object that is not there, or is there another way.
pub fn apply(objects: &mut [Value], overrides: &[ObjectOverride]) -> Result<(), OutdatedOverride> {
    for recorded in overrides {
        let outdated = || OutdatedOverride {
            kind: recorded.kind.clone(),
            name: recorded.name.clone(),
        };
        let object = objects.iter_mut().find(|object| recorded.is_for(object));
        patch(object.ok_or_else(outdated)?, &recorded.patch.0).map_err(|_| outdated())?;
    }
    Ok(())
}
