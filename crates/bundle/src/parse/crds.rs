//! The CustomResourceDefinitions in a bundle or in a file, by name.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windlass_object::{JsonPath, Problem, Rule, object};

use super::{
    WebhookDefinition, WebhookType,
    model::{Bundle, Files, Manifest},
    parsed_bundle::read_crds,
    rule,
};

/// Parses a bundle and returns its CRDs as an install leaves them: with conversion by webhook where a webhook
/// definition declares it, and without the conversion in their manifests.
///
/// # Errors
///
/// Everything that makes the bundle unreadable.
pub fn from_bundle(files: &Files) -> Result<BTreeMap<String, Value>, Vec<Problem>> {
    let bundle = Bundle::parse(files)?;
    let converted: Vec<&str> = bundle
        .csv()
        .webhooks()
        .filter(|webhook| webhook.webhook_type() == Some(WebhookType::Conversion))
        .flat_map(WebhookDefinition::conversion_crds)
        .collect();
    let crds = by_name(bundle.crds.clone())?;
    let crds = crds.into_iter().map(|(name, crd)| {
        let several = object::items(&crd, "/spec/versions").len() > 1;
        let converts = several && converted.contains(&name.as_str());
        (name, with_conversion(crd, converts))
    });
    Ok(crds.collect())
}

/// Parses the CRDs in a YAML or JSON file; skips its other objects.
///
/// # Errors
///
/// Everything that makes the file or a CRD in it unreadable, and a file without CRDs.
pub fn from_file(file: &str, bytes: &[u8]) -> Result<BTreeMap<String, Value>, Vec<Problem>> {
    let manifests = read_crds(file, bytes)?;
    if manifests.is_empty() {
        let message = "contains no CustomResourceDefinition";
        return Err(vec![Problem::in_bundle(file, rule::CRD_MISSING, message)]);
    }
    by_name(manifests)
}

/// Sets the conversion that `crd` has once an install is complete: by webhook, or none.
pub fn with_conversion(mut crd: Value, converts: bool) -> Value {
    if let Some(spec) = crd.get_mut("spec").and_then(Value::as_object_mut) {
        let strategy = if converts { "Webhook" } else { "None" };
        spec.insert("conversion".to_owned(), json!({"strategy": strategy}));
    }
    crd
}

fn by_name(manifests: Vec<Manifest>) -> Result<BTreeMap<String, Value>, Vec<Problem>> {
    let mut crds = BTreeMap::new();
    let mut problems = Vec::new();
    for manifest in manifests {
        let name = manifest.name().to_owned();
        let known = crds.contains_key(&name);
        let mut report = |field: &str, rule: Rule, message: String| {
            problems.push(manifest.problem(&JsonPath::from_fields(field), rule, message));
        };
        let api_version = manifest.object.get("apiVersion").and_then(Value::as_str);
        if api_version != Some("apiextensions.k8s.io/v1") {
            let message = "must be apiextensions.k8s.io/v1: other versions have different fields".to_owned();
            report("apiVersion", rule::CRD_API_VERSION, message);
        }
        if name.is_empty() {
            report("metadata.name", rule::CRD_NAME, "is missing".to_owned());
        } else if known {
            report(
                "metadata.name",
                rule::CRD_DUPLICATE,
                format!("'{name}' occurs twice"),
            );
        } else {
            crds.insert(name, manifest.object);
        }
    }
    if problems.is_empty() {
        Ok(crds)
    } else {
        Err(problems)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_in_crd_files_have_a_path_and_reason() {
        let crd = |version: &str, rest: &str| {
            format!("{{kind: CustomResourceDefinition, apiVersion: apiextensions.k8s.io/{version}, {rest}}}")
        };
        let schema =
            "metadata: {name: a}, spec: {versions: [{name: v1, schema: {openAPIV3Schema: {properties: 5}}}]}";
        let other_version =
            "$.apiVersion: must be apiextensions.k8s.io/v1: other versions have different fields";
        for (text, expected) in [
            ("a: [", &["$: unclosed bracket '[' at line 1, column 4"][..]),
            (
                "{kind: Service, apiVersion: v1}",
                &["$: contains no CustomResourceDefinition"],
            ),
            (
                "kind: CustomResourceDefinition",
                &[other_version, "$.metadata.name: is missing"],
            ),
            (&crd("v1beta1", "metadata: {name: a}"), &[other_version]),
            (
                &crd("v1", "metadata: {name: 1}, spec: {versions: {}}"),
                &[
                    "$.metadata.name: must be a string, not a number",
                    "$.spec.versions: must be a list, not a mapping",
                ],
            ),
            ("{kind: List, items: 1}", &["$.items: must be a list"]),
            (
                &crd("v1", schema),
                &[
                    "$.spec.versions[0].schema.openAPIV3Schema.properties: invalid type: integer `5`, expected a map",
                ],
            ),
        ] {
            let problems = from_file("crd.yaml", text.as_bytes()).unwrap_err();
            let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
            let expected: Vec<String> = expected
                .iter()
                .map(|problem| format!("crd.yaml: {problem}"))
                .collect();
            assert_eq!(problems, expected, "{text}");
        }
    }
}
