//! The objects that every cluster has from the start.

use std::time::Duration;

use serde_json::{Value, json};

use super::{api_server::ApiServer, write};

impl ApiServer {
    /// Creates a cluster with only the objects that every cluster has.
    pub(crate) fn new(reinitializing: Duration) -> Self {
        let server = Self::empty(reinitializing);
        server.bootstrap();
        server
    }

    /// Creates the namespaces and roles that every cluster has.
    fn bootstrap(&self) {
        let namespace =
            |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let everything = json!([
            {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
            {"nonResourceURLs": ["*"], "verbs": ["*"]},
        ]);
        let role = |name: &str, rules: Value| {
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
                   "metadata": {"name": name}, "rules": rules})
        };
        let binding = |name: &str, subject: Value| {
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
                   "metadata": {"name": name}, "subjects": [subject],
                   "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}})
        };
        let reviews = json!([
            {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
            {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
        ]);
        let group =
            |name: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": name});
        let basic = json!([{"apiGroups": ["authorization.k8s.io", "authentication.k8s.io"],
            "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"],
            "verbs": ["create"]}]);
        let objects = ["default", "kube-system", "kube-public", "kube-node-lease"]
            .map(namespace)
            .into_iter()
            .chain([
                role("cluster-admin", everything),
                binding("cluster-admin", group("system:masters")),
                role("system:auth-delegator", reviews),
                role("system:basic-user", basic),
                binding("system:basic-user", group("system:authenticated")),
            ]);
        for object in objects {
            write::bootstrap(self, object);
        }
    }
}
