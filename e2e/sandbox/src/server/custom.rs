//! Custom resources: serving them by their CRD and converting them between its versions.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{api_server::ApiServer, kinds::ServedResource, metadata::now};
use crate::{
    StatusError, admission, builtin, conversion,
    crd::Definition,
    schema::TypeSchema,
    storage::{Collection, StorageKey, version},
};

/// The finalizer of CRDs: their objects are deleted first.
pub(super) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// How long after a change of a CRD a failed conversion of a list is reported as initializing, as on the real
/// server.
const INITIALISING: Duration = Duration::from_secs(5);

/// Converts objects for admission webhooks.
pub(super) struct AdmissionConverter<'a> {
    pub(super) server: &'a ApiServer,
    pub(super) served: &'a ServedResource,
}

impl admission::Convert for AdmissionConverter<'_> {
    async fn convert(&self, object: &Value, api_version: &str) -> Result<Value, StatusError> {
        self.server
            .convert_to(self.served, object.clone(), api_version)
            .await
    }
}

impl ApiServer {
    /// Converts an object to another version of its resource.
    pub(super) async fn convert_to(
        &self,
        served: &ServedResource,
        object: Value,
        api_version: &str,
    ) -> Result<Value, StatusError> {
        if object["apiVersion"] == api_version {
            return Ok(object);
        }
        let Some(definition) = &served.definition else {
            // Built-in kinds have one version each; only events are served in two groups.
            return Ok(builtin::event_in(object, api_version));
        };
        let kind = &definition.names.kind;
        let converted = conversion::convert(
            &self.0.webhooks,
            &definition.conversion,
            kind,
            vec![object],
            api_version,
        )
        .await?;
        let mut converted = converted.into_iter().next().unwrap_or_default();
        let version = api_version.rsplit('/').next().unwrap_or_default();
        if let Some(version) = definition.version(version) {
            version.schema.prune(&mut converted);
            version.schema.default(&mut converted);
        }
        Ok(converted)
    }

    /// Returns a stored object in the version of `served`.
    pub(super) async fn served_object(
        &self,
        served: &ServedResource,
        stored: &Value,
    ) -> Result<Value, StatusError> {
        let mut object = self
            .convert_to(served, stored.clone(), &served.api_version())
            .await?;
        if let Some(definition) = &served.definition
            && let Some(version) = definition.version(&served.version)
        {
            version.schema.prune(&mut object);
            version.schema.default(&mut object);
        }
        Ok(object)
    }

    /// Returns [`ApiServer::served_object`] for lists and watches, or 429 while the storage of a changed CRD
    /// is rebuilt.
    pub(super) async fn listed_object(
        &self,
        served: &ServedResource,
        stored: &Value,
    ) -> Result<Value, StatusError> {
        let presented = self.served_object(served, stored).await;
        let recent = self
            .changed_at(served)
            .is_some_and(|at| at.elapsed() < INITIALISING);
        presented.map_err(|error| {
            if recent {
                reinitializing(served, &error.message)
            } else {
                error
            }
        })
    }

    /// Returns an error while the storage of a changed CRD is rebuilt. Only lists and watches of converted
    /// versions check this.
    pub(super) fn check_initialised(&self, served: &ServedResource) -> Result<(), StatusError> {
        if served.storage_api_version() == served.api_version() {
            return Ok(());
        }
        match self.changed_at(served) {
            Some(at) if at.elapsed() < self.0.reinitializing => {
                Err(reinitializing(served, "the storage is being rebuilt"))
            }
            _ => Ok(()),
        }
    }

    fn changed_at(&self, served: &ServedResource) -> Option<Instant> {
        self.0.kinds.changed_at(&served.group, &served.resource)
    }

    /// Returns how lists and maps of a resource merge.
    pub(super) fn types(served: &ServedResource) -> TypeSchema {
        let version = served
            .definition
            .as_ref()
            .and_then(|definition| definition.version(&served.version));
        match version {
            Some(version) => version.types.clone(),
            None => TypeSchema::built_in(super::kinds::built_in_kind(&served.kind)),
        }
    }

    /// Updates the conditions and stored versions of a written CRD, and serves its resources.
    pub(super) fn reconcile_crd(&self, name: &str) {
        let store = &self.0.store;
        let key = crd_key(name);
        // If another writer changed the CRD in between, it is reconciled again.
        while let Some(stored) = store.read(&key) {
            let mut crd = stored.as_ref().clone();
            self.complete_status(&mut crd);
            if crd == *stored || store.replace(key.clone(), crd.clone(), version(&stored)).is_ok() {
                let definition = Definition::new(&crd);
                let established = condition(&crd, "Established") == Some("True");
                let (group, plural) = (definition.group.clone(), definition.names.plural.clone());
                if established {
                    self.0.kinds.serve_custom(Arc::new(definition));
                } else {
                    self.0.kinds.remove_custom(&group, &plural);
                }
                return;
            }
        }
    }

