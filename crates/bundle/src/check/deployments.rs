//! Deployments: their names, selectors and containers.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_object::{JsonPath, Problem, object};

use super::names;
use crate::parse::{Bundle, DeploymentSpec, rule};

pub(super) fn check(bundle: &Bundle, problems: &mut Vec<Problem>) {
    let mut report = |path: &JsonPath, rule, message| problems.push(bundle.csv.problem(path, rule, message));
    let list = JsonPath::from_fields("spec.install.spec.deployments");
    let mut seen = BTreeSet::new();
    for (index, deployment) in bundle.csv().deployments().enumerate() {
        let path = list.item(index);
        let name = deployment.name();
        if !seen.insert(name) {
            let message =
                format!("cluster service version contains duplicate strategy deployment spec '{name}'");
            report(&path.field("name"), rule::DEPLOYMENT_DUPLICATE, message);
        }
        let messages = names::subdomain(name);
        if !messages.is_empty() {
            let messages = messages.join(", ");
            let message =
                format!("invalid cluster service version strategy deployment name '{name}': {messages}");
            report(&path.field("name"), rule::DEPLOYMENT_NAME, message);
        }
        if let Err(message) = check_selector(deployment) {
            let message = format!("deployment '{name}' {message}");
            let path = path.field("spec").field("selector");
            report(&path, rule::DEPLOYMENT_SELECTOR, message);
        }
        if let Err(message) = check_containers(deployment) {
            let message = format!("deployment '{name}' {message}");
            let path = path
                .field("spec")
                .field("template")
                .field("spec")
                .field("containers");
            report(&path, rule::DEPLOYMENT_CONTAINERS, message);
        }
    }
}

/// A Deployment needs a selector that selects its own pods (`k8s.io/kubernetes/pkg/apis/apps/validation`).
fn check_selector(deployment: DeploymentSpec<'_>) -> Result<(), String> {
    let spec = deployment.spec().unwrap_or(&Value::Null);
    let selector = &spec["selector"];
    let desired = selector["matchLabels"].as_object();
    let expressions = object::items(selector, "/matchExpressions");
    if desired.is_none_or(serde_json::Map::is_empty) && expressions.is_empty() {
        return Err("has no selector".to_owned());
    }
    let label = |name: &str| spec.pointer("/template/metadata/labels")?.get(name)?.as_str();
    for (name, value) in desired.into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        if label(name) != Some(value) {
            return Err(format!(
                "has a selector '{name}: {value}' that its pods do not match"
            ));
        }
    }
    for expression in expressions {
        let key = object::text(expression, "/key").unwrap_or_default();
        let operator = object::text(expression, "/operator").unwrap_or_default();
        let values = object::items(expression, "/values");
        let listed = || values.iter().any(|value| value.as_str() == label(key));
        let selected = match operator {
            "In" => label(key).is_some() && listed(),
            "NotIn" => label(key).is_none() || !listed(),
            "Exists" => label(key).is_some(),
            "DoesNotExist" => label(key).is_none(),
            _ => return Err(format!("has a selector with the unknown operator '{operator}'")),
        };
        if !selected {
            return Err(format!(
                "has a selector '{key} {operator}' that its pods do not match"
            ));
        }
    }
    Ok(())
}

fn check_containers(deployment: DeploymentSpec<'_>) -> Result<(), String> {
    let spec = deployment.spec().unwrap_or(&Value::Null);
    let containers = object::items(spec, "/template/spec/containers");
    if containers.is_empty() {
        return Err("has no containers".to_owned());
    }
    let mut seen = BTreeSet::new();
    let all = containers
        .iter()
        .chain(object::items(spec, "/template/spec/initContainers"));
    for container in all {
        let name = object::text(container, "/name").unwrap_or_default();
        if name.is_empty() {
            return Err("has a container without a name".to_owned());
        }
        if !seen.insert(name) {
            return Err(format!("has two containers '{name}'"));
        }
    }
    Ok(())
}
