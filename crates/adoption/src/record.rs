//! The state of all objects before the first write.

use std::io::{Read, Write};

use base64::{Engine, engine::general_purpose::STANDARD};
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use thiserror::Error;
use windlass_object::{ObjectKey, json::fields, names, object};

use crate::{kept_copy::selects_pods_of, source::AdoptionSource, webhook_callers::called_services};

/// The state of an install before its adoption.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct AdoptionRecord {
    /// The previous owner.
    pub source: AdoptionSource,
    /// The BundleDeployment that adopts it.
    pub bundle_deployment: String,
    /// The objects of the install.
    pub objects: Vec<RecordedObject>,
}

/// An object of an install before its adoption.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct RecordedObject {
    /// Its role in the adoption.
    pub role: RecordedRole,
    /// Content of the object, without the data of Secrets.
    pub object: Value,
}

/// What the adoption does with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum RecordedRole {
    /// The bundle contains the object and takes it over.
    Adopted,
    /// The object stays until the adoption is confirmed.
    LeftOver,
}

/// Why a record cannot be written or read.
#[derive(Debug, Error)]
pub enum AdoptionRecordError {
    /// The record is too large for a Secret.
    #[error("the objects to adopt are too large to record: {0} KiB packed, limit {limit} KiB", limit = MAX_PACKED >> 10)]
    TooLarge(usize),
    /// The Secret holds no valid record.
    #[error("the record of the adoption cannot be read: {0}")]
    Garbage(String),
}

/// The key in the Secret.
const KEY: &str = "record";

/// The maximum size of a packed record: a Secret holds 1 MiB, in base64.
const MAX_PACKED: usize = 700 << 10;

/// The maximum size of an unpacked record.
const UNPACKED: u64 = 64 << 20;

/// Metadata that the API server sets or that changes constantly.
const VOLATILE_METADATA: [&str; 5] = [
    "creationTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
];

/// Returns the name of the Secret that records the adoption for a BundleDeployment.
pub fn record_name(bundle_deployment: &str) -> String {
    format!("windlass-adoption-{bundle_deployment}")
}

impl RecordedObject {
    /// Creates the record of a live object, with what is needed to restore the object.
    pub fn new(role: RecordedRole, live: &Value) -> Self {
        let mut object = live.clone();
        fields(&mut object, &[]).shift_remove("status");
        if object::text(live, "/kind") == Some("Secret") {
            for field in ["data", "stringData"] {
                fields(&mut object, &[]).shift_remove(field);
            }
        }
        let metadata = fields(&mut object, &["metadata"]);
        metadata.retain(|name, _| !VOLATILE_METADATA.contains(&name.as_str()));
        if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
            // kubectl stores a copy of the whole object here, including the data of a Secret.
            annotations.shift_remove("kubectl.kubernetes.io/last-applied-configuration");
        }
        Self { role, object }
    }

    /// Returns the key of the object.
    pub fn key(&self) -> Option<ObjectKey> {
        ObjectKey::from_object(&self.object)
    }

    /// Returns the kind of the object.
    pub fn kind(&self) -> &str {
        object::text(&self.object, "/kind").unwrap_or_default()
    }

    /// Returns the uid of the object.
    pub fn uid(&self) -> Option<&str> {
        object::text(&self.object, "/metadata/uid")
    }

    /// Reports whether the bundle takes the object over.
    pub fn is_adopted(&self) -> bool {
        self.role == RecordedRole::Adopted
    }
}

impl AdoptionRecord {
    /// Returns the objects that call Services.
    pub fn callers(&self) -> impl Iterator<Item = &RecordedObject> {
        self.objects
            .iter()
            .filter(move |recorded| !called_services(&recorded.object).is_empty())
    }

    /// Returns the Services of the install.
    pub fn services(&self) -> impl Iterator<Item = &RecordedObject> {
        self.objects
            .iter()
            .filter(move |recorded| recorded.kind() == "Service")
    }

    /// Returns the Services of the install that its own objects call.
    pub fn called_services(&self) -> impl Iterator<Item = &RecordedObject> {
        self.services().filter(move |service| {
            self.callers().any(move |caller| {
                called_services(&caller.object).contains(&namespaced_name(&service.object))
            })
        })
    }

    /// Returns the Deployments behind called Services that the bundle takes over; a copy of each keeps
    /// serving.
    pub fn kept_deployments(&self) -> impl Iterator<Item = &RecordedObject> {
        self.objects.iter().filter(move |recorded| {
            recorded.kind() == "Deployment"
                && recorded.is_adopted()
                && self
                    .called_services()
                    .any(move |service| selects_pods_of(&service.object, &recorded.object))
        })
    }

    /// Returns the Services that select the pods of the copies during the adoption.
    pub fn narrowed_services(&self) -> impl Iterator<Item = &RecordedObject> {
        self.called_services().filter(move |service| {
            self.kept_deployments()
                .any(move |kept| selects_pods_of(&service.object, &kept.object))
        })
    }

    /// Returns the callers that are not in the bundle but call a Service that the bundle takes over, each
    /// with that Service. Their calls would fail.
    pub fn stranded_callers(&self) -> impl Iterator<Item = (&RecordedObject, &RecordedObject)> {
        let is_taken =
            move |service: &&RecordedObject| service.is_adopted() && !self.source.is_trusted_ahead();
        let taken = self.called_services().filter(is_taken);
        taken.flat_map(move |service| {
            let calls = move |caller: &&RecordedObject| {
                !caller.is_adopted()
                    && called_services(&caller.object).contains(&namespaced_name(&service.object))
            };
            self.callers().filter(calls).map(move |caller| (caller, service))
        })
    }

