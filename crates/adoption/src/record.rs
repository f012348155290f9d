//! How everything was before the first write.

use std::io::{Read, Write};

use base64::{Engine, engine::general_purpose::STANDARD};
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use thiserror::Error;
use windlass_object::{ObjectKey, json::fields, names, object};

use crate::{kept_copy::selects_pods_of, source::AdoptionSource, webhook_callers::called_services};

/// How an install was before it was adopted.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct AdoptionRecord {
    /// Whose it was.
    pub source: AdoptionSource,
    /// The BundleDeployment that it is adopted for.
    pub bundle_deployment: String,
    /// Its objects.
    pub objects: Vec<RecordedObject>,
}

/// An object of an install, as it was.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct RecordedObject {
    /// What becomes of it.
    pub role: RecordedRole,
    /// What it was; without what Secrets hold.
    pub object: Value,
}

/// What becomes of an object of an install.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum RecordedRole {
    /// The bundle has it, too, and takes it over.
    Adopted,
    /// It stays until the adoption is confirmed.
    LeftOver,
}

/// Why a record cannot be written or read.
#[derive(Debug, Error)]
pub enum AdoptionRecordError {
    /// It is too large for a Secret.
    #[error("the objects to adopt are too large to record: {0} KiB packed, limit {limit} KiB", limit = LARGEST >> 10)]
    TooLarge(usize),
    /// It holds something else.
    #[error("the record of the adoption cannot be read: {0}")]
    Garbage(String),
}

/// Where in the Secret it is.
const KEY: &str = "record";

/// How large a packed record may be: a Secret has 1 MiB, in base64.
const LARGEST: usize = 700 << 10;

/// How large an unpacked one may be.
const UNPACKED: u64 = 64 << 20;

/// What only the API server says, or what is of the moment.
const OF_THE_MOMENT: [&str; 5] = [
    "creationTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
];

/// The name of the Secret that records the adoption for a BundleDeployment.
pub fn record_name(bundle_deployment: &str) -> String {
    format!("windlass-adoption-{bundle_deployment}")
}

// === impl RecordedObject ===

impl RecordedObject {
    /// Records a live object.
    pub fn new(role: RecordedRole, live: &Value) -> Self {
        let mut object = live.clone();
        fields(&mut object, &[]).shift_remove("status");
        if object::text(live, "/kind") == Some("Secret") {
            for field in ["data", "stringData"] {
                fields(&mut object, &[]).shift_remove(field);
            }
        }
        let metadata = fields(&mut object, &["metadata"]);
        metadata.retain(|name, _| !OF_THE_MOMENT.contains(&name.as_str()));
        if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
            // The whole object once more, with what a Secret holds.
            annotations.shift_remove("kubectl.kubernetes.io/last-applied-configuration");
        }
        Self { role, object }
    }

    /// Which object it is.
    pub fn key(&self) -> Option<ObjectKey> {
        ObjectKey::from_object(&self.object)
    }

    /// Its kind.
    pub fn kind(&self) -> &str {
        object::text(&self.object, "/kind").unwrap_or_default()
    }

    /// Its uid.
    pub fn uid(&self) -> Option<&str> {
        object::text(&self.object, "/metadata/uid")
    }

    /// Whether the bundle has it, too.
    pub fn is_adopted(&self) -> bool {
        self.role == RecordedRole::Adopted
    }
}

// === impl AdoptionRecord ===

impl AdoptionRecord {
    /// The objects that call Services.
    pub fn callers(&self) -> impl Iterator<Item = &RecordedObject> {
        self.objects
            .iter()
            .filter(move |recorded| !called_services(&recorded.object).is_empty())
    }

    /// The Services of the install.
    pub fn services(&self) -> impl Iterator<Item = &RecordedObject> {
        self.objects
            .iter()
            .filter(move |recorded| recorded.kind() == "Service")
    }

    /// The Services of the install that callers of it call.
    pub fn called(&self) -> impl Iterator<Item = &RecordedObject> {
        self.services().filter(move |service| {
            self.callers()
                .any(move |caller| called_services(&caller.object).contains(&place(&service.object)))
        })
    }

    /// The Deployments that the bundle takes over from under the callers: a copy of each keeps serving.
    pub fn kept(&self) -> impl Iterator<Item = &RecordedObject> {
        self.objects.iter().filter(move |recorded| {
            recorded.kind() == "Deployment"
                && recorded.is_adopted()
                && self
                    .called()
                    .any(move |service| selects_pods_of(&service.object, &recorded.object))
        })
    }

    /// The Services that lead to the copies instead.
    pub fn narrowed(&self) -> impl Iterator<Item = &RecordedObject> {
        self.called().filter(move |service| {
            self.kept()
                .any(move |kept| selects_pods_of(&service.object, &kept.object))
        })
    }

    /// The callers that the bundle does not have, of a Service that it takes over: nobody would serve them any more.
    pub fn stranded(&self) -> impl Iterator<Item = (&RecordedObject, &RecordedObject)> {
        let is_taken =
            move |service: &&RecordedObject| service.is_adopted() && !self.source.is_trusted_ahead();
        let taken = self.called().filter(is_taken);
        taken.flat_map(move |service| {
            let calls = move |caller: &&RecordedObject| {
                !caller.is_adopted() && called_services(&caller.object).contains(&place(&service.object))
            };
            self.callers().filter(calls).map(move |caller| (caller, service))
        })
    }

    /// The Secret with it.
    ///
    /// # Errors
    ///
    /// When it is too large.
    pub fn to_secret(&self, namespace: &str) -> Result<Value, AdoptionRecordError> {
        let garbage = |error: &dyn std::fmt::Display| AdoptionRecordError::Garbage(error.to_string());
        let content = serde_json::to_vec(self).map_err(|error| garbage(&error))?;
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&content).map_err(|error| garbage(&error))?;
        let packed = encoder.finish().map_err(|error| garbage(&error))?;
        if packed.len() > LARGEST {
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

    /// The record in a Secret.
    ///
    /// # Errors
    ///
    /// When it holds none.
    pub fn from_secret(secret: &Value) -> Result<Self, AdoptionRecordError> {
        let garbage = |problem: &str| AdoptionRecordError::Garbage(problem.to_owned());
        let packed = object::data(secret, KEY).ok_or_else(|| garbage("it is not there"))?;
        let mut content = Vec::new();
        GzDecoder::new(&*packed)
            .take(UNPACKED)
            .read_to_end(&mut content)
            .map_err(|error| garbage(&error.to_string()))?;
        serde_json::from_slice(&content).map_err(|error| garbage(&error.to_string()))
    }
}

fn place(object: &Value) -> (String, String) {
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
    fn what_is_called_and_taken_over_is_kept_by_copies() {
        let record = record();
        fn name(recorded: &RecordedObject) -> &str {
            object::text(&recorded.object, "/metadata/name").unwrap()
        }
        assert_eq!(record.kept().map(name).collect::<Vec<_>>(), ["served"]);
        assert_eq!(record.narrowed().map(name).collect::<Vec<_>>(), ["taken", "old"]);
        assert_eq!(record.stranded().count(), 0);
        let mut stranding = record.clone();
        stranding.objects[7].role = RecordedRole::LeftOver;
        let stranded: Vec<_> = stranding
            .stranded()
            .map(|(caller, service)| (name(caller), name(service)))
            .collect();
        assert_eq!(stranded, [("v", "taken")]);
    }

    #[test]
    fn a_record_is_read_as_it_was_written_and_holds_no_key() {
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
