//! Switches callers of webhooks to other Services, each by a single write, so that a caller is never half
//! switched.

use json_patch::Patch;
use serde_json::{Value, json};
use tracing::info;
use windlass_object::{
    ObjectKey, names, object,
    patch::{changed_entries, put, test},
};
use windlass_trust::injection::TargetKind;

use super::{
    applier::{Applier, ApplyError, Outcome},
    field_owner::FieldOwner,
    webhooks::switch_webhooks,
};
use crate::{
    kind::{Kind, kinds},
    requests::RequestError,
};

impl Applier {
    /// Sets the CRD's `spec.conversion` to `conversion` as [`Applier::switch_conversion`] does, and changes
    /// nothing else.
    ///
    /// # Errors
    ///
    /// As [`Applier::switch_conversion`].
    pub async fn set_conversion(&self, crd: &Value, conversion: &Value) -> Result<Outcome, RequestError> {
        self.switch_conversion(crd, conversion, &Value::Null).await
    }

    /// Sets the CRD's `spec.conversion` to `conversion`, by a patch that is guarded by the current value. The
    /// same patch sets which versions are served and which trust bundle the CRD requests, as in `body`:
    /// kube-apiserver rebuilds the storage of a CRD at each change of its spec, and the new converter may not
    /// know other versions. A null `body` changes neither.
    ///
    /// [`Outcome::Unchanged`] if the conversion is set already, and no entry of a change is left in the managed
    /// fields.
    ///
    /// # Errors
    ///
    /// A [`RequestError`]; [`RequestError::is_invalid`] if another client changed it at the same time. The
    /// conversion may have changed nevertheless: an answer can be lost.
    pub async fn switch_conversion(
        &self,
        crd: &Value,
        conversion: &Value,
        body: &Value,
    ) -> Result<Outcome, RequestError> {
        let key = ObjectKey::from_object(crd).ok_or(RequestError::Nameless)?;
        let old = crd.pointer("/spec/conversion").cloned().unwrap_or(Value::Null);
        if old == *conversion {
            let is_left = self.release(&key, crd, names::CONVERSION).await?;
            return Ok(if is_left {
                Outcome::Written
            } else {
                Outcome::Unchanged
            });
        }
        let mut operations = vec![
            test("/metadata/uid", &crd["metadata"]["uid"]),
            test("/spec/conversion", &old),
            put("/spec/conversion", conversion.clone()),
        ];
        operations.extend(switch_ca_source(crd, body));
        operations.extend(switch_served(crd, body));
        let live = self
            .cluster
            .patch(&key, &Patch(operations), names::CONVERSION)
            .await?;
        let strategy = object::text(conversion, "/strategy").unwrap_or_default();
        let service = object::text(conversion, "/webhook/clientConfig/service/name").unwrap_or_default();
        info!(object = %key, strategy, service, "Changed spec.conversion");
        self.release(&key, &live, names::CONVERSION).await?;
        Ok(Outcome::Written)
    }

    /// Switches an existing webhook configuration, ExtensionConfig or APIService that requests another trust
    /// bundle than `armed` to the Services of `armed`. The same patch sets the CA bundle, since the API
    /// server would not trust the new servers without it. Fields that others have added to its webhooks stay,
    /// as with server-side apply.
    ///
    /// # Errors
    ///
    /// As [`Applier::ensure_armed`], which completes it.
    pub(super) async fn switch_caller(&self, armed: &Value, owner: &FieldOwner) -> Result<(), ApplyError> {
        let key = ObjectKey::from_object(armed).ok_or(RequestError::Nameless)?;
        let Some(live) = self.cluster.read(&key).await? else {
            return Ok(());
        };
        let source = switch_ca_source(&live, armed);
        // Conversions are switched separately.
        let is_definition = Kind::from_key(&key) == kinds::CUSTOM_RESOURCE_DEFINITION;
        if is_definition || source.is_empty() || object::is_terminating(&live) {
            return Ok(());
        }
        let mut operations = vec![test("/metadata/uid", &live["metadata"]["uid"])];
        if armed.get("webhooks").is_some() {
            operations.extend(switch_webhooks(&live, armed));
        } else {
            operations.extend(switch_server(armed));
        }
        operations.extend(source);
        self.writer(&key, owner)
            .patch(&key, &Patch(operations), names::INSTALL)
            .await?;
        info!(object = %key, "Switched to another Service");
        Ok(())
    }
}

/// Returns the operations that set the server of `armed` in an object with a single server.
fn switch_server(armed: &Value) -> Vec<json_patch::PatchOperation> {
    let holders = TargetKind::from_object(armed).map(|kind| kind.holders(armed));
    let paths = holders.into_iter().flatten().flat_map(|holder| {
        let path = |field: &str| format!("{}/{field}", holder.pointer);
        ["service", "caBundle"].map(path)
    });
    paths
        .filter_map(|path| Some(put(&path, armed.pointer(&path)?.clone())))
        .collect()
}

/// Returns the operations that make a target request the trust bundle of `body`; none if it does already.
fn switch_ca_source(live: &Value, body: &Value) -> Vec<json_patch::PatchOperation> {
    let source = |object| object::annotation(object, names::INJECT_CA_FROM);
    let Some(desired) = source(body).filter(|desired| source(live) != Some(*desired)) else {
        return Vec::new();
    };
    changed_entries(
        live,
        "/metadata/annotations",
        &json!({ names::INJECT_CA_FROM: desired }),
    )
}

