//! What is never asked about: with it a cluster comes up, and what serves policies comes up in it, while nobody answers.
//!
//! With a policy without selectors that must not fail, whatever is asked about is refused until a replica is there. Replicas need
//! nodes that are registered and have no taint, the pods of `kube-system`, and an API server that has written its own objects: one
//! that may not write its roles and flow schemas ends, and one that may not write the endpoints of `kubernetes` is found by nobody.

use serde_json::{Value, json};
use windlass_object::{names, object, rfc1123::is_label, rfc1123::is_subdomain};

/// The groups whose objects are never asked about: what Windlass needs to serve policies, what the API server asks all the time
/// about others, and reports of what policies say.
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

/// The namespace of what makes a cluster: its network, its names, its proxies.
pub(super) const SYSTEM_NAMESPACE: &str = "kube-system";

/// What makes a machine a node, as `group/resource`.
const OF_NODES: [&str; 3] = [
    "/nodes",
    "certificates.k8s.io/certificatesigningrequests",
    "storage.k8s.io/csinodes",
];

/// Who makes machines nodes, by group: kubelets, before and after they have a certificate, and the controllers that give nodes addresses
/// and take taints from them.
const NODE_GROUPS: [&str; 3] = [
    "system:bootstrappers",
    "system:nodes",
    "system:serviceaccounts:kube-system",
];

/// The same by name, where controllers have no ServiceAccounts of their own.
const NODE_USERS: [&str; 2] = [
    "system:cloud-controller-manager",
    "system:kube-controller-manager",
];

/// As whom an API server writes what it needs itself.
const API_SERVER: (&str, &str) = ("system:apiserver", "system:masters");

/// Whether policies may be for objects of a kind.
pub(crate) fn is_asked(api_version: &str, kind: &str) -> bool {
    let (group, version) = object::group_and_version(api_version);
    // With a name that there cannot be, the API server would not take any of the others.
    let may_be = (group.is_empty() || is_subdomain(group)) && is_label(version);
    may_be && !GROUPS.contains(&group) && (group, kind) != ("", "Event")
}

/// The `matchConditions` that leave out what is never asked about.
pub(super) fn conditions() -> Vec<Value> {
    let ours = format!(
        "!(request.resource.group in {}) && !(request.resource.group == '' && request.resource.resource == 'events') && \
         !(request.resource.group == 'apiextensions.k8s.io' && (request.name.endsWith('.{}') || request.name.endsWith('.policy.kcloudlabs.io')))",
        list(&GROUPS),
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
        list(&OF_NODES),
        list(&NODE_USERS),
        groups.join(" || "),
    );
    vec![
        json!({"name": "not-of-windlass", "expression": ours}),
        json!({"name": "not-by-the-api-server", "expression": api_servers}),
        json!({"name": "not-of-nodes", "expression": nodes}),
    ]
}

/// A list of texts in CEL. What users wrote into names is quoted so that it ends nothing.
pub(super) fn list(items: &[&str]) -> String {
    // CEL reads every escape of JSON.
    let items: Vec<_> = items.iter().map(|item| Value::from(*item).to_string()).collect();
    format!("[{}]", items.join(", "))
}

#[cfg(test)]
mod tests {
    use policy::{
        AdmissionAttributes, AdmissionOperation, Engines, EvaluationBudget, PolicyExplanation, PolicyObject,
    };

    use super::*;

    /// The condition that leaves a request out.
    fn left_out_by(user: &str, groups: &[&str], group: &str, resource: &str) -> Option<String> {
        let spec =
            json!({"matchConditions": conditions(), "validateRules": [{"cue": "validate: valid: true"}]});
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
        let explained = PolicyExplanation::of(
            &policy,
            &Engines::built_in(),
            &attributes,
            &EvaluationBudget::default(),
        );
        let conditions = conditions().into_iter().zip(&explained.parts);
        let mut unmet = conditions.filter(|(_, part)| part.mismatch.is_some());
        unmet.next().map(|(condition, part)| {
            let mismatch = part.mismatch.as_deref().unwrap_or_default();
            assert!(!mismatch.contains("cannot"), "{mismatch}");
            object::text(&condition, "/name").unwrap_or_default().to_owned()
        })
    }

    #[test]
    fn what_makes_a_node_is_left_out_and_what_people_write_is_not() {
        let left_out = Some("not-of-nodes".to_owned());
        let controller = "system:serviceaccount:kube-system:node-controller";
        let controllers: &[&str] = &["system:serviceaccounts", "system:serviceaccounts:kube-system"];
        let by_controller = |group, resource| left_out_by(controller, controllers, group, resource);
        assert_eq!(by_controller("", "nodes"), left_out);
        assert_eq!(
            by_controller("", "pods"),
            None,
            "pods of workloads are asked about"
        );
        let csr = "certificatesigningrequests";
        assert_eq!(
            left_out_by(
                "system:bootstrap:a",
                &["system:bootstrappers"],
                "certificates.k8s.io",
                csr
            ),
            left_out
        );
        let kubelet = |group, resource| left_out_by("system:node:a", &["system:nodes"], group, resource);
        assert_eq!(kubelet("storage.k8s.io", "csinodes"), left_out);
        assert_eq!(kubelet("", "configmaps"), None);
        assert_eq!(
            left_out_by("system:kube-controller-manager", &[], "", "nodes"),
            left_out
        );
        assert_eq!(left_out_by("alice", &["system:masters"], "", "nodes"), None);
        assert_eq!(left_out_by("alice", &[], "certificates.k8s.io", csr), None);
    }

    #[test]
    fn what_the_api_server_writes_is_left_out_and_what_is_written_in_its_name_alone_is_not() {
        let group = "rbac.authorization.k8s.io";
        let left_out = Some("not-by-the-api-server".to_owned());
        assert_eq!(
            left_out_by("system:apiserver", &["system:masters"], group, "clusterroles"),
            left_out
        );
        for groups in [&["system:authenticated"][..], &[]] {
            assert_eq!(
                left_out_by("system:apiserver", groups, group, "clusterroles"),
                None
            );
        }
    }

    #[test]
    fn what_windlass_needs_is_left_out() {
        let left_out = Some("not-of-windlass".to_owned());
        for group in GROUPS {
            assert_eq!(left_out_by("alice", &[], group, "a"), left_out, "{group}");
        }
        assert_eq!(left_out_by("alice", &[], "", "events"), left_out);
        assert_eq!(left_out_by("alice", &[], "", "configmaps"), None);
    }
}
