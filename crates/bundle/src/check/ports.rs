//! Ports of webhooks, which become the ports of a Service.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windlass_object::{Problem, object};

use super::webhook_definitions::webhook_definitions;
use crate::parse::{Bundle, DeploymentSpec, WebhookDefinition, rule};

pub(super) fn check(bundle: &Bundle, problems: &mut Vec<Problem>) {
    let mut targets: BTreeMap<(&str, i64), (Value, &str)> = BTreeMap::new();
    for (path, webhook) in webhook_definitions(bundle) {
        let (name, deployment) = (webhook.generate_name(), webhook.deployment_name());
        if let Some(port) = webhook.0.get("containerPort").and_then(Value::as_i64)
            && !is_port(port)
        {
            let message = format!("containerPort {port} of webhook '{name}' must be between 1 and 65535");
            problems.push(
                bundle
                    .csv
                    .problem(&path.field("containerPort"), rule::WEBHOOK_PORT, message),
            );
            continue;
        }
        if let Err(message) = check_target_port(bundle, webhook) {
            let message = format!("targetPort of webhook '{name}' {message}");
            problems.push(
                bundle
                    .csv
                    .problem(&path.field("targetPort"), rule::WEBHOOK_TARGET_PORT, message),
            );
            continue;
        }
        let port = webhook.port();
        let target = webhook.target_port().cloned().unwrap_or_else(|| json!(port));
        let (first, other) = targets
            .entry((deployment, port))
            .or_insert_with(|| (target.clone(), name));
        if *first != target {
            let message = format!(
                "port {port} of deployment '{deployment}' has targetPort {first} of webhook '{other}' and targetPort \
                 {target} of webhook '{name}'"
            );
            problems.push(
                bundle
                    .csv
                    .problem(&path.field("targetPort"), rule::WEBHOOK_PORT_CLASH, message),
            );
        }
    }
}

fn is_port(port: i64) -> bool {
    (1..=65535).contains(&port)
}

/// The port must be a number or the name of a container port: any other name never gets an endpoint.
fn check_target_port(bundle: &Bundle, webhook: WebhookDefinition<'_>) -> Result<(), String> {
    let Some(target) = webhook.target_port() else {
        return Ok(());
    };
    if let Some(port) = target.as_i64() {
        return if is_port(port) {
            Ok(())
        } else {
            Err(format!("must be between 1 and 65535, not {port}"))
        };
    }
    let name = target.as_str().unwrap_or_default();
    let deployment = webhook.deployment_name();
    let Some(spec) = bundle
        .csv()
        .deployments()
        .find(|known| known.name() == deployment)
        .and_then(DeploymentSpec::spec)
    else {
        return Ok(());
    };
    // Sidecars are initContainers.
    let known = ["/template/spec/containers", "/template/spec/initContainers"]
        .into_iter()
        .flat_map(|containers| object::items(spec, containers))
        .flat_map(|container| object::items(container, "/ports"))
        .any(|port| object::text(port, "/name") == Some(name));
    if known {
        return Ok(());
    }
    Err(format!(
        "refers to port '{name}', which no container of deployment '{deployment}' has"
    ))
}
