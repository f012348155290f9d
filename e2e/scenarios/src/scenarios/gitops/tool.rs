//! How GitOps tools write a CRD, and which conversion they may include.

use kube::Client;
use serde_json::{Value, json};

use crate::{
    request::{self, RequestAnswer, text},
    sample,
    steps::succeed,
};

/// The annotation in which `kubectl apply` records the applied object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// A way to write an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tool {
    /// Server-side apply without force, which fails on fields of other managers: `kubectl apply
    /// --server-side`.
    Apply,
    /// Server-side apply with force: Flux, and Argo CD with `ServerSideApply=true`.
    ForcedApply,
    /// A merge patch of the changes since the last one: `kubectl apply`, and Argo CD by default.
    ClientSideApply,
    /// A PUT of the whole object: `kubectl replace`, and Argo CD with `Replace=true`.
    Replace,
}

/// A conversion of the sample's CRD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stanza {
    /// No conversion, as in the sample bundle.
    Absent,
    /// The conversion that Windlass writes, without the CA bundle.
    Same,
    /// The conversion that kubebuilder scaffolds, with another Service.
    Other,
    /// `strategy: None`.
    None,
}

impl Tool {
    pub(super) const ALL: [Self; 4] = [
        Self::Apply,
        Self::ForcedApply,
        Self::ClientSideApply,
        Self::Replace,
    ];

    fn manager(self) -> &'static str {
        match self {
            Self::Apply => "kubectl",
            Self::ForcedApply => "kustomize-controller",
            Self::ClientSideApply => "argocd-controller",
            Self::Replace => "kubectl-replace",
        }
    }

    /// Writes `manifest`, the sample's CRD.
    pub(super) async fn write(self, client: &Client, manifest: &Value) -> anyhow::Result<RequestAnswer> {
        let path = sample::DEFINITION;
        let managed = format!("{path}?fieldManager={}", self.manager());
        match self {
            Self::Apply => request::apply(client, path, self.manager(), false, manifest).await,
            Self::ForcedApply => request::apply(client, path, self.manager(), true, manifest).await,
            Self::ClientSideApply => {
                let live = succeed(client, "GET", path, None).await?.body;
                let last = live["metadata"]["annotations"][LAST_APPLIED].as_str();
                let last: Value = last.map_or(Ok(Value::Null), serde_json::from_str)?;
                let mut patch = merge_patch(&last, manifest);
                patch["metadata"]["annotations"][LAST_APPLIED] = manifest.to_string().into();
                request::send(client, "PATCH", &managed, Some(&patch)).await
            }
            Self::Replace => loop {
                let live = succeed(client, "GET", path, None).await?.body;
                let mut body = manifest.clone();
                body["metadata"]["resourceVersion"] = text(&live, "/metadata/resourceVersion").into();
                let answer = request::send(client, "PUT", &managed, Some(&body)).await?;
                // Another client wrote in between.
                if answer.code != 409 {
                    return Ok(answer);
                }
            },
        }
    }
}

impl Stanza {
    /// Returns the sample's manifest with this conversion; `conversion` is the one that Windlass has written.
    pub(super) fn in_manifest(self, conversion: &Value) -> anyhow::Result<Value> {
        let mut manifest = sample::manifest()?;
        let stanza = match self {
            Self::Absent => return Ok(manifest),
            Self::Same => {
                let mut same = conversion.clone();
                if let Some(config) = same
                    .pointer_mut("/webhook/clientConfig")
                    .and_then(Value::as_object_mut)
                {
                    config.remove("caBundle");
                }
                same
            }
            Self::Other => json!({"strategy": "Webhook", "webhook": {
                "clientConfig": {"service": {"namespace": "system", "name": "webhook-service", "path": "/convert"}},
                "conversionReviewVersions": ["v1"],
            }}),
            Self::None => json!({"strategy": "None"}),
        };
        manifest["spec"]["conversion"] = stanza;
        Ok(manifest)
    }
}

/// Returns the patch of `kubectl apply`: all of `desired`, and null for fields that are only in `last`.
fn merge_patch(last: &Value, desired: &Value) -> Value {
    let mut patch = desired.clone();
    let (Some(last), Some(fields)) = (last.as_object(), patch.as_object_mut()) else {
        return patch;
    };
    for (name, before) in last {
        let after = fields
            .get(name)
            .map_or(Value::Null, |after| merge_patch(before, after));
        fields.insert(name.clone(), after);
    }
    patch
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_patch_removes_only_undesired_fields() {
        let last =
            json!({"spec": {"a": 1, "conversion": {"strategy": "Webhook", "webhook": {}}, "list": [1]}});
        let desired = json!({"spec": {"a": 2, "conversion": {"strategy": "None"}, "list": [2]}});
        assert_eq!(
            merge_patch(&last, &desired),
            json!({"spec": {"a": 2, "conversion": {"strategy": "None", "webhook": null}, "list": [2]}})
        );
        assert_eq!(
            merge_patch(&last, &json!({"spec": {"a": 1}})),
            json!({"spec": {"a": 1, "conversion": null, "list": null}})
        );
        assert_eq!(merge_patch(&Value::Null, &desired), desired);
    }
}
