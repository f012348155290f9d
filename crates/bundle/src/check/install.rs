//! The package, the name and version of the ClusterServiceVersion, and how it may be installed.

use std::collections::{BTreeMap, BTreeSet};

use windlass_object::{JsonPath, Problem, object, rfc1123::LABEL_LENGTH};

use super::names;
use crate::parse::{Bundle, InstallMode, rule};
use crate::upgrade::Version;

pub(super) fn check(bundle: &Bundle, problems: &mut Vec<Problem>) {
    check_package(bundle, problems);
    check_names(bundle, problems);
    check_versions(bundle, problems);
    check_strategy(bundle, problems);
    check_install_modes(bundle, problems);
    check_api_services(bundle, problems);
}

fn check_package(bundle: &Bundle, problems: &mut Vec<Problem>) {
    if bundle.package.is_empty() {
        problems.push(Problem {
            file: "metadata/annotations.yaml".to_owned(),
            path: "$.annotations['operators.operatorframework.io.bundle.package.v1']".to_owned(),
            rule: rule::PACKAGE_MISSING.name,
            message: "package name is empty".to_owned(),
        });
    }
}

/// The name becomes a label value of every installed object (`operator-framework/api`,
/// `pkg/validation/internal/csv.go`).
fn check_names(bundle: &Bundle, problems: &mut Vec<Problem>) {
    let csv = bundle.csv();
    let replaces = csv.replaces().map(|name| ("spec.replaces", name));
    for (field, name) in [("metadata.name", csv.name())].into_iter().chain(replaces) {
        let mut messages = names::subdomain(name);
        if name.len() > LABEL_LENGTH {
            messages.push(format!("must be no more than {LABEL_LENGTH} characters"));
        }
        if !messages.is_empty() {
            let message = format!("{field} \"{name}\" is invalid: {}", messages.join(", "));
            problems.push(
                bundle
                    .csv
                    .problem(&JsonPath::from_fields(field), rule::CSV_NAME, message),
            );
        }
    }
}

fn check_versions(bundle: &Bundle, problems: &mut Vec<Problem>) {
    for field in ["version", "minKubeVersion"] {
        let Some(text) = object::text(&bundle.csv.object, &format!("/spec/{field}")) else {
            continue;
        };
        if !text.is_empty() && Version::parse(text).is_none() {
            let message = format!("csv.spec.{field} has an invalid value: {text}");
            problems.push(bundle.csv.problem(
                &JsonPath::from_fields("spec").field(field),
                rule::CSV_VERSION,
                message,
            ));
        }
    }
}

fn check_strategy(bundle: &Bundle, problems: &mut Vec<Problem>) {
    let Some(strategy) = object::text(&bundle.csv.object, "/spec/install/strategy") else {
        return;
    };
    if !matches!(strategy, "" | "deployment") {
        let message = format!("install strategy '{strategy}' is unknown: it must be 'deployment'");
        let path = JsonPath::from_fields("spec.install.strategy");
        problems.push(bundle.csv.problem(&path, rule::INSTALL_STRATEGY, message));
    }
}

fn check_install_modes(bundle: &Bundle, problems: &mut Vec<Problem>) {
    let list = JsonPath::from_fields("spec.installModes");
    let mut problem = |path: &JsonPath, message: String| {
        problems.push(bundle.csv.problem(path, rule::INSTALL_MODES, message));
    };
    let modes = object::items(&bundle.csv.object, "/spec/installModes");
    if modes.is_empty() {
        problem(&list, "install modes not found".to_owned());
        return;
    }
    let mut seen = BTreeSet::new();
    for (index, mode) in modes.iter().enumerate() {
        let name = object::text(mode, "/type").unwrap_or_default();
        let path = list.item(index).field("type");
        if !InstallMode::ALL.iter().any(|known| known.name() == name) {
            problem(&path, format!("install mode '{name}' is unknown"));
        } else if !seen.insert(name) {
            problem(&path, format!("duplicate install modes present: '{name}'"));
        }
    }
    if !seen.is_empty() && bundle.csv().install_modes().is_empty() {
        problem(&list, "none of InstallModeTypes are supported".to_owned());
    }
}

fn check_api_services(bundle: &Bundle, problems: &mut Vec<Problem>) {
    let list = JsonPath::from_fields("spec.apiservicedefinitions.owned");
    let mut seen: BTreeMap<String, (&str, i64)> = BTreeMap::new();
    for (index, definition) in bundle.csv().owned_api_services().enumerate() {
        let mut problem = |field: &str, message: String| {
            let path = list.item(index).field(field);
            problems.push(bundle.csv.problem(&path, rule::API_SERVICE, message));
        };
        let missing = [("group", definition.group()), ("version", definition.version())]
            .into_iter()
            .find(|(_, value)| value.is_empty());
        if let Some((field, _)) = missing {
            problem(field, format!("an owned APIService has no {field}"));
            continue;
        }
        let port = definition.port();
        if !(1..=65535).contains(&port) {
            let name = definition.name();
            let message = format!("containerPort {port} of APIService '{name}' must be between 1 and 65535");
            problem("containerPort", message);
        }
        let server = (definition.deployment_name(), port);
        let first = *seen.entry(definition.name()).or_insert(server);
        if first != server {
            let message = format!(
                "APIService '{}' is served by deployment '{}' on port {port}, and by deployment '{}' on port {}",
                definition.name(),
                server.0,
                first.0,
                first.1
            );
            problem("deploymentName", message);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::render::sample;

    #[test]
    fn an_owned_api_service_has_one_server() {
        let owned = |version: &str, deployment: &str, port: i64| {
            json!({"group": "a.example.com", "version": version, "kind": "A", "name": "as",
                "deploymentName": deployment, "containerPort": port})
        };
        for (definitions, expected) in [
            (json!([owned("v1", "a", 0), owned("v1", "a", 443)]), None),
            (json!([owned("v1", "a", 0), owned("v2", "b", 0)]), None),
            (
                json!([owned("v1", "a", 0), owned("v1", "b", 0)]),
                Some("is served by deployment 'b' on port 443, and by deployment 'a' on port 443"),
            ),
            (
                json!([owned("", "a", 0)]),
                Some("an owned APIService has no version"),
            ),
            (
                json!([owned("v1", "a", 70_000)]),
                Some("must be between 1 and 65535"),
            ),
        ] {
            let mut bundle = sample::bundle();
            bundle.csv.object["spec"]["apiservicedefinitions"]["owned"] = definitions;
            let mut problems = Vec::new();
            check_api_services(&bundle, &mut problems);
            let messages: Vec<_> = problems.iter().map(|problem| problem.message.as_str()).collect();
            match expected {
                None => assert_eq!(messages, [""; 0]),
                Some(expected) => assert!(messages[0].contains(expected), "{messages:?}"),
            }
        }
    }
}
