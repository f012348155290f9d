//! `matchConditions`: CEL expressions that decide whether a webhook is called (KEP-3716).

use kube_cel::{AdmissionRequest, GroupVersionKind, GroupVersionResource, VapEvaluator, VapExpression};
use serde_json::Value;

use super::request::ReviewRequest;

/// Marks a condition that evaluates to false, to tell it from one that fails.
const FALSE: &str = "the condition is false";

/// Whether a webhook is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MatchResult {
    /// Every condition is true.
    Call,
    /// A condition is false.
    Skip,
    /// No condition is false, and at least one cannot be evaluated: the failurePolicy decides.
    Failed(String),
}

fn expressions(webhook: &Value) -> Vec<VapExpression> {
    let conditions = webhook["matchConditions"].as_array().into_iter().flatten();
    conditions
        .map(|condition| VapExpression {
            expression: condition["expression"].as_str().unwrap_or_default().to_owned(),
            message: Some(FALSE.to_owned()),
            message_expression: None,
        })
        .collect()
}

/// Returns the conditions of a webhook that do not compile: index, expression and error.
pub fn problems(webhook: &Value) -> Vec<(usize, String, String)> {
    let expressions = expressions(webhook);
    let compiled = VapEvaluator::builder().build().compile_expressions(&expressions);
    let failed =
        compiled
            .into_iter()
            .zip(&expressions)
            .enumerate()
            .filter_map(|(index, (compiled, expression))| {
                let error = compiled.err()?;
                let source = std::error::Error::source(&error)
                    .map(ToString::to_string)
                    .unwrap_or_default();
                Some((
                    index,
                    expression.expression.clone(),
                    format!("compilation failed: {source}"),
                ))
            });
    failed.collect()
}

/// Evaluates a webhook's conditions for a request.
pub(super) fn evaluate(webhook: &Value, request: &ReviewRequest, object: &Value) -> MatchResult {
    let expressions = expressions(webhook);
    if expressions.is_empty() {
        return MatchResult::Call;
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let groups = request.user["groups"]
        .as_array()
        .into_iter()
        .flatten()
        .map(text)
        .collect();
    let evaluator = VapEvaluator::builder()
        .object(object.clone())
        .old_object(request.old_object.clone())
        .request(AdmissionRequest {
            operation: request.operation.to_owned(),
            username: text(&request.user["username"]),
            uid: text(&request.user["uid"]),
            groups,
            name: request.name.clone(),
            namespace: request.namespace.clone(),
            dry_run: request.dry_run,
            kind: GroupVersionKind {
                group: request.resource.group.clone(),
                version: request.resource.version.clone(),
                kind: request.kind.clone(),
            },
            resource: GroupVersionResource {
                group: request.resource.group.clone(),
                version: request.resource.version.clone(),
                resource: request.resource.resource.clone(),
            },
        })
        .build();
    let results = evaluator.evaluate(&expressions);
    let messages = || {
        results
            .iter()
            .filter(|result| !result.passed)
            .filter_map(|result| result.message.as_deref())
    };
    if messages().any(|message| message == FALSE) {
        return MatchResult::Skip;
    }
    messages().next().map_or(MatchResult::Call, |message| {
        MatchResult::Failed(message.to_owned())
    })
}
