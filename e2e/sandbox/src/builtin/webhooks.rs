//! Validation of webhook configurations.

use std::collections::BTreeSet;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::{
    admission,
    field::{FieldError, Violation},
};

/// Adds the errors of the webhooks of a configuration.
pub(super) fn validate(object: &Value, errors: &mut Vec<FieldError>) {
    let mut names = BTreeSet::new();
    for (index, webhook) in object["webhooks"].as_array().into_iter().flatten().enumerate() {
        let field = |name: &str| format!("webhooks[{index}].{name}");
        name(webhook, &mut names, field("name"), errors);
        for (condition, expression, problem) in admission::condition_problems(webhook) {
            let place = field(&format!("matchConditions[{condition}].expression"));
            errors.push(FieldError::new(
                place,
                Violation::Invalid(json!(expression)),
                problem,
            ));
        }
        side_effects(webhook, field("sideEffects"), errors);
        review_versions(webhook, field("admissionReviewVersions"), errors);
        if !webhook["timeoutSeconds"]
            .as_i64()
            .is_some_and(|seconds| (1..=30).contains(&seconds))
        {
            let detail = "the timeout value must be between 1 and 30 seconds";
            errors.push(FieldError::new(
                field("timeoutSeconds"),
                Violation::Invalid(webhook["timeoutSeconds"].clone()),
                detail,
            ));
        }
        client_config(&webhook["clientConfig"], &field("clientConfig"), errors);
    }
}

fn name<'a>(webhook: &'a Value, names: &mut BTreeSet<&'a str>, field: String, errors: &mut Vec<FieldError>) {
    let name = webhook["name"].as_str().unwrap_or_default();
    if name.is_empty() {
        errors.push(FieldError::new(field, Violation::Required, ""));
        return;
    }
    if name.split('.').count() < 3 {
        let detail = "should be a domain with at least three segments separated by dots";
        errors.push(FieldError::new(
            field.clone(),
            Violation::Invalid(json!(name)),
            detail,
        ));
    }
    if !names.insert(name) {
        errors.push(FieldError::new(field, Violation::Duplicate(json!(name)), ""));
    }
}

fn side_effects(webhook: &Value, field: String, errors: &mut Vec<FieldError>) {
    match webhook["sideEffects"].as_str() {
        None => errors.push(FieldError::new(
            field,
            Violation::Required,
            "must specify one of None, NoneOnDryRun",
        )),
        Some("None" | "NoneOnDryRun") => {}
        Some(other) => {
            let detail = "supported values: \"None\", \"NoneOnDryRun\"";
            errors.push(FieldError::new(
                field,
                Violation::Unsupported(json!(other)),
                detail,
            ));
        }
    }
}

fn review_versions(webhook: &Value, field: String, errors: &mut Vec<FieldError>) {
    let versions = webhook["admissionReviewVersions"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    if versions.is_empty() {
        let detail = "must specify one of v1, v1beta1";
        errors.push(FieldError::new(field, Violation::Required, detail));
    } else if !versions
        .iter()
        .any(|version| version == "v1" || version == "v1beta1")
    {
        let detail = "must include at least one of v1, v1beta1";
        errors.push(FieldError::new(
            field,
            Violation::Invalid(json!(versions)),
            detail,
        ));
    }
}

fn client_config(config: &Value, field: &str, errors: &mut Vec<FieldError>) {
    if config["service"].is_object() == config["url"].is_string() {
        let detail = "exactly one of url or service is required";
        errors.push(FieldError::new(field, Violation::Required, detail));
    }
    if let Some(bundle) = config["caBundle"].as_str()
        && STANDARD.decode(bundle).is_err()
    {
        errors.push(FieldError::new(
            format!("{field}.caBundle"),
            Violation::Invalid(json!(bundle)),
            "illegal base64 data",
        ));
    }
}
