//! Requests that webhooks exclude, so that a cluster and the policy server can start while no replica is
//! ready.
//!
//! A policy with failure policy `Fail` and without selectors blocks all matching requests until a replica is
//! ready. Replicas need registered nodes without taints, the pods of `kube-system`, and an API server that
//! has written its own objects: an API server that cannot write its roles and flow schemas exits, and clients
//! cannot find one that cannot write the endpoints of `kubernetes`.

use serde_json::{Value, json};
use windlass_object::{names, object, rfc1123::is_label, rfc1123::is_subdomain};

/// Excluded API groups: those that Windlass needs to serve policies, those that the API server constantly
/// sends requests about, and policy reports.
const GROUPS: [&str; 9] = [
    "admissionregistration.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "coordination.k8s.io",
    "events.k8s.io",
    "interpretation.windlass.dev",
    "policy.kcloudlabs.io",
    names::GROUP,
    "wgpolicyk8s.io",
];

/// The namespace of the cluster's own network, DNS and proxy pods.
pub(super) const SYSTEM_NAMESPACE: &str = "kube-system";

/// The resources that a node needs to become ready, as `group/resource`.
const NODE_RESOURCES: [&str; 3] = [
    "/nodes",
    "certificates.k8s.io/certificatesigningrequests",
    "storage.k8s.io/csinodes",
];

/// The groups of the clients that make nodes ready: kubelets, with and without a certificate, and the
/// controllers that set node addresses and remove taints.
const NODE_GROUPS: [&str; 3] = [
    "system:bootstrappers",
    "system:nodes",
    "system:serviceaccounts:kube-system",
];

/// The user names of such controllers without ServiceAccounts of their own.
const NODE_USERS: [&str; 2] = [
    "system:cloud-controller-manager",
    "system:kube-controller-manager",
];

/// User and group of the API server's own requests.
const API_SERVER: (&str, &str) = ("system:apiserver", "system:masters");

/// Reports whether policies can select objects of a kind.
pub(crate) fn can_select(api_version: &str, kind: &str) -> bool {
    let (group, version) = object::group_and_version(api_version);
    // The API server would reject the whole configuration for one invalid name.
    let may_be = (group.is_empty() || is_subdomain(group)) && is_label(version);
    may_be && !GROUPS.contains(&group) && (group, kind) != ("", "Event")
}

/// Returns the `matchConditions` that exclude requests that a cluster needs to start.
pub(super) fn match_conditions() -> Vec<Value> {
    let ours = format!(
        "!(request.resource.group in {}) && !(request.resource.group == '' && request.resource.resource == 'events') && \
         !(request.resource.group == 'apiextensions.k8s.io' && (request.name.endsWith('.{}') || request.name.endsWith('.policy.kcloudlabs.io')))",
        cel_list(&GROUPS),
        names::GROUP,
    );
    let (user, group) = API_SERVER;
    let api_servers = format!(
        "!(request.userInfo.username == '{user}' && has(request.userInfo.groups) && '{group}' in request.userInfo.groups)"
    );
    let groups = NODE_GROUPS.map(|group| format!("'{group}' in request.userInfo.groups"));
    let nodes = format!(
        "!((request.resource.group + '/' + request.resource.resource) in {} && (request.userInfo.username in {} || \
         has(request.userInfo.groups) && ({})))",
        cel_list(&NODE_RESOURCES),
        cel_list(&NODE_USERS),
        groups.join(" || "),
    );
    vec![
        json!({"name": "not-of-windlass", "expression": ours}),
        json!({"name": "not-by-the-api-server", "expression": api_servers}),
        json!({"name": "not-of-nodes", "expression": nodes}),
    ]
}

/// Returns a CEL list of strings. Names from users are quoted, so they cannot end a string.
pub(super) fn cel_list(items: &[&str]) -> String {
    // CEL supports every escape of JSON.
    let items: Vec<_> = items.iter().map(|item| Value::from(*item).to_string()).collect();
    format!("[{}]", items.join(", "))
}

#[cfg(test)]
mod tests {
    use policy::{
        AdmissionAttributes, AdmissionOperation, Engines, EvaluationBudget, PolicyExplanation, PolicyObject,
    };

