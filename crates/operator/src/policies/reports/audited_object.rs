//! The objects that reports are about.

use policy::{AdmissionAttributes, AdmissionOperation};
use serde_json::{Value, json};
use windlass_cluster::kinds;
use windlass_object::{ObjectKey, object};

/// An object that policies have evaluated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AuditedObject {
    api_version: String,
    kind: String,
    namespace: Option<String>,
    name: String,
    uid: String,
}

impl AuditedObject {
    /// Returns the object that a request writes, if a report can be about it. A created object has its uid
    /// already: the API server sets it before it calls validating webhooks (`rest.BeforeCreate`).
    pub(super) fn from_attributes(attributes: &AdmissionAttributes<'_>) -> Option<Self> {
        let is_stored = matches!(
            attributes.operation,
            AdmissionOperation::Create | AdmissionOperation::Update
        );
        let text = |value, pointer| object::text(value, pointer).filter(|text| !text.is_empty());
        let is_tried = attributes.request.pointer("/dryRun") == Some(&Value::Bool(true));
        // A subresource may take another kind, such as Scale.
        let is_part = text(attributes.request, "/subResource").is_some();
        if !is_stored || is_tried || is_part {
            return None;
        }
        let (api_version, kind) = attributes.kind();
        // A report about a report would trigger another one.
        let (group, _) = object::group_and_version(api_version);
        if group == kinds::POLICY_REPORT.group_version().0 {
            return None;
        }
        Some(Self {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: Some(attributes.namespace().to_owned()).filter(|namespace| !namespace.is_empty()),
            name: text(attributes.subject(), "/metadata/name")?.to_owned(),
            uid: text(attributes.subject(), "/metadata/uid")?.to_owned(),
        })
    }

    /// Returns the key of its report. A new object with the same name gets a new report.
    pub(super) fn report(&self) -> ObjectKey {
        let kind = match self.namespace {
            Some(_) => kinds::POLICY_REPORT,
            None => kinds::CLUSTER_POLICY_REPORT,
        };
        kind.object(self.namespace.as_deref(), &format!("windlass-{}", self.uid))
    }

    /// Returns the ObjectReference for the report's `scope`.
    pub(super) fn reference(&self) -> Value {
        let mut reference = self.owner();
        if let Some(namespace) = &self.namespace {
            reference["namespace"] = namespace.as_str().into();
        }
        reference
    }

    /// Returns the OwnerReference that ties the report to this object.
    pub(super) fn owner(&self) -> Value {
        let Self {
            api_version,
            kind,
            name,
            uid,
            ..
        } = self;
        json!({"apiVersion": api_version, "kind": kind, "name": name, "uid": uid})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_stored_objects_get_reports() {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"namespace": "n", "name": "c", "uid": "u"}});
        let audited = |request: &Value| {
            let attributes = AdmissionAttributes::from_request(request, None).unwrap();
            AuditedObject::from_attributes(&attributes).map(|object| object.report().to_string())
        };
        let request = json!({"operation": "CREATE", "object": object});
        assert!(audited(&request).is_some_and(|report| report.contains("windlass-u")));
        for (field, value) in [
            ("dryRun", json!(true)),
            ("subResource", json!("status")),
            ("operation", json!("CONNECT")),
        ] {
            let mut other = request.clone();
            other[field] = value;
            assert_eq!(audited(&other), None, "{field}");
        }
        assert_eq!(
            audited(&json!({"operation": "DELETE", "oldObject": object})),
            None
        );
        let mut report = request.clone();
        report["object"]["apiVersion"] = "wgpolicyk8s.io/v1beta1".into();
        assert_eq!(audited(&report), None);
        let mut without_uid = request.clone();
        without_uid["object"]["metadata"]["uid"] = Value::Null;
        assert_eq!(audited(&without_uid), None);
    }
}
