//! What the operator may do: each verb that it uses.

use serde_json::{Value, json};
use windlass_bundle::BundledKind;
use windlass_cluster::lease::LEASE;
use windlass_object::object;
use windlass_trust::injection::{KINDS, TargetKind};

use super::document::{Document, NAME, NAMESPACE, labels};

const INJECT: [&str; 4] = ["get", "list", "watch", "patch"];
const KEEP: [&str; 6] = ["get", "list", "watch", "create", "patch", "delete"];

/// The ServiceAccount, its roles and their bindings.
pub(super) fn documents() -> Vec<Document> {
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": { "name": NAME, "namespace": NAMESPACE, "labels": labels() },
    });
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": NAME, "labels": labels() },
        "rules": rules(),
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": { "name": NAME, "labels": labels() },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NAME },
        "subjects": [{ "kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE }],
    });
    let election = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": { "name": NAME, "namespace": NAMESPACE, "labels": labels() },
        "rules": [
            {
                "apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
                "resourceNames": [LEASE], "verbs": ["get", "update"],
            },
            { "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"] },
        ],
    });
    let election_binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": { "name": NAME, "namespace": NAMESPACE, "labels": labels() },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": NAME },
        "subjects": [{ "kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE }],
    });
    vec![
        Document::new(account),
        Document::commented(ROLE, role),
        Document::new(binding),
        Document::commented(ELECTION, election),
        Document::new(election_binding),
    ]
}

/// What the role in the operator's namespace is for.
const ELECTION: &str =
    "The Lease for leader election. RBAC cannot restrict create requests by resource name.";

/// Why the role is as wide as it is.
const ROLE: &str = "Every verb that the operator uses.
Bundles contain roles for their operators, with whatever permissions these need. RBAC lets nobody create a role with
more permissions than their own, so `escalate` and `bind` are needed; anyone who can create BundleDeployments can
therefore grant any permission.
RBAC cannot restrict Secrets by label: only those of ServingCertificates and of bundles are read and written.
Listing all resources is for proof of conversions: a stored object of the CRD is sent through the webhook before it is
armed. Also, before the schema of a CRD changes, its objects are tried against the new schema.
After an upgrade has changed the storage version of a CRD, its stored objects are rewritten: for as long as that takes,
and for the resources of that CRD only, the operator grants itself `get` and `patch` by a separate ClusterRole.
CustomResourceDefinitions are deleted only for a BundleDeployment with deletionPolicy: DeleteCRDs.
Pods are created only as canaries of upgrades, and only these are deleted.
ReplicaSets are deleted only where the selector of a bundle's Deployment changes: its old pods serve until the new ones do.";

fn rules() -> Vec<Value> {
    let mut rules = own_rules();
    let targets = KINDS.iter().filter(|target| !covers(&rules, target));
    let inject: Vec<_> = targets
        .map(|target| rule(&[target.group], &[target.plural], &INJECT))
        .collect();
    rules.extend(inject);
    let is_core = |rule: &Value| rule["apiGroups"] == json!([""]);
    let (core, other): (Vec<_>, Vec<_>) = bundled_rules().into_iter().partition(is_core);
    rules.push(rule(
        &[""],
        &["namespaces"],
        &["get", "list", "watch", "create", "patch"],
    ));
    rules.extend(core);
    rules.extend([
        rule(&["apps"], &["deployments"], &KEEP),
        rule(&["apps"], &["replicasets"], &["list", "delete"]),
        rule(&[""], &["pods"], &["get", "list", "watch", "create", "delete"]),
        rule(&["discovery.k8s.io"], &["endpointslices"], &["list", "watch"]),
    ]);
    rules.extend(other);
    rules.extend([
        rule(&["events.k8s.io"], &["events"], &["create", "patch"]),
        rule(&["*"], &["*"], &["list"]),
    ]);
    rules
}

/// For the kinds of Windlass, and those that it arms.
fn own_rules() -> Vec<Value> {
    vec![
        rule(
            &["windlass.dev"],
            &["bundledeployments"],
            &["get", "list", "watch", "patch"],
        ),
        rule(&["windlass.dev"], &["servingcertificates"], &KEEP),
        rule(
            &["windlass.dev"],
            &["bundledeployments/status", "servingcertificates/status"],
            &["patch"],
        ),
        rule(&["apiextensions.k8s.io"], &["customresourcedefinitions"], &KEEP),
        rule(
            &["apiextensions.k8s.io"],
            &["customresourcedefinitions/status"],
            &["patch"],
        ),
        rule(
            &["admissionregistration.k8s.io"],
            &["validatingwebhookconfigurations", "mutatingwebhookconfigurations"],
            &KEEP,
        ),
    ]
}

/// What the operator may do with the kinds that bundles may bring along: one rule for those of a group with the same verbs.
fn bundled_rules() -> Vec<Value> {
    let mut rules: Vec<(&str, Vec<&str>, Vec<&str>)> = Vec::new();
    for kind in BundledKind::installed() {
        let more: &[&str] = match kind.kind {
            "Role" | "ClusterRole" => &["escalate", "bind"],
            // Those of ServingCertificates are replaced as a whole.
            "Secret" => &["update"],
            _ => &[],
        };
        let verbs = [&KEEP, more].concat();
        let same =
            |(group, _, of): &&mut (&str, Vec<&str>, Vec<&str>)| *group == kind.group() && *of == verbs;
        match rules.iter_mut().find(same) {
            Some((_, plurals, _)) => plurals.push(kind.plural),
            None => rules.push((kind.group(), vec![kind.plural], verbs)),
        }
    }
    rules
        .iter()
        .map(|(group, plurals, verbs)| rule(&[*group], plurals, verbs))
        .collect()
}

/// Whether rules let objects of a target's kind be watched and patched.
fn covers(rules: &[Value], target: &TargetKind) -> bool {
    rules.iter().any(|rule| {
        let holds = |field, item: &str| object::items(rule, field).iter().any(|held| held == item);
        holds("/apiGroups", target.group)
            && holds("/resources", target.plural)
            && INJECT.iter().all(|verb| holds("/verbs", verb))
    })
}

fn rule(groups: &[&str], resources: &[&str], verbs: &[&str]) -> Value {
    json!({ "apiGroups": groups, "resources": resources, "verbs": verbs })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_target_may_be_watched_and_patched() {
        let rules = rules();
        for target in KINDS {
            assert!(covers(&rules, target), "{}", target.kind);
        }
    }
}
