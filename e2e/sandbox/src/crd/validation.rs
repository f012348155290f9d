//! Validation of CRDs (`k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation`).

use std::collections::BTreeSet;

use base64::{Engine, engine::general_purpose::STANDARD};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use serde_json::Value;
use structural_schema::rule_problems;

use super::approval;
use crate::field::{FieldError, Violation};

/// Returns the errors of a CRD, and of its change from `old`.
pub fn validate(crd: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = &crd["spec"];
    names(crd, &mut errors);
    versions(spec, &mut errors);
    conversion(
        &spec["conversion"],
        old.map(|old| &old["spec"]["conversion"]),
        &mut errors,
    );
    schemas(spec, &mut errors);
    let storage = spec["versions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|version| version["storage"] == true);
    if old.is_none() && storage.count() != 1 {
        let detail = "must have at least one stored version";
        errors.push(FieldError::new(
            "status.storedVersions",
            Violation::Invalid(Value::Null),
            detail,
        ));
    }
    if let Some(old) = old {
        stored_versions(crd, &mut errors);
        if spec["scope"] != old["spec"]["scope"] {
            errors.push(immutable("spec.scope", &spec["scope"]));
        }
        if spec["group"] != old["spec"]["group"] {
            errors.push(immutable("spec.group", &spec["group"]));
        }
    }
    errors.extend(approval::validate(crd, old));
    errors
}

fn immutable(field: &str, value: &Value) -> FieldError {
    FieldError::new(field, Violation::Invalid(value.clone()), "field is immutable")
}

fn names(crd: &Value, errors: &mut Vec<FieldError>) {
    let (name, spec) = (&crd["metadata"]["name"], &crd["spec"]);
    let text = |pointer: &str| spec.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    if name.as_str() != Some(&format!("{}.{}", text("/names/plural"), text("/group"))) {
        let detail = "must be spec.names.plural+\".\"+spec.group";
        errors.push(FieldError::new(
            "metadata.name",
            Violation::Invalid(name.clone()),
            detail,
        ));
    }
    for (pointer, field) in [
        ("/group", "spec.group"),
        ("/names/plural", "spec.names.plural"),
        ("/names/kind", "spec.names.kind"),
    ] {
        if text(pointer).is_empty() {
            errors.push(FieldError::new(field, Violation::Required, ""));
        }
    }
    match text("/scope") {
        "Namespaced" | "Cluster" => {}
        "" => errors.push(FieldError::new("spec.scope", Violation::Required, "")),
        other => errors.push(FieldError::new(
            "spec.scope",
            Violation::Unsupported(other.into()),
            "supported values: \"Cluster\", \"Namespaced\"",
        )),
    }
}

fn versions(spec: &Value, errors: &mut Vec<FieldError>) {
    let versions = spec["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    if versions
        .iter()
        .filter(|version| version["storage"] == true)
        .count()
        != 1
    {
        let shown = Value::Array(spec["versions"].as_array().cloned().unwrap_or_default());
        let detail = "must have exactly one version marked as storage version";
        errors.push(FieldError::new(
            "spec.versions",
            Violation::Invalid(shown),
            detail,
        ));
    }
    let mut seen = BTreeSet::new();
    for (index, version) in versions.iter().enumerate() {
        let name = version["name"].as_str().unwrap_or_default();
        if name.is_empty() {
            errors.push(FieldError::new(
                format!("spec.versions[{index}].name"),
                Violation::Required,
                "",
            ));
        } else if !seen.insert(name) {
            let field = format!("spec.versions[{index}].name");
            errors.push(FieldError::new(
                field,
                Violation::Invalid(name.into()),
                "must contain unique version names",
            ));
        }
        if !version["schema"]["openAPIV3Schema"].is_object() {
            let field = format!("spec.versions[{index}].schema.openAPIV3Schema");
            errors.push(FieldError::new(
                field,
                Violation::Required,
                "schemas are required",
            ));
        }
    }
}

fn stored_versions(crd: &Value, errors: &mut Vec<FieldError>) {
    let names: Vec<&Value> = crd["spec"]["versions"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|version| &version["name"])
        .collect();
    let stored = crd["status"]["storedVersions"].as_array().into_iter().flatten();
    for (index, version) in stored.enumerate().filter(|(_, version)| !names.contains(version)) {
        let field = format!("status.storedVersions[{index}]");
        let detail = "missing from spec.versions; \
                      storedVersions must remain in spec.versions until they are migrated";
        errors.push(FieldError::new(
            field,
            Violation::Invalid(version.clone()),
            detail,
        ));
    }
}

fn conversion(conversion: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    // The real server reports the names of its internal fields.
    let (config, reviews) = (
        "spec.conversion.webhookClientConfig",
        "spec.conversion.conversionReviewVersions",
    );
    let webhook = &conversion["webhook"];
    let review_versions = webhook["conversionReviewVersions"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    match conversion["strategy"].as_str() {
        Some("Webhook") => {
            let client_config = &webhook["clientConfig"];
            if client_config.is_null() {
                let detail = "required when strategy is set to Webhook";
                errors.push(FieldError::new(config, Violation::Required, detail));
            } else {
                let old = old.map(|old| &old["webhook"]["clientConfig"]["caBundle"]);
                self::client_config(client_config, old, config, errors);
            }
            if review_versions.is_empty() {
                errors.push(FieldError::new(reviews, Violation::Required, ""));
            } else if !review_versions
                .iter()
                .any(|version| version == "v1" || version == "v1beta1")
            {
                let detail = "must include at least one of v1, v1beta1";
                let shown = webhook["conversionReviewVersions"].clone();
                errors.push(FieldError::new(reviews, Violation::Invalid(shown), detail));
            }
        }
        Some("None") => {
            let detail = "should not be set when strategy is not set to Webhook";
            if !webhook.is_null() && !webhook["clientConfig"].is_null() {
                errors.push(FieldError::new(config, Violation::Forbidden, detail));
            }
            if !review_versions.is_empty() {
                errors.push(FieldError::new(reviews, Violation::Forbidden, detail));
            }
        }
        other => errors.push(FieldError::new(
            "spec.conversion.strategy",
            Violation::Unsupported(other.unwrap_or_default().into()),
            "supported values: \"None\", \"Webhook\"",
        )),
    }
}

fn client_config(config: &Value, old: Option<&Value>, field: &str, errors: &mut Vec<FieldError>) {
    match (config["url"].is_string(), config["service"].is_object()) {
        (true, true) | (false, false) => {
            errors.push(FieldError::new(
                field,
                Violation::Required,
                "exactly one of url or service is required",
            ));
        }
        (false, true) => {
            let service = &config["service"];
            for name in ["name", "namespace"] {
                if service[name].as_str().unwrap_or_default().is_empty() {
                    errors.push(FieldError::new(
                        format!("{field}.service.{name}"),
                        Violation::Required,
                        "",
                    ));
                }
            }
            let port = service["port"].as_i64().unwrap_or(443);
            if !(1..=65535).contains(&port) {
                let detail = "port is not valid: must be between 1 and 65535, inclusive";
                errors.push(FieldError::new(
                    format!("{field}.service.port"),
                    Violation::Invalid(port.into()),
                    detail,
                ));
            }
        }
        (true, false) => {}
    }
    let bundle = &config["caBundle"];
    let valid = |bundle: &Value| bundle_problem(bundle).is_none();
    // An invalid bundle may stay invalid, but a valid one must not become invalid.
    if let (Some(problem), Some(old)) = (bundle_problem(bundle), old)
        && valid(old)
    {
        let field = format!("{field}.caBundle");
        let detail = format!("unable to load root certificates: {problem}");
        errors.push(FieldError::new(field, Violation::Invalid(bundle.clone()), detail));
    }
}

/// Returns why Go rejects a caBundle; `None` for a valid or absent one.
pub(crate) fn bundle_problem(bundle: &Value) -> Option<&'static str> {
    let encoded = bundle.as_str().filter(|encoded| !encoded.is_empty())?;
    let decoded = STANDARD.decode(encoded).unwrap_or_default();
    if CertificateDer::pem_slice_iter(&decoded).any(|certificate| certificate.is_ok_and(|der| parses(&der))) {
        return None;
    }
    let text = String::from_utf8_lossy(&decoded);
    let complete =
        text.contains("-----BEGIN ") && text.contains("-----END ") && !text.contains("CERTIFICATE");
    Some(if complete {
        "no valid certificate authority data seen"
    } else {
        "unable to parse bytes as PEM block"
    })
}

fn parses(der: &CertificateDer<'_>) -> bool {
    x509_parser::parse_x509_certificate(der).is_ok()
}

fn schemas(spec: &Value, errors: &mut Vec<FieldError>) {
    let versions = spec["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let first = &versions.first().unwrap_or(&Value::Null)["schema"]["openAPIV3Schema"];
    // A schema that all versions share is reported once, as in the real server's internal form.
    let shared = versions
        .iter()
        .all(|version| version["schema"]["openAPIV3Schema"] == *first);
    for (index, version) in versions.iter().enumerate() {
        if shared && index > 0 {
            break;
        }
        let field = if shared {
            "spec.validation.openAPIV3Schema".to_owned()
        } else {
            format!("spec.versions[{index}].schema.openAPIV3Schema")
        };
        let schema = &version["schema"]["openAPIV3Schema"];
        structural(schema, &field, true, errors);
        errors.extend(rule_problems(schema, &field));
    }
}

fn structural(schema: &Value, field: &str, root: bool, errors: &mut Vec<FieldError>) {
    if !schema.is_object() {
        return;
    }
    let typed = schema["type"].is_string()
        || schema["x-kubernetes-int-or-string"] == true
        || schema["x-kubernetes-preserve-unknown-fields"] == true;
    if root && schema["type"] != "object" {
        errors.push(FieldError::new(
            format!("{field}.type"),
            Violation::Required,
            "must not be empty at the root",
        ));
    }
    if schema["type"] == "array" && !schema["items"].is_object() {
        errors.push(FieldError::new(
            format!("{field}.items"),
            Violation::Required,
            "must be specified",
        ));
    }
    if schema["items"].is_object() {
        let items = format!("{field}.items");
        if !schema["items"]["type"].is_string()
            && schema["items"]["x-kubernetes-int-or-string"] != true
            && schema["items"]["x-kubernetes-preserve-unknown-fields"] != true
        {
            let detail = "must not be empty for specified array items";
            errors.push(FieldError::new(
                format!("{items}.type"),
                Violation::Required,
                detail,
            ));
        }
        structural(&schema["items"], &items, false, errors);
    }
    if !root && !typed && !field.ends_with(".items") {
        let detail = "must not be empty for specified object fields";
        errors.push(FieldError::new(
            format!("{field}.type"),
            Violation::Required,
            detail,
        ));
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        structural(property, &format!("{field}.properties[{name}]"), false, errors);
    }
    if schema["additionalProperties"].is_object() {
        structural(
            &schema["additionalProperties"],
            &format!("{field}.additionalProperties"),
            false,
            errors,
        );
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn crd(change: impl FnOnce(&mut Value)) -> Value {
        let mut crd = json!({"metadata": {"name": "probes.g.example.com"}, "spec": {
            "group": "g.example.com", "scope": "Namespaced",
            "names": {"plural": "probes", "singular": "probe", "kind": "Probe", "listKind": "ProbeList"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                          "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
        super::super::default(&mut crd);
        change(&mut crd);
        crd
    }

    fn problems(crd: &Value, old: Option<&Value>) -> Vec<String> {
        validate(crd, old).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_valid_crd_passes_and_errors_name_the_field() {
        assert_eq!(problems(&crd(|_| {}), None), [""; 0]);
        let no_storage = problems(
            &crd(|crd| crd["spec"]["versions"][0]["storage"] = json!(false)),
            None,
        );
        assert!(no_storage[0].ends_with("must have exactly one version marked as storage version"));
        assert_eq!(
            problems(
                &crd(|crd| crd["spec"]["conversion"] = json!({"strategy": "Webhook"})),
                None
            ),
            [
                "spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook",
                "spec.conversion.conversionReviewVersions: Required value"
            ]
        );
        let bad = crd(|crd| {
            crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] =
                json!({"spec": {"type": "object", "properties": {"bad": {"items": {}}}}});
        });
        assert_eq!(
            problems(&bad, None),
            [
                "spec.validation.openAPIV3Schema.properties[spec].properties[bad].items.type: Required value: must \
                 not be empty for specified array items",
                "spec.validation.openAPIV3Schema.properties[spec].properties[bad].type: Required value: must not be \
                 empty for specified object fields"
            ]
        );
    }

    #[test]
    fn a_valid_bundle_must_not_become_invalid() {
        let with = |bundle: Value| {
            crd(|crd| {
                crd["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
                    "conversionReviewVersions": ["v1"],
                    "clientConfig": {"caBundle": bundle, "service": {"namespace": "n", "name": "s", "port": 443}}}});
            })
        };
        let (good, junk) = (with(json!(null)), with(json!("anVuaw==")));
        assert_eq!(problems(&junk, None), [""; 0], "accepted on create");
        assert_eq!(
            problems(&junk, Some(&junk)),
            [""; 0],
            "an invalid bundle may stay invalid"
        );
        assert_eq!(
            problems(&junk, Some(&good)),
            [
                "spec.conversion.webhookClientConfig.caBundle: Invalid value: \"anVuaw==\": unable to load root \
              certificates: unable to parse bytes as PEM block"
            ]
        );
    }
}
