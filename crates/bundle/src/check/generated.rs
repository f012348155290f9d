//! Names of the objects that an install generates: Services, Secrets and ServiceAccounts.

use std::collections::BTreeMap;

use windlass_object::{JsonPath, Problem};

use super::{names, permissions, webhook_definitions::webhook_definitions};
use crate::{
    callers::{Backend, Caller},
    parse::{Bundle, Manifest, rule},
    render,
};

/// The generated objects by kind and name, and the reason for each.
type Generated = BTreeMap<(&'static str, String), String>;

pub(super) fn check(bundle: &Bundle, problems: &mut Vec<Problem>) {
    let mut generated = Generated::new();
    check_service_accounts(bundle, &mut generated, problems);
    check_services(bundle, &mut generated, problems);
    for definition in bundle.csv().owned_api_services() {
        let source = "spec.apiservicedefinitions.owned".to_owned();
        generated.insert(("APIService", definition.name()), source);
    }
    for manifest in &bundle.others {
        let (kind, name) = (manifest.kind(), manifest.name());
        if is_replaced(bundle, manifest) {
            continue;
        }
        let source = generated
            .iter()
            .find(|((generated, own), _)| *generated == kind && own == name)
            .map(|(_, source)| source);
        if let Some(source) = source {
            let message =
                format!("{kind} '{name}' has the same name as the one that is created for {source}");
            problems.push(manifest.problem(
                &JsonPath::from_fields("metadata.name"),
                rule::GENERATED_NAME_CLASH,
                message,
            ));
        }
    }
}

/// Adds the ServiceAccount of every permission except `default`, which always exists.
fn check_service_accounts(bundle: &Bundle, generated: &mut Generated, problems: &mut Vec<Problem>) {
    let all = permissions::permissions(bundle).chain(permissions::cluster_permissions(bundle));
    for (path, permission) in all {
        let name = permission.service_account();
        if matches!(name, "" | "default") {
            continue;
        }
        let messages = names::subdomain(name);
        if !messages.is_empty() {
            let message = format!("invalid name '{name}' of ServiceAccount: {}", messages.join(", "));
            let path = path.field("serviceAccountName");
            problems.push(bundle.csv.problem(&path, rule::GENERATED_NAME, message));
        }
        let source = format!("permissions of '{name}'");
        generated.insert(("ServiceAccount", name.to_owned()), source);
    }
}

/// Reports whether a generated Service replaces this bundled one.
fn is_replaced(bundle: &Bundle, manifest: &Manifest) -> bool {
    called_backends(bundle).any(|backend| {
        let has_webhooks =
            webhook_definitions(bundle).any(|(_, webhook)| webhook.deployment_name() == backend.deployment);
        backend.service == Some(manifest)
            && !has_webhooks
            && render::names::service(backend.deployment) == manifest.name()
    })
}

/// The backends of the bundled callers.
fn called_backends(bundle: &Bundle) -> impl Iterator<Item = Backend<'_>> {
    Caller::all(bundle).filter_map(|caller| caller.backend(bundle).ok())
}

/// Adds both Services and the Secret of every Deployment that is called.
fn check_services(bundle: &Bundle, generated: &mut Generated, problems: &mut Vec<Problem>) {
    let list = JsonPath::from_fields("spec.install.spec.deployments");
    let mut seen: Vec<&str> = Vec::new();
    for (index, deployment) in bundle.csv().deployments().enumerate() {
        let name = deployment.name();
        let has_webhooks = webhook_definitions(bundle).any(|(_, webhook)| webhook.deployment_name() == name);
        // Other checks report invalid and duplicate names.
        let is_called = has_webhooks || called_backends(bundle).any(|backend| backend.deployment == name);
        if !is_called || seen.contains(&name) || !names::subdomain(name).is_empty() {
            continue;
        }
        seen.push(name);
        let path = list.item(index).field("name");
        let service = render::names::service(name);
        let messages = names::service(&service);
        if !messages.is_empty() {
            let message = format!(
                "the Service of deployment '{name}' cannot be named '{service}': {}",
                messages.join(", ")
            );
            problems.push(bundle.csv.problem(&path, rule::GENERATED_NAME, message));
        }
        let source = format!("the webhooks of deployment '{name}'");
        let secret = render::names::secret(&service);
        generated.insert(("Secret", secret), source.clone());
        let green = render::names::green(&service);
        for service in [service, green] {
            if let Some(other) = generated.insert(("Service", service.clone()), source.clone()) {
                let message = format!(
                    "the Service '{service}' of deployment '{name}' has the same name as that of {other}"
                );
                problems.push(bundle.csv.problem(&path, rule::GENERATED_NAME_CLASH, message));
                break;
            }
        }
    }
}
