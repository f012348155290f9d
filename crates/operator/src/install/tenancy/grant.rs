//! What gives an account the rights that it lacks, to be applied by somebody who has them.

use serde_json::{Value, json};
use windlass_api::MissingRights;
use windlass_cluster::apply::body_hash;

/// How much of a digest of rights their role has in its name.
const DIGEST: usize = 10;

const RBAC: &str = "rbac.authorization.k8s.io";

/// A role with a binding to the ServiceAccount for each place where rights are missing. Their name says which rights these are:
/// what is granted for the next version of a bundle does not take away what was granted before.
pub fn grant(
    missing: &[MissingRights],
    bundle_deployment: &str,
    namespace: &str,
    service_account: &str,
) -> Vec<Value> {
    let subject = json!({"kind": "ServiceAccount", "namespace": namespace, "name": service_account});
    missing
        .iter()
        .flat_map(|missing| {
            let (role, binding) = match missing.namespace {
                Some(_) => ("Role", "RoleBinding"),
                None => ("ClusterRole", "ClusterRoleBinding"),
            };
            let digest = body_hash(&json!(missing.rules));
            let digest: String = digest.chars().filter(char::is_ascii_hexdigit).take(DIGEST).collect();
            let name = format!("{bundle_deployment}-install-{digest}");
            let metadata = match &missing.namespace {
                Some(namespace) => json!({"namespace": namespace, "name": name}),
                None => json!({ "name": name }),
            };
            let api_version = format!("{RBAC}/v1");
            [
                json!({"apiVersion": api_version, "kind": role, "metadata": metadata, "rules": missing.rules}),
                json!({
                    "apiVersion": api_version, "kind": binding, "metadata": metadata,
                    "roleRef": {"apiGroup": RBAC, "kind": role, "name": name}, "subjects": [subject],
                }),
            ]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use windlass_api::PermissionRule;

    use super::*;

    #[test]
    fn rights_of_each_place_are_bound_there() {
        let missing = |namespace: Option<&str>, verb: &str| MissingRights {
            namespace: namespace.map(str::to_owned),
            rules: vec![PermissionRule::new("", "pods", &[verb])],
        };
        let granted = grant(
            &[missing(None, "get"), missing(Some("n"), "get")],
            "sample",
            "n",
            "tenant",
        );
        let kinds: Vec<_> = granted.iter().map(|object| &object["kind"]).collect();
        assert_eq!(
            kinds,
            ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]
        );
        for pair in granted.chunks(2) {
            let (role, binding) = (&pair[0], &pair[1]);
            assert_eq!(role["metadata"], binding["metadata"]);
            assert_eq!(binding["roleRef"]["name"], role["metadata"]["name"]);
            assert_eq!(binding["roleRef"]["kind"], role["kind"]);
            assert_eq!(
                binding["subjects"],
                json!([{"kind": "ServiceAccount", "namespace": "n", "name": "tenant"}])
            );
            assert_eq!(role["rules"][0]["verbs"], json!(["get"]));
        }
        assert_eq!(granted[2]["metadata"]["namespace"], "n");
        let other = grant(&[missing(None, "list")], "sample", "n", "tenant");
        assert_ne!(
            other[0]["metadata"]["name"], granted[0]["metadata"]["name"],
            "both are to last"
        );
    }
}
