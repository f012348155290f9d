//! Fields that only admission webhooks have (`k8s.io/kubernetes/pkg/apis/admissionregistration/validation`).

use serde_json::Value;
use windlass_object::{JsonPath, Problem, Rule, object};

use super::webhook_definitions::webhook_definitions;
use crate::parse::{Bundle, WebhookType, rule};

/// A field with a fixed set of values; absent and empty mean the default.
const CHOICES: [(&str, Rule, [&str; 2]); 3] = [
    ("failurePolicy", rule::WEBHOOK_FAILURE_POLICY, ["Fail", "Ignore"]),
    ("matchPolicy", rule::WEBHOOK_MATCH_POLICY, ["Exact", "Equivalent"]),
    (
        "reinvocationPolicy",
        rule::WEBHOOK_REINVOCATION_POLICY,
        ["Never", "IfNeeded"],
    ),
];

pub(super) fn check(bundle: &Bundle, problems: &mut Vec<Problem>) {
    let mut report = |path: &JsonPath, rule, message| problems.push(bundle.csv.problem(path, rule, message));
    for (path, webhook) in webhook_definitions(bundle) {
        let Some(webhook_type @ (WebhookType::Mutating | WebhookType::Validating)) = webhook.webhook_type()
        else {
            continue;
        };
        let name = webhook.generate_name();
        for (field, rule, values) in CHOICES {
            // Validating webhooks are not reinvoked.
            if field == "reinvocationPolicy" && webhook_type == WebhookType::Validating {
                continue;
            }
            let value = object::text(webhook.0, &format!("/{field}")).unwrap_or_default();
            if !value.is_empty() && !values.contains(&value) {
                let message = format!(
                    "{field} of webhook '{name}' must be {}, not '{value}'",
                    values.join(" or ")
                );
                report(&path.field(field), rule, message);
            }
        }
        if let Some(timeout) = webhook.0.get("timeoutSeconds").and_then(Value::as_i64)
            && !(1..=30).contains(&timeout)
        {
            let message =
                format!("timeoutSeconds of webhook '{name}' must be between 1 and 30, not {timeout}");
            report(&path.field("timeoutSeconds"), rule::WEBHOOK_TIMEOUT, message);
        }
    }
}