    use super::*;

    /// Returns the name of the condition that excludes a request.
    fn excluding_condition(user: &str, groups: &[&str], group: &str, resource: &str) -> Option<String> {
        let spec = json!({"matchConditions": match_conditions(), "validateRules": [{"cue": "validate: valid: true"}]});
        let policy = json!({
            "apiVersion": "policy.kcloudlabs.io/v1alpha1", "kind": "ClusterValidatePolicy",
            "metadata": {"name": "a"}, "spec": spec,
        });
        let (policy, problems) = PolicyObject::read(&policy).unwrap();
        assert_eq!(problems, []);
        let mut user = json!({"username": user, "groups": groups});
        if groups.is_empty() {
            user.as_object_mut().unwrap().remove("groups");
        }
        let request = json!({
            "name": "a", "userInfo": user, "resource": {"group": group, "version": "v1", "resource": resource},
        });
        let object = json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": "a"}});
        let attributes = AdmissionAttributes {
            operation: AdmissionOperation::Update,
            object: Some(&object),
            old_object: Some(&object),
            request: &request,
            namespace_object: None,
        };
        let explained = PolicyExplanation::new(
            &policy,
            &Engines::built_in(),
            &attributes,
            &EvaluationBudget::default(),
        );
        let conditions = match_conditions().into_iter().zip(&explained.parts);
        let mut unmet = conditions.filter(|(_, part)| part.mismatch.is_some());
        unmet.next().map(|(condition, part)| {
            let mismatch = part.mismatch.as_deref().unwrap_or_default();
            assert!(!mismatch.contains("cannot"), "{mismatch}");
            object::text(&condition, "/name").unwrap_or_default().to_owned()
        })
    }

    #[test]
    fn requests_that_make_nodes_ready_are_excluded() {
        let left_out = Some("not-of-nodes".to_owned());
        let controller = "system:serviceaccount:kube-system:node-controller";
        let controllers: &[&str] = &["system:serviceaccounts", "system:serviceaccounts:kube-system"];
        let by_controller = |group, resource| excluding_condition(controller, controllers, group, resource);
        assert_eq!(by_controller("", "nodes"), left_out);
        assert_eq!(
            by_controller("", "pods"),
            None,
            "pods of workloads are not excluded"
        );
        let csr = "certificatesigningrequests";
        assert_eq!(
            excluding_condition(
                "system:bootstrap:a",
                &["system:bootstrappers"],
                "certificates.k8s.io",
                csr
            ),
            left_out
        );
        let kubelet =
            |group, resource| excluding_condition("system:node:a", &["system:nodes"], group, resource);
        assert_eq!(kubelet("storage.k8s.io", "csinodes"), left_out);
        assert_eq!(kubelet("", "configmaps"), None);
        assert_eq!(
            excluding_condition("system:kube-controller-manager", &[], "", "nodes"),
            left_out
        );
        assert_eq!(
            excluding_condition("alice", &["system:masters"], "", "nodes"),
            None
        );
        assert_eq!(
            excluding_condition("alice", &[], "certificates.k8s.io", csr),
            None
        );
    }

    #[test]
    fn requests_of_the_api_server_are_excluded() {
        let group = "rbac.authorization.k8s.io";
        let left_out = Some("not-by-the-api-server".to_owned());
        assert_eq!(
            excluding_condition("system:apiserver", &["system:masters"], group, "clusterroles"),
            left_out
        );
        for groups in [&["system:authenticated"][..], &[]] {
            assert_eq!(
                excluding_condition("system:apiserver", groups, group, "clusterroles"),
                None
            );
        }
    }

    #[test]
    fn objects_that_windlass_needs_are_excluded() {
        let left_out = Some("not-of-windlass".to_owned());
        for group in GROUPS {
            assert_eq!(excluding_condition("alice", &[], group, "a"), left_out, "{group}");
        }
        assert_eq!(excluding_condition("alice", &[], "", "events"), left_out);
        assert_eq!(excluding_condition("alice", &[], "", "configmaps"), None);
    }
}
