//! The rights of the ClusterRoles `view`, `edit` and `admin` on the kinds of Windlass ("User-facing roles" in
//! the Kubernetes documentation of RBAC).

use serde_json::{Value, json};
use windlass_object::names;

use super::document::{Document, labels};

/// Verbs of readers.
const READ: [&str; 3] = ["get", "list", "watch"];

/// Verbs of editors, in addition.
const WRITE: [&str; 5] = ["create", "delete", "deletecollection", "patch", "update"];

const VIEW_COMMENT: &str = "Users with the ClusterRole view (or edit, or admin) can read these.";

const EDIT_COMMENT: &str = "Users with the ClusterRole edit (or admin) can request certificates, as with an annotation on a Service. BundleDeployments,
InjectionTargets and policies are not included, since writing them is as powerful as cluster-admin.";

/// Returns the roles for the kinds that are always installed.
pub(super) fn documents() -> Vec<Document> {
    let seen = ["bundledeployments", "injectiontargets", "servingcertificates"];
    vec![
        Document::commented(
            VIEW_COMMENT,
            role("windlass-view", "view", names::GROUP, &seen, &READ),
        ),
        Document::commented(
            EDIT_COMMENT,
            role(
                "windlass-edit",
                "edit",
                names::GROUP,
                &["servingcertificates"],
                &WRITE,
            ),
        ),
    ]
}

pub(super) fn policies_documents() -> Vec<Document> {
    let seen = [
        "clusteroverridepolicies",
        "clustervalidatepolicies",
        "overridepolicies",
    ];
    let role = role(
        "windlass-policies-view",
        "view",
        "policy.kcloudlabs.io",
        &seen,
        &READ,
    );
    vec![Document::commented(VIEW_COMMENT, role)]
}

/// Returns a part of the aggregated ClusterRole `of`: `admin` contains `edit`, which contains `view`.
fn role(name: &str, of: &str, group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    let mut labels = labels();
    labels[format!("rbac.authorization.k8s.io/aggregate-to-{of}")] = "true".into();
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": { "name": name, "labels": labels },
        "rules": [{ "apiGroups": [group], "resources": resources, "verbs": verbs }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_edit_role_cannot_escalate_to_cluster_admin() {
        let writes = |document: &Document| document.object["rules"].to_string().contains("create");
        let all = || documents().into_iter().chain(policies_documents());
        let writing: Vec<_> = all().filter(writes).collect();
        assert_eq!(writing.len(), 1);
        assert_eq!(
            writing[0].object["rules"][0]["resources"],
            json!(["servingcertificates"])
        );
        for document in all() {
            let labels = document.object["metadata"]["labels"].to_string();
            assert_eq!(
                labels.contains("aggregate-to-edit"),
                writes(&document),
                "{labels}"
            );
            assert!(!document.object["rules"].to_string().contains('*'));
        }
    }
}
