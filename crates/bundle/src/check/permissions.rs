//! Rules of permissions, as the API server validates them (`k8s.io/kubernetes/pkg/apis/rbac/validation`).

use serde_json::Value;
use windlass_object::{JsonPath, Problem, object};

use crate::parse::{Bundle, InstallMode, Permission, rule};

pub(super) fn check(bundle: &Bundle, problems: &mut Vec<Problem>) {
    // An install that watches all namespaces grants permissions cluster-wide.
    let namespaced = bundle.csv().install_modes() != [InstallMode::AllNamespaces];
    for (path, permission) in permissions(bundle) {
        check_rules(bundle, permission, &path, namespaced, problems);
    }
    for (path, permission) in cluster_permissions(bundle) {
        check_rules(bundle, permission, &path, false, problems);
    }
}

pub(super) fn permissions(bundle: &Bundle) -> impl Iterator<Item = (JsonPath, Permission<'_>)> {
    let list = JsonPath::from_fields("spec.install.spec.permissions");
    let permissions = bundle.csv().permissions().enumerate();
    permissions.map(move |(index, permission)| (list.item(index), permission))
}

pub(super) fn cluster_permissions(bundle: &Bundle) -> impl Iterator<Item = (JsonPath, Permission<'_>)> {
    let list = JsonPath::from_fields("spec.install.spec.clusterPermissions");
    let permissions = bundle.csv().cluster_permissions().enumerate();
    permissions.map(move |(index, permission)| (list.item(index), permission))
}

fn check_rules(
    bundle: &Bundle,
    permission: Permission<'_>,
    path: &JsonPath,
    namespaced: bool,
    problems: &mut Vec<Problem>,
) {
    for (index, rule) in permission.rules().unwrap_or_default().iter().enumerate() {
        if let Err(message) = check_rule(rule, namespaced) {
            let message = format!(
                "rule of ServiceAccount '{}' {message}",
                permission.service_account()
            );
            let path = path.field("rules").item(index);
            problems.push(bundle.csv.problem(&path, rule::PERMISSION_RULE, message));
        }
    }
}

fn check_rule(rule: &Value, namespaced: bool) -> Result<(), &'static str> {
    let is_empty = |field: &str| object::items(rule, field).is_empty();
    if is_empty("/verbs") {
        return Err("has no verbs");
    }
    if !is_empty("/nonResourceURLs") {
        if namespaced {
            return Err("has nonResourceURLs, which namespaced rules cannot have");
        }
        let alone = ["/apiGroups", "/resources", "/resourceNames"]
            .into_iter()
            .all(is_empty);
        return if alone {
            Ok(())
        } else {
            Err("has both resources and nonResourceURLs")
        };
    }
    if is_empty("/apiGroups") {
        return Err("has no apiGroups");
    }
    if is_empty("/resources") {
        return Err("has no resources");
    }
    Ok(())
}