    /// Creates the Secret that holds the record.
    ///
    /// # Errors
    ///
    /// When the record is too large.
    pub fn to_secret(&self, namespace: &str) -> Result<Value, AdoptionRecordError> {
        let garbage = |error: &dyn std::fmt::Display| AdoptionRecordError::Garbage(error.to_string());
        let content = serde_json::to_vec(self).map_err(|error| garbage(&error))?;
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&content).map_err(|error| garbage(&error))?;
        let packed = encoder.finish().map_err(|error| garbage(&error))?;
        if packed.len() > MAX_PACKED {
            return Err(AdoptionRecordError::TooLarge(packed.len() >> 10));
        }
        Ok(json!({
            "apiVersion": "v1", "kind": "Secret", "type": "windlass.dev/adoption-record",
            "metadata": {
                "namespace": namespace, "name": record_name(&self.bundle_deployment),
                "labels": {names::ADOPTION_RECORD: self.bundle_deployment},
            },
            "data": {KEY: STANDARD.encode(packed)},
        }))
    }

    /// Reads the record from a Secret.
    ///
    /// # Errors
    ///
    /// When the Secret holds no valid record.
    pub fn from_secret(secret: &Value) -> Result<Self, AdoptionRecordError> {
        let garbage = |problem: &str| AdoptionRecordError::Garbage(problem.to_owned());
        let packed = object::data(secret, KEY).ok_or_else(|| garbage("the Secret has no such key"))?;
        let mut content = Vec::new();
        GzDecoder::new(&*packed)
            .take(UNPACKED)
            .read_to_end(&mut content)
            .map_err(|error| garbage(&error.to_string()))?;
        serde_json::from_slice(&content).map_err(|error| garbage(&error.to_string()))
    }
}

fn namespaced_name(object: &Value) -> (String, String) {
    let text = |pointer| object::text(object, pointer).unwrap_or_default().to_owned();
    (text("/metadata/namespace"), text("/metadata/name"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(role: RecordedRole, kind: &str, name: &str, rest: &Value) -> RecordedObject {
        let mut live = json!({"apiVersion": "v1", "kind": kind,
            "metadata": {"namespace": "n", "name": name, "uid": name, "resourceVersion": "1"}, "status": {}});
        for (field, value) in rest.as_object().unwrap() {
            live[field] = value.clone();
        }
        RecordedObject::new(role, &live)
    }

    fn record() -> AdoptionRecord {
        use RecordedRole::{Adopted, LeftOver};
        let template = |app: &str| json!({"spec": {"template": {"metadata": {"labels": {"app": app}}}}});
        let service = |app: &str| json!({"spec": {"selector": {"app": app}}});
        let webhooks = |name: &str| json!({"webhooks": [{"clientConfig": {"service": {"namespace": "n", "name": name}}}]});
        AdoptionRecord {
            source: "helm/n/r".parse().unwrap(),
            bundle_deployment: "b".into(),
            objects: vec![
                recorded(Adopted, "Deployment", "served", &template("a")),
                recorded(Adopted, "Deployment", "unserved", &template("b")),
                recorded(LeftOver, "Deployment", "other", &template("c")),
                recorded(Adopted, "Service", "taken", &service("a")),
                recorded(LeftOver, "Service", "old", &service("a")),
                recorded(LeftOver, "Service", "metrics", &service("b")),
                recorded(LeftOver, "Service", "others", &service("c")),
                recorded(Adopted, "ValidatingWebhookConfiguration", "v", &webhooks("taken")),
                recorded(LeftOver, "MutatingWebhookConfiguration", "m", &webhooks("old")),
                recorded(LeftOver, "MutatingWebhookConfiguration", "c", &webhooks("others")),
            ],
        }
    }

    #[test]
    fn called_deployments_that_are_taken_over_are_copied() {
        let record = record();
        fn name(recorded: &RecordedObject) -> &str {
            object::text(&recorded.object, "/metadata/name").unwrap()
        }
        assert_eq!(
            record.kept_deployments().map(name).collect::<Vec<_>>(),
            ["served"]
        );
        assert_eq!(
            record.narrowed_services().map(name).collect::<Vec<_>>(),
            ["taken", "old"]
        );
        assert_eq!(record.stranded_callers().count(), 0);
        let mut stranding = record.clone();
        stranding.objects[7].role = RecordedRole::LeftOver;
        let stranded: Vec<_> = stranding
            .stranded_callers()
            .map(|(caller, service)| (name(caller), name(service)))
            .collect();
        assert_eq!(stranded, [("v", "taken")]);
    }

    #[test]
    fn a_record_is_read_back_without_private_keys() {
        let mut record = record();
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "data": {"tls.key": "c2VjcmV0"},
            "metadata": {"name": "s", "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "c2VjcmV0"}}});
        record
            .objects
            .push(RecordedObject::new(RecordedRole::LeftOver, &secret));
        assert!(!serde_json::to_string(&record).unwrap().contains("c2VjcmV0"));
        let stored = record.to_secret("windlass-system").unwrap();
        assert_eq!(stored["metadata"]["name"], "windlass-adoption-b");
        assert_eq!(AdoptionRecord::from_secret(&stored).unwrap(), record);
        for garbage in [json!({}), json!({"data": {"record": "QQ=="}})] {
            let refused = AdoptionRecord::from_secret(&garbage).unwrap_err().to_string();
            assert!(
                refused.starts_with("the record of the adoption cannot be read"),
                "{refused}"
            );
        }
    }
}
