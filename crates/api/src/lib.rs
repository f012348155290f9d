//! The types of `windlass.dev/v1alpha1`, with their schemas and validation rules.

#[expect(
    unreachable_pub,
    reason = "KubeSchema derives a helper struct inside a function"
)]
pub mod bundle_deployment;
mod catalog_source;
mod conditions;
#[expect(
    unreachable_pub,
    reason = "KubeSchema derives a helper struct inside a function"
)]
pub mod injection_target;
mod missing_rights;
mod revision_status;
mod schemas;
#[expect(
    unreachable_pub,
    reason = "KubeSchema derives a helper struct inside a function"
)]
pub mod serving_certificate;

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt;
use serde_json::json;

pub use bundle_deployment::{
    BundleDeployment, BundleDeploymentSpec, BundleDeploymentStatus, CertificateDefaults, CertificateStatus,
    ConfigMapName, ConversionManager, ConversionStatus, CrdUpgradeSafety, DeletionPolicy, DirectorySource,
    ImageSource, ObjectInterpretation, Source, WebhookState, WebhookStatus,
};
pub use catalog_source::{CatalogSource, CatalogStatus, CatalogStep, UpgradeApproval};
pub use conditions::{ConditionUpdate, Conditions, STALLED};
pub use injection_target::{
    CaBundleEncoding, CaBundlePath, CaBundleReaders, InjectionTarget, InjectionTargetSpec,
    InjectionTargetStatus,
};
pub use missing_rights::{MissingRights, PermissionRule};
pub use revision_status::{BundleRevision, BundleStatus, InstalledRevision, NextRevision};
pub use serving_certificate::{
    CaSpec, CaStatus, ContestedTarget, EndpointsStatus, FailingTarget, Generation, PrivateKeyAlgorithm,
    PrivateKeySpec, Reload, ReloadStrategy, ServingCertificate, ServingCertificatePhase,
    ServingCertificateSpec, ServingCertificateStatus, TargetsStatus,
};
/// Names of labels, annotations and finalizers. They are part of the API, and the domain crates use them too.
pub use windlass_object::names;

/// The default of `status.observedGeneration`. GitOps tools take an object without a status to be ready.
const NOT_OBSERVED: i64 = -1;

/// Returns the CustomResourceDefinitions of Windlass.
pub fn custom_resource_definitions() -> [CustomResourceDefinition; 3] {
    let mut definitions = [
        BundleDeployment::crd(),
        ServingCertificate::crd(),
        InjectionTarget::crd(),
    ];
    let versions = definitions
        .iter_mut()
        .flat_map(|definition| &mut definition.spec.versions);
    let schemas = versions.filter_map(|version| version.schema.as_mut()?.open_api_v3_schema.as_mut());
    schemas.for_each(|schema| {
        normalize(schema);
        let status = schema
            .properties
            .as_mut()
            .and_then(|fields| fields.get_mut("status"));
        if let Some(status) = status {
            status.default = Some(JSON(json!({"observedGeneration": NOT_OBSERVED})));
        }
    });
    definitions
}

/// Removes formats that only Rust knows, since API servers warn about them, and joins the lines of each
/// paragraph of the descriptions, so that `kubectl explain` can wrap them.
fn normalize(schema: &mut JSONSchemaProps) {
    schema.format.take_if(|format| format.starts_with("uint"));
    if let Some(description) = &mut schema.description {
        let paragraphs = description.split("\n\n");
        let joined: Vec<_> = paragraphs.map(|paragraph| paragraph.replace('\n', " ")).collect();
        *description = joined.join("\n\n");
    }
    let properties = schema.properties.iter_mut().flat_map(BTreeMap::values_mut);
    properties.for_each(normalize);
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        normalize(items);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        normalize(values);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn no_schema_has_a_format_that_api_servers_warn_about() {
        let definitions = serde_json::to_string(&custom_resource_definitions()).unwrap();
        assert!(definitions.contains(r#""format":"date-time""#));
        assert!(!definitions.contains(r#""format":"uint"#), "{definitions}");
    }

    /// Collects the fields below `schema` that have no description, or one with broken lines.
    fn collect_undescribed(schema: &Value, path: &str, found: &mut Vec<String>) {
        if let Some(items) = schema.get("items") {
            collect_undescribed(items, path, found);
        }
        let fields = schema.get("properties").and_then(Value::as_object);
        for (name, field) in fields.into_iter().flatten() {
            let path = format!("{path}.{name}");
            collect_undescribed(field, &path, found);
            if field
                .get("description")
                .and_then(Value::as_str)
                .is_none_or(|text| text.is_empty() || text.replace("\n\n", "").contains('\n'))
            {
                found.push(path);
            }
        }
    }

    #[test]
    fn names_that_become_url_paths_must_be_subdomains() {
        let crd = serde_json::to_value(ServingCertificate::crd()).unwrap();
        let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        for field in ["secretName", "reload/properties/deploymentName"] {
            let pattern = schema.pointer(&format!("/properties/spec/properties/{field}/pattern"));
            assert_eq!(
                pattern.and_then(Value::as_str),
                Some(schemas::SUBDOMAIN),
                "{field}"
            );
        }
    }

    #[test]
    fn every_field_has_a_description_without_broken_lines() {
        let mut found = Vec::new();
        for crd in custom_resource_definitions() {
            let crd = serde_json::to_value(crd).unwrap();
            let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            assert!(schema["properties"]["spec"].is_object());
            collect_undescribed(schema, crd["spec"]["names"]["kind"].as_str().unwrap(), &mut found);
        }
        assert_eq!(found, [""; 0]);
    }
}
