//! Webhook definitions of every type: types, names, Deployments, paths and review versions.

use std::collections::BTreeMap;

use windlass_object::{JsonPath, Problem, Rule, object};

use super::{names, webhook_definitions::webhook_definitions};
use crate::parse::{Bundle, WebhookDefinition, WebhookType, rule};

/// The review versions that current API servers send, for admission and for conversion.
const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

pub(super) fn check(bundle: &Bundle, problems: &mut Vec<Problem>) {
    for (path, webhook) in webhook_definitions(bundle) {
        let name = webhook.generate_name();
        let mut problem = |field: &str, rule: Rule, message: String| {
            problems.push(bundle.csv.problem(&path.field(field), rule, message));
        };
        check_type(webhook, &mut problem);
        check_name(webhook, &mut problem);
        check_deployment(bundle, webhook, &mut problem);
        if let Err(message) = check_path(webhook.path().unwrap_or_default()) {
            problem(
                "webhookPath",
                rule::WEBHOOK_PATH,
                format!("path of webhook '{name}' {message}"),
            );
        }
        check_side_effects(webhook, &mut problem);
        check_review_versions(webhook, &mut problem);
    }
    check_duplicates(bundle, problems);
}

pub(super) fn type_name<'a>(webhook: WebhookDefinition<'a>) -> &'a str {
    object::text(webhook.0, "/type").unwrap_or_default()
}

fn check_type(webhook: WebhookDefinition<'_>, problem: &mut impl FnMut(&str, Rule, String)) {
    if webhook.webhook_type().is_some() {
        return;
    }
    let known = WebhookType::ALL.map(WebhookType::name).join(", ");
    let message = format!(
        "webhook '{}' has unknown type '{}': it must be one of {known}",
        webhook.generate_name(),
        type_name(webhook)
    );
    problem("type", rule::WEBHOOK_TYPE, message);
}

fn check_name(webhook: WebhookDefinition<'_>, problem: &mut impl FnMut(&str, Rule, String)) {
    let name = webhook.generate_name();
    let messages = names::subdomain(name);
    if !messages.is_empty() {
        let type_name = type_name(webhook);
        let messages = messages.join(",");
        let message = format!("webhook of type '{type_name}' has invalid name '{name}': {messages}");
        problem("generateName", rule::WEBHOOK_NAME, message);
        return;
    }
    // No object in the cluster has the name of a conversion webhook.
    if webhook.webhook_type() == Some(WebhookType::Conversion) {
        return;
    }
    if name.split('.').count() < 3 {
        let message = format!(
            "name '{name}' of an admission webhook should be a domain with at least three segments separated by dots"
        );
        problem("generateName", rule::WEBHOOK_NAME_QUALIFIED, message);
    }
}

fn check_deployment(
    bundle: &Bundle,
    webhook: WebhookDefinition<'_>,
    problem: &mut impl FnMut(&str, Rule, String),
) {
    let deployment = webhook.deployment_name();
    if bundle.csv().deployments().any(|known| known.name() == deployment) {
        return;
    }
    let message = format!(
        "webhook of type '{}' with name '{}' references non-existent deployment '{deployment}'",
        type_name(webhook),
        webhook.generate_name()
    );
    problem("deploymentName", rule::WEBHOOK_DEPLOYMENT, message);
}

/// `ValidateWebhookService` of `k8s.io/apiserver/pkg/util/webhook/validation.go`.
fn check_path(path: &str) -> Result<(), String> {
    if matches!(path, "" | "/") {
        return Ok(());
    }
    let Some(segments) = path.strip_prefix('/') else {
        return Err(format!("must start with '/': '{path}'"));
    };
    let segments = segments.strip_suffix('/').unwrap_or(segments);
    for segment in segments.split('/') {
        if segment.is_empty() {
            return Err(format!("must not have an empty segment: '{path}'"));
        }
        let messages = names::subdomain(segment);
        if !messages.is_empty() {
            return Err(format!(
                "has invalid segment '{segment}': {}",
                messages.join(", ")
            ));
        }
    }
    Ok(())
}

