//! ServiceAccounts, roles and their bindings, from the permissions of a ClusterServiceVersion.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use windlass_object::{ObjectKey, object};

use super::{install_modes::TargetNamespaces, names, serving_deployments::ServingDeployment};
use crate::parse::{Bundle, DeploymentSpec, Permission};

const API_VERSION: &str = "rbac.authorization.k8s.io/v1";

/// Renders the ServiceAccounts that have permissions or that pods run as, except `default`, which every
/// namespace has. Skips a ServiceAccount without permissions that the bundle contains.
pub(super) fn service_accounts(bundle: &Bundle, namespace: &str) -> Vec<Value> {
    let csv = bundle.csv();
    let is_bundled = |name: &str| {
        let mut others = bundle.others.iter();
        others.any(|manifest| manifest.kind() == "ServiceAccount" && manifest.name() == name)
    };
    let names: BTreeSet<_> = csv
        .permissions()
        .chain(csv.cluster_permissions())
        .map(account)
        .chain(
            csv.deployments()
                .filter_map(pod_account)
                .filter(|name| !is_bundled(name)),
        )
        .filter(|name| *name != "default")
        .collect();
    names
        .into_iter()
        .map(|name| {
            json!({
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": name, "namespace": namespace},
            })
        })
        .collect()
}

/// The ServiceAccount of the pods of a Deployment, if it names one.
fn pod_account(deployment: DeploymentSpec<'_>) -> Option<&str> {
    let spec = deployment.spec()?;
    let name = object::text(spec, "/template/spec/serviceAccountName")
        .or_else(|| object::text(spec, "/template/spec/serviceAccount"));
    name.filter(|name| !name.is_empty())
}

/// Renders roles and bindings: one per target namespace, or cluster-wide if the target is all namespaces.
pub(super) fn roles(bundle: &Bundle, namespace: &str, targets: &TargetNamespaces) -> Vec<Value> {
    let csv = bundle.csv();
    let mut objects = Vec::new();
    let mut cluster_permissions: Vec<_> = csv
        .cluster_permissions()
        .map(|permission| (permission, hash_input(permission)))
        .collect();
    match targets {
        TargetNamespaces::All => {
            cluster_permissions.extend(
                csv.permissions()
                    .map(|permission| (permission, cluster_wide_permission(permission))),
            );
        }
        TargetNamespaces::These(targets) => {
            for target in targets {
                for permission in csv.permissions() {
                    let body = hash_input(permission);
                    let name = names::role(csv.name(), account(permission), &body);
                    let metadata = json!({"name": name, "namespace": target});
                    objects.push(role("Role", &metadata, &body));
                    objects.push(binding("Role", &metadata, account(permission), namespace));
                }
            }
        }
    }
    for (permission, body) in cluster_permissions {
        let name = names::role(csv.name(), account(permission), &body);
        let metadata = json!({"name": name});
        objects.push(role("ClusterRole", &metadata, &body));
        objects.push(binding("ClusterRole", &metadata, account(permission), namespace));
    }
    // A repeated permission yields one role.
    let mut seen = BTreeSet::new();
    objects.retain(|object| ObjectKey::from_object(object).is_none_or(|key| seen.insert(key)));
    objects
}

/// Renders the bindings that let servers of APIServices authenticate and authorize requests through the API
/// server. OLM names the bindings after the Service only, so that two installs would share them.
pub(super) fn delegation(serving: &[ServingDeployment<'_>], namespace: &str) -> Vec<Value> {
    let servers = serving.iter().filter(|serving| serving.is_api_server());
    let bindings = servers.flat_map(|serving| {
        let account = pod_account(serving.deployment).unwrap_or("default");
        let name = |suffix: &str| format!("{namespace}-{}-{suffix}", serving.service);
        let delegator = json!({"name": name("system:auth-delegator")});
        let reader = json!({"name": name("auth-reader"), "namespace": "kube-system"});
        let mut delegator = binding("ClusterRole", &delegator, account, namespace);
        delegator["roleRef"]["name"] = "system:auth-delegator".into();
        let mut reader = binding("Role", &reader, account, namespace);
        reader["roleRef"]["name"] = "extension-apiserver-authentication-reader".into();
        [delegator, reader]
    });
    bindings.collect()
}

fn account(permission: Permission<'_>) -> &str {
    match permission.service_account() {
        "" => "default",
        name => name,
    }
}

/// Returns a permission with its keys in the order in which OLM hashes them.
fn hash_input(permission: Permission<'_>) -> Value {
    let rules = permission
        .rules()
        .map(|rules| rules.iter().map(policy_rule).collect::<Vec<_>>());
    json!({"serviceAccountName": permission.service_account(), "rules": rules})
}

/// Extends a permission for cluster-wide use: its holder must also be able to list namespaces.
fn cluster_wide_permission(permission: Permission<'_>) -> Value {
    let mut body = hash_input(permission);
    let namespaces =
        json!({"verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": ["namespaces"]});
    let mut rules = object::items(&body, "/rules").to_vec();
    rules.push(namespaces);
    body["rules"] = rules.into();
    body
}

/// Returns a rule with its keys in the order of Go's `PolicyRule`, which omits empty fields except `verbs`.
fn policy_rule(rule: &Value) -> Value {
    let mut fields = Map::new();
    fields.insert("verbs".into(), rule.get("verbs").cloned().unwrap_or_default());
    for name in ["apiGroups", "resources", "resourceNames", "nonResourceURLs"] {
        if let Some(items) = rule
            .get(name)
            .filter(|items| items.as_array().is_some_and(|items| !items.is_empty()))
        {
            fields.insert(name.into(), items.clone());
        }
    }
    Value::Object(fields)
}

fn role(kind: &str, metadata: &Value, body: &Value) -> Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": metadata,
        "rules": object::items(body, "/rules"),
    })
}

