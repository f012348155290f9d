//! Temporary permissions for the objects of one CustomResourceDefinition.
//!
//! The operator's own role cannot name the resources of future bundles, and permanent `patch` or `delete` on
//! all resources would be too much.

use serde_json::{Value, json};
use windlass_object::object;

/// Prefix of ServiceAccounts in user names.
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// The work on the objects of a CustomResourceDefinition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectWork {
    /// Rewriting them in another version. `get` is for objects that another client writes concurrently.
    StorageMigration,
    /// Deleting those in terminating namespaces.
    NamespaceDeletion,
}

impl ObjectWork {
    /// Returns the name of the ClusterRole and its binding for the CustomResourceDefinition `crd`.
    fn grant_name(self, crd: &str) -> String {
        let work = match self {
            Self::StorageMigration => "storage-migration",
            Self::NamespaceDeletion => "namespace-deletion",
        };
        format!("windlass-{work}-{crd}")
    }

    fn verbs(self) -> &'static [&'static str] {
        match self {
            Self::StorageMigration => &["get", "patch"],
            Self::NamespaceDeletion => &["delete"],
        }
    }

    /// Returns the ClusterRole for the objects of the CRD `live`, and its binding to `user`, which is the
    /// operator's user name.
    pub fn grant(self, live: &Value, user: &str) -> [Value; 2] {
        let text = |pointer| object::text(live, pointer).unwrap_or_default();
        let name = self.grant_name(text("/metadata/name"));
        let group = "rbac.authorization.k8s.io";
        let api_version = format!("{group}/v1");
        let role = json!({
            "apiVersion": api_version, "kind": "ClusterRole", "metadata": {"name": name},
            "rules": [{
                "apiGroups": [text("/spec/group")], "resources": [text("/spec/names/plural")], "verbs": self.verbs(),
            }],
        });
        let account = user
            .strip_prefix(SERVICE_ACCOUNT)
            .and_then(|account| account.split_once(':'));
        let subject = match account {
            Some((namespace, name)) => {
                json!({"kind": "ServiceAccount", "namespace": namespace, "name": name})
            }
            None => json!({"kind": "User", "apiGroup": group, "name": user}),
        };
        let binding = json!({
            "apiVersion": api_version, "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
            "subjects": [subject],
        });
        [role, binding]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_covers_one_resource() {
        let live = json!({"metadata": {"name": "widgets.example.com"},
            "spec": {"group": "example.com", "names": {"plural": "widgets"}}});
        let [role, binding] =
            ObjectWork::StorageMigration.grant(&live, "system:serviceaccount:windlass-system:windlass");
        assert_eq!(
            role["rules"],
            json!([{"apiGroups": ["example.com"], "resources": ["widgets"], "verbs": ["get", "patch"]}])
        );
        assert_eq!(binding["roleRef"]["name"], role["metadata"]["name"]);
        let [other, _] = ObjectWork::NamespaceDeletion.grant(&live, "jane");
        assert_ne!(other["metadata"]["name"], role["metadata"]["name"]);
        assert_eq!(other["rules"][0]["verbs"], json!(["delete"]));
        assert_eq!(
            binding["subjects"],
            json!([{"kind": "ServiceAccount", "namespace": "windlass-system", "name": "windlass"}])
        );
        let [_, binding] = ObjectWork::StorageMigration.grant(&live, "jane");
        assert_eq!(
            binding["subjects"],
            json!([{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "jane"}])
        );
    }
}
