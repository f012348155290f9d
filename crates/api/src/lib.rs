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
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt;

pub use bundle_deployment::{
    BundleDeployment, BundleDeploymentSpec, BundleDeploymentStatus, CertificateDefaults, CertificateStatus,
    ConfigMapName, ConversionManager, ConversionStatus, CrdUpgradeSafety, DeletionPolicy, DirectorySource,
    ImageSource, ObjectInterpretation, Source, WebhookState, WebhookStatus,
};
pub use catalog_source::{CatalogSource, CatalogStatus, CatalogStep, UpgradeApproval};
pub use conditions::{ConditionUpdate, Conditions};
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
/// Labels, annotations and finalizers are as much a part of the API as its fields; the domain needs them, too.
pub use windlass_object::names;

/// The CustomResourceDefinitions of Windlass itself.
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
    schemas.for_each(without_rust_formats);
    definitions
}

/// Takes out formats that only Rust knows: API servers warn whoever applies them.
fn without_rust_formats(schema: &mut JSONSchemaProps) {
    schema.format.take_if(|format| format.starts_with("uint"));
    let properties = schema.properties.iter_mut().flat_map(BTreeMap::values_mut);
    properties.for_each(without_rust_formats);
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        without_rust_formats(items);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        without_rust_formats(values);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn no_format_makes_an_api_server_warn() {
        let definitions = serde_json::to_string(&custom_resource_definitions()).unwrap();
        assert!(definitions.contains(r#""format":"date-time""#));
        assert!(!definitions.contains(r#""format":"uint"#), "{definitions}");
    }

    /// The fields below `schema` that `kubectl explain` could say nothing of.
    fn unexplained(schema: &Value, path: &str, found: &mut Vec<String>) {
        if let Some(items) = schema.get("items") {
            unexplained(items, path, found);
        }
        let fields = schema.get("properties").and_then(Value::as_object);
        for (name, field) in fields.into_iter().flatten() {
            let path = format!("{path}.{name}");
            unexplained(field, &path, found);
            if field
                .get("description")
                .and_then(Value::as_str)
                .is_none_or(str::is_empty)
            {
                found.push(path);
            }
        }
    }

    #[test]
    fn names_that_are_part_of_paths_are_names() {
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
    fn every_field_explains_itself() {
        let mut found = Vec::new();
        for crd in custom_resource_definitions() {
            let crd = serde_json::to_value(crd).unwrap();
            let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            assert!(schema["properties"]["spec"].is_object());
            unexplained(schema, crd["spec"]["names"]["kind"].as_str().unwrap(), &mut found);
        }
        assert_eq!(found, [""; 0]);
    }
}