    fn complete_status(&self, crd: &mut Value) {
        let storage = crd["spec"]["versions"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|version| version["storage"] == true)
            .map(|version| version["name"].clone())
            .unwrap_or_default();
        let mut stored = crd["status"]["storedVersions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        if !stored.contains(&storage) {
            stored.push(storage);
        }
        crd["status"]["storedVersions"] = stored.into();
        crd["status"]["acceptedNames"] = crd["spec"]["names"].clone();
        let taken = self
            .0
            .all("apiextensions.k8s.io", "customresourcedefinitions", None)
            .into_iter()
            .any(|other| {
                other["metadata"]["name"] != crd["metadata"]["name"]
                    && other["spec"]["group"] == crd["spec"]["group"]
                    && other["spec"]["names"]["kind"] == crd["spec"]["names"]["kind"]
            });
        let (status, reason, message) = if taken {
            let kind = crd["spec"]["names"]["kind"].clone();
            ("False", "KindConflict", format!("{kind} is already in use"))
        } else {
            ("True", "NoConflicts", "no conflicts found".to_owned())
        };
        set_condition(crd, "NamesAccepted", status, reason, &message);
        let bundle = &crd["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"];
        let junk = crate::crd::bundle_problem(bundle).is_some();
        let was_established = condition(crd, "Established") == Some("True");
        if taken {
            set_condition(
                crd,
                "Established",
                "False",
                "NotAccepted",
                "not all names are accepted",
            );
        } else if junk && !was_established {
            let message = "The conversion webhook CABundle is invalid";
            set_condition(crd, "Established", "False", "InvalidCABundle", message);
        } else {
            let message = "the initial names have been accepted";
            set_condition(crd, "Established", "True", "InitialNamesAccepted", message);
        }
    }

    /// Removes the finalizer of a CRD that is being deleted once its objects are gone.
    pub(super) fn finalize_crd(&self, name: &str) {
        let store = &self.0.store;
        let Some(crd) = store.read(&crd_key(name)) else {
            return;
        };
        let definition = Definition::new(&crd);
        let group = definition.group.clone();
        let plural = definition.names.plural.clone();
        self.0.kinds.serve_custom(Arc::new(definition));
        let collection = Collection {
            group: &group,
            resource: &plural,
            namespace: None,
        };
        for (key, object) in store.list(collection).0 {
            self.delete(&key, &object, "Background");
        }
        if !store.list(collection).0.is_empty() {
            return;
        }
        let mut released = crd.as_ref().clone();
        if let Some(finalizers) = released["metadata"]["finalizers"].as_array_mut() {
            finalizers.retain(|finalizer| finalizer != CLEANUP);
            let done = finalizers.is_empty();
            if let Ok(released) = store.replace(crd_key(name), released, version(&crd))
                && done
                && store.remove(&crd_key(name), version(&released)).is_ok()
            {
                self.0.kinds.remove_custom(&group, &plural);
            }
        }
    }
}

pub(super) fn crd_key(name: &str) -> StorageKey {
    StorageKey {
        group: "apiextensions.k8s.io".to_owned(),
        resource: "customresourcedefinitions".to_owned(),
        namespace: String::new(),
        name: name.to_owned(),
    }
}

/// Returns the status of a condition.
pub(crate) fn condition<'a>(object: &'a Value, condition_type: &str) -> Option<&'a str> {
    let conditions = object["status"]["conditions"].as_array()?;
    conditions
        .iter()
        .find(|condition| condition["type"] == condition_type)?["status"]
        .as_str()
}

/// Sets a condition. Its transition time changes only with its status.
pub(crate) fn set_condition(
    object: &mut Value,
    condition_type: &str,
    status: &str,
    reason: &str,
    message: &str,
) {
    let mut conditions = object["status"]["conditions"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let mut condition = json!({"type": condition_type, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": now()});
    match conditions
        .iter_mut()
        .find(|condition| condition["type"] == condition_type)
    {
        Some(old) => {
            if old["status"] == status {
                condition["lastTransitionTime"] = old["lastTransitionTime"].clone();
            }
            *old = condition;
        }
        None => conditions.push(condition),
    }
    object["status"]["conditions"] = conditions.into();
}

fn reinitializing(served: &ServedResource, problem: &str) -> StatusError {
    let message = format!(
        "storage is (re)initializing: failed to list {}, Kind={}: {problem}",
        served.api_version(),
        served.kind
    );
    StatusError {
        retry_after: Some(1),
        ..StatusError::new(429, "TooManyRequests", message)
    }
}

/// Sets the condition Terminating on a CRD. From then on, objects cannot be created.
pub(super) fn set_terminating(server: &ApiServer, name: &str) {
    let store = &server.0.store;
    let key = crd_key(name);
    while let Some(stored) = store.read(&key) {
        let mut crd = stored.as_ref().clone();
        let message = "CustomResource deletion is in progress";
        set_condition(
            &mut crd,
            "Terminating",
            "True",
            "InstanceDeletionInProgress",
            message,
        );
        if store.replace(key.clone(), crd.clone(), version(&stored)).is_ok() {
            return server.0.kinds.serve_custom(Arc::new(Definition::new(&crd)));
        }
    }
}