/// Returns the operations that serve the versions of a live CRD as in `body`, which lacks those that the new
/// converter does not know; none if `body` is null.
fn switch_served(live: &Value, body: &Value) -> Vec<json_patch::PatchOperation> {
    if body.is_null() {
        return Vec::new();
    }
    let versions = object::items(live, "/spec/versions").iter().enumerate();
    versions
        .filter_map(|(index, version)| {
            let name = object::text(version, "/name")?;
            let desired = windlass_crd::version(body, name).is_some_and(windlass_crd::is_served);
            (desired != windlass_crd::is_served(version)).then(|| {
                let path = format!("/spec/versions/{index}");
                [
                    test(&format!("{path}/name"), &name.into()),
                    put(&format!("{path}/served"), desired.into()),
                ]
            })
        })
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A CRD with the versions of `states`: absent, not served, or served; the first one is stored.
    fn crd(states: &[Option<bool>]) -> Value {
        let versions: Vec<_> = ["v1", "v2", "v3"]
            .iter()
            .zip(states)
            .filter_map(|(name, served)| served.map(|served| (name, served)))
            .enumerate()
            .map(|(index, (name, served))| json!({"name": name, "served": served, "storage": index == 0}))
            .collect();
        json!({"spec": {"versions": versions}})
    }

    fn served(crd: &Value) -> Vec<&str> {
        let versions = windlass_crd::versions(crd).iter();
        versions
            .filter(|version| windlass_crd::is_served(version))
            .map(windlass_crd::version_name)
            .collect()
    }

    #[test]
    fn after_the_switch_only_versions_of_the_body_are_served() {
        const STATES: [Option<bool>; 3] = [None, Some(false), Some(true)];
        let all: Vec<Vec<_>> = (0..27)
            .map(|number| [1, 3, 9].map(|place| STATES[number / place % 3]).to_vec())
            .collect();
        for (live, body) in all
            .iter()
            .flat_map(|live| all.iter().map(move |body| (live, body)))
        {
            let (live, body) = (crd(live), crd(body));
            let mut patched = live.clone();
            json_patch::patch(&mut patched, &switch_served(&live, &body)).unwrap();
            let expected: Vec<_> = served(&body)
                .into_iter()
                .filter(|name| windlass_crd::version(&live, name).is_some())
                .collect();
            assert_eq!(served(&patched), expected, "{live} as {body}");
            assert_eq!(
                windlass_crd::storage_version(&patched),
                windlass_crd::storage_version(&live)
            );
            assert!(switch_served(&patched, &body).is_empty());
        }
    }

    #[test]
    fn a_switch_without_a_body_changes_no_version() {
        assert!(switch_served(&crd(&[Some(true), Some(false)]), &Value::Null).is_empty());
    }

    #[test]
    fn a_switch_fails_if_the_versions_moved() {
        let live = crd(&[Some(true), Some(true)]);
        let mut moved = live.clone();
        moved["spec"]["versions"].as_array_mut().unwrap().reverse();
        assert!(json_patch::patch(&mut moved, &switch_served(&live, &crd(&[Some(true)]))).is_err());
    }

    #[test]
    fn a_switched_caller_gets_the_new_ca_bundle() {
        let client = |service: &str, bundle: &str| json!({"service": {"namespace": "n", "name": service}, "caBundle": bundle});
        for (api_version, kind, spec) in [
            (
                "runtime.cluster.x-k8s.io/v1alpha1",
                "ExtensionConfig",
                (|client| json!({"clientConfig": client})) as fn(Value) -> Value,
            ),
            ("apiregistration.k8s.io/v1", "APIService", |client| client),
        ] {
            let config = |client| json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, "spec": spec(client)});
            let mut live = config(client("a", "QQ=="));
            live["spec"]["others"] = "stays".into();
            let mut expected = config(client("b", "Qg=="));
            expected["spec"]["others"] = "stays".into();
            json_patch::patch(&mut live, &switch_server(&config(client("b", "Qg==")))).unwrap();
            assert_eq!(live, expected);
        }
    }

    #[test]
    fn switching_the_trust_bundle_keeps_other_annotations() {
        let object = |annotations: Value| json!({"metadata": {"annotations": annotations}});
        let body = object(json!({names::INJECT_CA_FROM: "n/b"}));
        for (annotations, expected) in [
            (
                json!({"a": "b", names::INJECT_CA_FROM: "n/a"}),
                json!({"a": "b", names::INJECT_CA_FROM: "n/b"}),
            ),
            (json!({"a": "b"}), json!({"a": "b", names::INJECT_CA_FROM: "n/b"})),
        ] {
            let mut live = object(annotations);
            let patch = switch_ca_source(&live, &body);
            json_patch::patch(&mut live, &patch).unwrap();
            assert_eq!(live["metadata"]["annotations"], expected);
            assert!(switch_ca_source(&live, &body).is_empty());
        }
        assert!(switch_ca_source(&json!({"metadata": {}}), &json!({})).is_empty());
    }
}
