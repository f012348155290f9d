//! Builds the requests that admission webhooks receive.

use serde_json::{Value, json};

use super::{
    api_server::ApiServer,
    call::{Call, ResourcePath},
    checks::normalise,
    custom::AdmissionConverter,
    kinds::ServedResource,
    metadata,
};
use crate::{StatusError, admission};

/// A request on its way through admission.
pub(super) struct ReviewedRequest<'a> {
    pub(super) call: &'a Call,
    pub(super) target: &'a ResourcePath,
    pub(super) served: &'a ServedResource,
    pub(super) operation: &'static str,
    pub(super) old: &'a Value,
}

impl ReviewedRequest<'_> {
    fn admission(&self, server: &ApiServer, object: Value) -> Result<admission::ReviewRequest, StatusError> {
        admission_request(
            server,
            self.call,
            self.target,
            self.served,
            self.operation,
            object,
            self.old.clone(),
        )
    }

    pub(super) async fn mutate(
        &self,
        server: &ApiServer,
        object: Value,
    ) -> Result<(Value, Vec<String>), StatusError> {
        let configurations = configurations(server, "mutatingwebhookconfigurations");
        if configurations.is_empty() {
            return Ok((object, Vec::new()));
        }
        let before = object.clone();
        let request = self.admission(server, object)?;
        let converter = AdmissionConverter {
            server,
            served: self.served,
        };
        let normalise = |object: &mut Value| drop(normalise(self.call, self.served, object));
        let admitted = admission::mutate(
            &server.0.webhooks,
            &configurations,
            &request,
            &converter,
            normalise,
        )
        .await?;
        let mut object = admitted.object;
        if object != before {
            metadata::keep_immutable(&mut object, &before);
        }
        Ok((object, admitted.warnings))
    }

    pub(super) async fn validate(
        &self,
        server: &ApiServer,
        object: &Value,
    ) -> Result<Vec<String>, StatusError> {
        let configurations = configurations(server, "validatingwebhookconfigurations");
        if configurations.is_empty() {
            return Ok(Vec::new());
        }
        let request = self.admission(server, object.clone())?;
        let converter = AdmissionConverter {
            server,
            served: self.served,
        };
        admission::validate(&server.0.webhooks, &configurations, &request, &converter).await
    }
}

/// Returns the request that admission webhooks receive.
pub(super) fn admission_request(
    server: &ApiServer,
    call: &Call,
    target: &ResourcePath,
    served: &ServedResource,
    operation: &'static str,
    object: Value,
    old_object: Value,
) -> Result<admission::ReviewRequest, StatusError> {
    let seen = if object.is_null() { &old_object } else { &object };
    let name = match target.name.as_str() {
        "" => seen["metadata"]["name"].as_str().unwrap_or_default(),
        name => name,
    };
    let namespace_labels = if served.kind == "Namespace" {
        seen["metadata"]["labels"].clone()
    } else {
        let namespace = server.0.stored("", "namespaces", "", &target.namespace);
        namespace
            .map(|namespace| namespace["metadata"]["labels"].clone())
            .unwrap_or_default()
    };
    let equivalents = served.definition.as_ref().map(|definition| {
        let others = definition
            .versions_by_priority()
            .into_iter()
            .filter(|version| *version != served.version);
        others
            .map(|version| admission::ServedVersion {
                group: served.group.clone(),
                version,
            })
            .collect()
    });
    let kind = match operation {
        "CREATE" => "CreateOptions",
        "DELETE" => "DeleteOptions",
        _ if call.method == http::Method::PATCH => "PatchOptions",
        _ => "UpdateOptions",
    };
    Ok(admission::ReviewRequest {
        resource: admission::RequestedResource {
            group: served.group.clone(),
            version: served.version.clone(),
            resource: served.resource.clone(),
            subresource: target.subresource.clone(),
        },
        kind: served.kind.clone(),
        name: name.to_owned(),
        namespace: target.namespace.clone(),
        namespace_labels,
        operation,
        user: call.user.info(),
        object,
        old_object,
        dry_run: call.is_dry_run()?,
        options: json!({"kind": kind, "apiVersion": "meta.k8s.io/v1"}),
        equivalents: equivalents.unwrap_or_default(),
    })
}

pub(super) fn configurations(server: &ApiServer, resource: &str) -> Vec<Value> {
    let all = server.0.all("admissionregistration.k8s.io", resource, None);
    all.iter()
        .map(|configuration| configuration.as_ref().clone())
        .collect()
}