fn check_side_effects(webhook: WebhookDefinition<'_>, problem: &mut impl FnMut(&str, Rule, String)) {
    let value = object::text(webhook.0, "/sideEffects").unwrap_or_default();
    let name = webhook.generate_name();
    let message = match (value, webhook.webhook_type()) {
        ("", _) => format!("webhook '{name}' has no sideEffects"),
        ("None" | "NoneOnDryRun", _) | ("Some" | "Unknown", Some(WebhookType::Conversion)) => return,
        _ => format!("sideEffects of webhook '{name}' must be None or NoneOnDryRun, not '{value}'"),
    };
    problem("sideEffects", rule::WEBHOOK_SIDE_EFFECTS, message);
}

/// For a conversion webhook, these become the `conversionReviewVersions`.
fn check_review_versions(webhook: WebhookDefinition<'_>, problem: &mut impl FnMut(&str, Rule, String)) {
    let names = webhook.review_versions();
    let name = webhook.generate_name();
    let message = if names.is_empty() {
        format!("webhook '{name}' has no admissionReviewVersions")
    } else if !names.iter().any(|version| REVIEW_VERSIONS.contains(version)) {
        let (names, known) = (names.join(", "), REVIEW_VERSIONS.join(", "));
        format!("admissionReviewVersions [{names}] of webhook '{name}' must include at least one of {known}")
    } else if let Some(twice) = duplicate(&names) {
        format!("admissionReviewVersions of webhook '{name}' has '{twice}' twice")
    } else if let Some(invalid) = names.iter().find(|version| !names::service(version).is_empty()) {
        format!("admissionReviewVersions of webhook '{name}' has invalid version '{invalid}'")
    } else {
        return;
    };
    problem("admissionReviewVersions", rule::WEBHOOK_REVIEW_VERSIONS, message);
}

fn duplicate<'a>(names: &[&'a str]) -> Option<&'a str> {
    let mut positions = names.iter().enumerate();
    positions
        .find(|(index, name)| names[..*index].contains(name))
        .map(|(_, name)| *name)
}

/// Names are unique per type, as in OLM v1: configurations of two types may have the same name.
fn check_duplicates(bundle: &Bundle, problems: &mut Vec<Problem>) {
    let mut seen: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (path, webhook) in webhook_definitions(bundle) {
        let (name, type_name) = (webhook.generate_name(), type_name(webhook));
        let path: JsonPath = path.field("generateName");
        let types = seen.entry(name).or_default();
        if types.contains(&type_name) {
            let message = format!("duplicate webhook '{name}' of type '{type_name}'");
            problems.push(bundle.csv.problem(&path, rule::WEBHOOK_DUPLICATE, message));
        }
        types.push(type_name);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::render::{self, sample};

    #[test]
    fn names_are_unique_per_webhook_type() {
        let mut bundle = sample::bundle();
        let name = format!("{}.example.com", "a".repeat(60));
        for index in 0..3 {
            bundle.csv.object["spec"]["webhookdefinitions"][index]["generateName"] = json!(name);
        }
        let rules = |bundle: &Bundle| {
            let mut problems = Vec::new();
            check(bundle, &mut problems);
            problems
                .into_iter()
                .map(|problem| problem.rule)
                .collect::<Vec<_>>()
        };
        assert_eq!(rules(&bundle), [""; 0]);
        let rendered = render::render(&bundle, &sample::options("ns")).unwrap();
        assert_eq!(
            sample::keys(&rendered.callers),
            [
                format!("ValidatingWebhookConfiguration {name}"),
                format!("MutatingWebhookConfiguration {name}"),
            ]
        );
        bundle.csv.object["spec"]["webhookdefinitions"][1]["type"] = json!("ValidatingAdmissionWebhook");
        assert_eq!(rules(&bundle), [rule::WEBHOOK_DUPLICATE.name]);
    }
}
