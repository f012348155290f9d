//! The definitions in a bundle or in a file.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::domain::bundle::{
    self, Bundle, Files, JsonPath, Manifest, Problem, WebhookDefinition, WebhookType, read_definitions, rule,
};

/// CustomResourceDefinitions by name.
pub type Definitions = BTreeMap<String, Value>;

/// The definitions of a bundle as an install would have them: with conversion by webhook where a webhook definition
/// says so, and without the conversion that is written in them.
///
/// # Errors
///
/// Everything that keeps the bundle from being understood.
pub fn from_bundle(files: &Files) -> Result<Definitions, Vec<Problem>> {
    let bundle = Bundle::parse(files)?;
    let converted: Vec<&str> = bundle
        .csv()
        .webhooks()
        .filter(|webhook| webhook.webhook_type() == Some(WebhookType::Conversion))
        .flat_map(WebhookDefinition::conversion_crds)
        .collect();
    let definitions = by_name(bundle.crds.clone())?;
    let definitions = definitions.into_iter().map(|(name, definition)| {
        let converts = converted.contains(&name.as_str());
        (name, with_conversion(definition, converts))
    });
    Ok(definitions.collect())
}

/// The definitions in a file of YAML or JSON; its other objects are passed over.
///
/// # Errors
///
/// What keeps the file or a definition in it from being understood, and that there is none.
pub fn from_file(file: &str, bytes: &[u8]) -> Result<Definitions, Vec<Problem>> {
    let manifests = read_definitions(file, bytes)?;
    if manifests.is_empty() {
        let message = "holds no CustomResourceDefinition";
        return Err(vec![Problem::of_bundle(file, rule::CRD_MISSING, message)]);
    }
    by_name(manifests)
}

/// `definition` with conversion by webhook, or with none.
pub fn with_conversion(mut definition: Value, converts: bool) -> Value {
    if let Some(spec) = definition.get_mut("spec").and_then(Value::as_object_mut) {
        let strategy = if converts { "Webhook" } else { "None" };
        spec.insert("conversion".to_owned(), json!({"strategy": strategy}));
    }
    definition
}

fn by_name(manifests: Vec<Manifest>) -> Result<Definitions, Vec<Problem>> {
    let mut definitions = Definitions::new();
    let mut problems = Vec::new();
    for manifest in manifests {
        let name = manifest.name().to_owned();
        let known = definitions.contains_key(&name);
        let mut report = |field: &str, rule: bundle::Rule, message: String| {
            problems.push(manifest.problem(&JsonPath::of(field), rule, message));
        };
        let api_version = manifest.object.get("apiVersion").and_then(Value::as_str);
        if api_version != Some("apiextensions.k8s.io/v1") {
            let message = "must be apiextensions.k8s.io/v1: other versions have other fields".to_owned();
            report("apiVersion", rule::CRD_API_VERSION, message);
        }
        if name.is_empty() {
            report("metadata.name", rule::CRD_NAME, "is missing".to_owned());
        } else if known {
            report(
                "metadata.name",
                rule::CRD_DUPLICATE,
                format!("'{name}' is there twice"),
            );
        } else {
            definitions.insert(name, manifest.object);
        }
    }
    if problems.is_empty() {
        Ok(definitions)
    } else {
        Err(problems)
    }
}
