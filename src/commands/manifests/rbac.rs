//! What the operator may do: each verb that it uses.

use serde_json::{Value, json};
use windlass_cluster::lease::LEASE;
use windlass_object::object;
use windlass_trust::injection::{KINDS, TargetKind};

use super::{Document, NAME, NAMESPACE, labels};

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
    "The Lease by which one replica leads. What is to be created has no name that a rule could ask for.";

/// Why the role is as wide as it is.
const ROLE: &str = "Each verb that the operator uses.
Bundles bring roles for their operators, with whatever these need. Nobody may create a role with more than they
have themselves, so `escalate` and `bind` are needed; whoever may create BundleDeployments may therefore grant
anything.
Secrets cannot be narrowed down by label: only those of ServingCertificates and of bundles are read and written.
Listing everything proves a conversion: a stored object of the CRD is sent through the webhook before it is armed. And
before a CRD gets another schema, its objects are tried against that.
Stored objects are rewritten after an upgrade has moved their storage version: for as long as that takes, and for the
resources of that CRD only, the operator grants itself `get` and `patch` by a ClusterRole of its own.
CustomResourceDefinitions are deleted only for a BundleDeployment with deletionPolicy: DeleteCRDs.
Pods are created for the canaries of upgrades, and only these are deleted.";

fn rules() -> Vec<Value> {
    let mut rules = vec![
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
    ];
    let targets = KINDS.iter().filter(|target| !covers(&rules, target));
    let inject: Vec<_> = targets
        .map(|target| rule(&[target.group], &[target.plural], &INJECT))
        .collect();
    rules.extend(inject);
    rules.extend(workload_rules());
    rules.extend(bundled_rules());
    rules.extend([
        rule(&["events.k8s.io"], &["events"], &["create", "patch"]),
        rule(&["*"], &["*"], &["list"]),
    ]);
    rules
}

/// For what an operator consists of and serves with.
fn workload_rules() -> Vec<Value> {
    let with = |more: &[&'static str]| [&KEEP[..], more].concat();
    vec![
        rule(&[""], &["namespaces"], &["get", "list", "create", "patch"]),
        rule(&[""], &["serviceaccounts", "services", "configmaps"], &KEEP),
        rule(&[""], &["secrets"], &with(&["update"])),
        rule(&["apps"], &["deployments"], &KEEP),
        rule(&["apps"], &["replicasets"], &["list"]),
        rule(&[""], &["pods"], &["get", "list", "watch", "create", "delete"]),
        rule(&["discovery.k8s.io"], &["endpointslices"], &["list", "watch"]),
        rule(
            &["rbac.authorization.k8s.io"],
            &["roles", "clusterroles"],
            &with(&["escalate", "bind"]),
        ),
        rule(
            &["rbac.authorization.k8s.io"],
            &["rolebindings", "clusterrolebindings"],
            &KEEP,
        ),
    ]
}

/// For the other kinds that bundles may hold.
fn bundled_rules() -> Vec<Value> {
    vec![
        rule(&["policy"], &["poddisruptionbudgets"], &KEEP),
        rule(&["networking.k8s.io"], &["networkpolicies"], &KEEP),
        rule(&["scheduling.k8s.io"], &["priorityclasses"], &KEEP),
        rule(&["autoscaling.k8s.io"], &["verticalpodautoscalers"], &KEEP),
        rule(
            &["monitoring.coreos.com"],
            &["prometheusrules", "servicemonitors", "podmonitors"],
            &KEEP,
        ),
        rule(
            &["console.openshift.io"],
            &[
                "consoleyamlsamples",
                "consolequickstarts",
                "consoleclidownloads",
                "consolelinks",
                "consoleplugins",
            ],
            &KEEP,
        ),
    ]
}

fn rule(groups: &[&str], resources: &[&str], verbs: &[&str]) -> Value {
    json!({ "apiGroups": groups, "resources": resources, "verbs": verbs })
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