fn binding(kind: &str, metadata: &Value, account: &str, namespace: &str) -> Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": format!("{kind}Binding"),
        "metadata": metadata,
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": metadata["name"]},
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::{
        hash::base36_sha224,
        sample::{self, keys},
    };

    fn bundle() -> Bundle {
        let mut bundle = sample::bundle();
        bundle.csv.object["spec"]["install"]["spec"]["permissions"] = json!([
            {"serviceAccountName": "widgets", "rules": [
                {"resources": ["leases"], "apiGroups": ["coordination.k8s.io"], "verbs": ["*"], "resourceNames": []}
            ]}
        ]);
        bundle.csv.object["spec"]["install"]["spec"]["clusterPermissions"] =
            json!([{"serviceAccountName": "", "rules": null}, {"serviceAccountName": "", "rules": null}]);
        bundle
    }

    #[test]
    fn every_service_account_except_default_is_created() {
        assert_eq!(
            keys(&service_accounts(&bundle(), "ns")),
            ["ServiceAccount ns/widgets"]
        );
    }

    #[test]
    fn a_service_account_of_pods_is_created_unless_bundled() {
        let mut bundle = bundle();
        bundle.csv.object["spec"]["install"]["spec"]["deployments"][0]["spec"]["template"]["spec"]["serviceAccountName"] =
            json!("pods");
        assert_eq!(
            keys(&service_accounts(&bundle, "ns")),
            ["ServiceAccount ns/pods", "ServiceAccount ns/widgets"]
        );
        bundle.others = vec![sample::manifest(
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "pods"}}),
        )];
        assert_eq!(
            keys(&service_accounts(&bundle, "ns")),
            ["ServiceAccount ns/widgets"]
        );
    }

    #[test]
    fn names_hash_the_go_encoding_of_the_permission() {
        let hash = base36_sha224(&json!({"serviceAccountName": "widgets", "rules": [
            {"verbs": ["*"], "apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
        ]}));
        let empty = base36_sha224(&json!({"serviceAccountName": "", "rules": null}));
        let objects = roles(
            &bundle(),
            "ns",
            &TargetNamespaces::These(vec!["a".into(), "b".into()]),
        );
        let widgets = names::suffixed("widgets.v0.1.0-widgets", &hash);
        let default = names::suffixed("widgets.v0.1.0-default", &empty);
        assert_eq!(
            keys(&objects),
            [
                format!("Role a/{widgets}"),
                format!("RoleBinding a/{widgets}"),
                format!("Role b/{widgets}"),
                format!("RoleBinding b/{widgets}"),
                format!("ClusterRole {default}"),
                format!("ClusterRoleBinding {default}"),
            ]
        );
        assert_eq!(
            objects[1]["subjects"],
            json!([{"kind": "ServiceAccount", "name": "widgets", "namespace": "ns"}])
        );
        assert_eq!(
            objects[1]["roleRef"],
            json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": widgets})
        );
    }

    #[test]
    fn permissions_for_all_namespaces_become_cluster_wide() {
        let objects = roles(&bundle(), "ns", &TargetNamespaces::All);
        assert_eq!(objects.len(), 4);
        let cluster_wide_permission = &objects[2];
        assert_eq!(cluster_wide_permission["kind"], "ClusterRole");
        let rules = object::items(cluster_wide_permission, "/rules");
        assert_eq!(rules.len(), 2);
        assert_eq!(rules[1]["resources"], json!(["namespaces"]));
        let hash = base36_sha224(&json!({"serviceAccountName": "widgets", "rules": rules}));
        assert!(
            object::text(cluster_wide_permission, "/metadata/name").is_some_and(|name| name.ends_with(&hash))
        );
    }

    /// The names are from `argocd-operator.v0.6.0` in the expected manifests of OLM v1's regression tests
    /// (`operator-controller`, `test/regression/convert`).
    #[test]
    fn names_equal_those_of_olm() {
        let verbs = ["get", "list", "watch", "create", "update", "patch", "delete"];
        let mut bundle = sample::bundle();
        bundle.csv.object["metadata"]["name"] = json!("argocd-operator.v0.6.0");
        bundle.csv.object["spec"]["install"]["spec"]["clusterPermissions"] = json!([]);
        bundle.csv.object["spec"]["install"]["spec"]["permissions"] = json!([
            {"serviceAccountName": "argocd-operator-controller-manager", "rules": [
                {"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs},
                {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": verbs},
                {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
            ]}
        ]);
        for (targets, name) in [
            (
                TargetNamespaces::All,
                "ClusterRole argocd-operator.v0.-3gkm3u8zfarktdile5wekso69zs9bgzb988mhjm0y6p",
            ),
            (
                TargetNamespaces::These(vec!["argocd-system".into()]),
                "Role argocd-system/argocd-operator.v0-22gmilmgp91wu25is5i2ec598hni8owq3l71bbkl7iz3",
            ),
        ] {
            assert_eq!(keys(&roles(&bundle, "argocd-system", &targets))[0], name);
        }
    }
}
