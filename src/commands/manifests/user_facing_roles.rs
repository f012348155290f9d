//! What the ClusterRoles `view`, `edit` and `admin` allow of the kinds of Windlass ("User-facing roles" in the Kubernetes
//! documentation of RBAC).

use serde_json::{Value, json};
use windlass_object::names;

use super::document::{Document, labels};

/// To look.
const READ: [&str; 3] = ["get", "list", "watch"];

/// To change, beside looking.
const WRITE: [&str; 5] = ["create", "delete", "deletecollection", "patch", "update"];

const VIEW_COMMENT: &str = "Whoever has the ClusterRole view (or edit, or admin) may look at these.";

const EDIT_COMMENT: &str = "Whoever has the ClusterRole edit (or admin) may ask for certificates, as by an annotation on a Service. Not in here is what is as good
as cluster-admin: BundleDeployments, InjectionTargets and policies.";

/// Those of the kinds that are always there.
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

/// That of policies.
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

/// A part of the ClusterRole `of`, which the cluster puts together: `admin` contains `edit`, and that `view`.
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
    fn nobody_who_edits_becomes_cluster_admin_by_it() {
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
