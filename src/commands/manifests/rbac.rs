//! The rights of the operator: each verb that it uses.

use serde_json::{Value, json};
use windlass_bundle::BundledKind;
use windlass_object::object;
use windlass_operator::{
    Controllers,
    admission::{AdmissionService, CERTIFICATES_ACCOUNT},
    policies::{CONFIGURATION, REPORT_DEFINITIONS},
};
use windlass_trust::injection::{KINDS, TargetKind};

use super::{
    document::{Document, NAME, NAMESPACE, labels},
    ui,
};

const INJECT: [&str; 4] = ["get", "list", "watch", "patch"];
const KEEP: [&str; 6] = ["get", "list", "watch", "create", "patch", "delete"];

/// Returns the ServiceAccount, its roles and their bindings.
pub(super) fn documents() -> Vec<Document> {
    account(NAME, Controllers::DEFAULT, ROLE, rules(), Vec::new())
}

/// Returns the same for a process that runs only the certificate controllers.
pub(super) fn certificates_documents() -> Vec<Document> {
    account(
        CERTIFICATES_ACCOUNT,
        Controllers::CERTIFICATES,
        CERTIFICATES_ROLE,
        certificates_rules(),
        Vec::new(),
    )
}

/// Returns the same for a process that runs only the policy controllers.
pub(super) fn policies_documents() -> Vec<Document> {
    account(
        AdmissionService::POLICIES.name,
        Controllers::POLICIES,
        POLICIES_ROLE,
        policies_rules(),
        own_policies_rules(),
    )
    .into_iter()
    .chain(data_documents())
    .collect()
}

/// Returns the aggregated role by which policies read referenced objects: it has the rights of any
/// ClusterRole with this label.
fn data_documents() -> [Document; 2] {
    const LABEL: &str = "rbac.windlass.dev/aggregate-to-policies";
    let account = AdmissionService::POLICIES.name;
    let name = format!("{account}-data");
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": name, "labels": labels() },
        "aggregationRule": { "clusterRoleSelectors": [{ "matchLabels": { LABEL: "true" } }] },
        "rules": [],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": { "name": name, "labels": labels() },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name },
        "subjects": [{ "kind": "ServiceAccount", "name": account, "namespace": NAMESPACE }],
    });
    [Document::commented(DATA_ROLE, role), Document::new(binding)]
}

/// The comment on the role for referenced objects.
const DATA_ROLE: &str = "Policies read the objects that they refer to (from: k8s, from: owner) with the rights of ClusterRoles with this label. There are \
none by default:
  kubectl create clusterrole policies-read-configmaps --verb=get,list,watch --resource=configmaps
  kubectl label clusterrole policies-read-configmaps rbac.windlass.dev/aggregate-to-policies=true";

/// Returns the same for the server of the page, and a role for its users.
pub(super) fn ui_documents() -> Vec<Document> {
    let viewer = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": format!("{}-viewer", ui::NAME), "labels": labels() },
        "rules": [{ "nonResourceURLs": [windlass_ui::PATH], "verbs": ["get"] }],
    });
    let mut documents = bound_account(ui::NAME, UI_ROLE, ui_rules());
    documents.push(Document::commented(VIEWER_ROLE, viewer));
    documents
}

/// Returns the rules to read the objects on the page, and to review its users' access.
fn ui_rules() -> Vec<Value> {
    let mut rules = vec![
        rule(
            &["windlass.dev"],
            &["bundledeployments", "servingcertificates"],
            &["list"],
        ),
        rule(&["authentication.k8s.io"], &["tokenreviews"], &["create"]),
        rule(&["authorization.k8s.io"], &["subjectaccessreviews"], &["create"]),
    ];
    rules.extend(
        KINDS
            .iter()
            .map(|target| rule(&[&target.group], &[&target.plural], &["list"])),
    );
    rules
}

/// The comment on the role of the page's server.
const UI_ROLE: &str = "Reads the objects on the page, and asks the API server whether users may see it. Reads no Secret, and writes nothing.";

/// The comment on the role for users of the page.
const VIEWER_ROLE: &str = "Users with this role can see the page, and with it the names and conditions of all bundles, certificates and targets:
  kubectl create clusterrolebinding windlass-ui-viewers --clusterrole=windlass-ui-viewer --group=GROUP";

/// Returns a ServiceAccount for these controllers, with `rules` in the whole cluster, and their Lease and
/// `own` in the operator's namespace.
fn account(
    name: &str,
    controllers: Controllers,
    comment: &'static str,
    rules: Vec<Value>,
    own: Vec<Value>,
) -> Vec<Document> {
    let lease = json!({
        "apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
        "resourceNames": [controllers.lease()], "verbs": ["get", "update"],
    });
    let new_lease = rule(&["coordination.k8s.io"], &["leases"], &["create"]);
    let own: Vec<_> = [lease, new_lease].into_iter().chain(own).collect();
    let election = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": { "name": name, "namespace": NAMESPACE, "labels": labels() },
        "rules": own,
    });
    let election_binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": { "name": name, "namespace": NAMESPACE, "labels": labels() },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name },
        "subjects": [{ "kind": "ServiceAccount", "name": name, "namespace": NAMESPACE }],
    });
    let mut documents = bound_account(name, comment, rules);
    documents.push(Document::commented(ELECTION, election));
    documents.push(Document::new(election_binding));
    documents
}

/// Returns a ServiceAccount with `rules` in the whole cluster.
fn bound_account(name: &str, comment: &'static str, rules: Vec<Value>) -> Vec<Document> {
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": { "name": name, "namespace": NAMESPACE, "labels": labels() },
    });
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": name, "labels": labels() },
        "rules": rules,
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": { "name": name, "labels": labels() },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name },
        "subjects": [{ "kind": "ServiceAccount", "name": name, "namespace": NAMESPACE }],
    });
    vec![
        Document::new(account),
        Document::commented(comment, role),
        Document::new(binding),
    ]
}

/// The comment on the role in the operator's namespace.
const ELECTION: &str =
    "The Lease for leader election. RBAC cannot restrict create requests by resource name.";

/// The comment on the operator's ClusterRole.
const ROLE: &str = "Every verb that the operator uses.
Bundles contain roles for their operators, with whatever permissions these need. RBAC lets no user create a role with
more permissions than their own, so `escalate` and `bind` are needed; anyone who can create BundleDeployments can
therefore grant any permission.
The objects of a BundleDeployment with serviceAccountName are written as that account, by `impersonate`.
RBAC cannot restrict Secrets by label: only those of ServingCertificates and of bundles are read and written.
Listing all resources is for proof of conversions: a stored object of the CRD is sent through the webhook before it is
armed. Also, before the schema of a CRD changes, its objects are validated against the new schema.
After an upgrade has changed the storage version of a CRD, its stored objects are rewritten: while that takes place,
and for the resources of that CRD only, the operator grants itself `get` and `patch` by a separate ClusterRole.
In the same way it grants itself `delete` when a namespace is deleted together with the servers that convert its objects.
CustomResourceDefinitions are deleted only for a BundleDeployment with deletionPolicy: DeleteCRDs.
APIServices and ExtensionConfigs are created only for bundles that contain them, and only these are deleted.
Pods are created only as canaries of upgrades, and only these are deleted.
StatefulSets and DaemonSets are patched only to restart pods that do not reload a serving certificate.
ReplicaSets are deleted only where the selector of a bundle's Deployment changes: its old pods serve until the new ones do.";

/// The comment on the ClusterRole of the certificate controllers.
const CERTIFICATES_ROLE: &str = "Every verb that the certificate controllers use: the combined rights of cainjector and service-ca.
RBAC cannot restrict Secrets by label. Windlass reads and writes those of ServingCertificates, and those that record the
certificates of other issuers. It reads those that targets name in inject-ca-from-secret, and those of cert-manager Certificates
that targets name. ConfigMaps are patched only where they request CA certificates, which RBAC cannot restrict by annotation.
Deployments, StatefulSets and DaemonSets are patched only to restart pods that do not reload a serving certificate.";

/// The comment on the ClusterRole of the policy controllers.
const POLICIES_ROLE: &str =
    "Every verb that the policy controllers use. They write only their own webhook configurations.";

/// The kinds of policies.
const POLICIES: [&str; 3] = [
    "clusteroverridepolicies",
    "clustervalidatepolicies",
    "overridepolicies",
];

/// Returns the cluster-wide rules of the policy controllers.
fn policies_rules() -> Vec<Value> {
    const CONFIGURATIONS: [&str; 2] = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];
    const GROUP: &str = "admissionregistration.k8s.io";
    let status = POLICIES.map(|plural| format!("{plural}/status"));
    let status: Vec<_> = status.iter().map(String::as_str).collect();
    let mut configurations = rule(&[GROUP], &CONFIGURATIONS, &["list", "watch", "patch", "delete"]);
    configurations["resourceNames"] = json!([CONFIGURATION]);
    let mut definitions = rule(
        &["apiextensions.k8s.io"],
        &["customresourcedefinitions"],
        &["list", "watch"],
    );
    definitions["resourceNames"] = json!(REPORT_DEFINITIONS);
    vec![
        rule(&["policy.kcloudlabs.io"], &POLICIES, &["list", "watch"]),
        rule(&["policy.kcloudlabs.io"], &status, &["patch"]),
        configurations,
        rule(&[GROUP], &CONFIGURATIONS, &["create"]),
        rule(&[""], &["namespaces"], &["get", "list", "watch"]),
        rule(&["events.k8s.io"], &["events"], &["create", "patch"]),
        rule(
            &["wgpolicyk8s.io"],
            &["clusterpolicyreports", "policyreports"],
            &["list", "watch", "create", "patch", "delete"],
        ),
        definitions,
    ]
}

/// Returns the rules of the policy controllers in the operator's namespace, for the endpoints and certificate
/// of their server.
fn own_policies_rules() -> Vec<Value> {
    let named = |resource: &str, name: &str| {
        let mut rule = rule(&[""], &[resource], &["list", "watch"]);
        rule["resourceNames"] = json!([name]);
        rule
    };
    let AdmissionService { name, secret } = AdmissionService::POLICIES;
    vec![
        named("secrets", secret),
        named("services", name),
        rule(&["discovery.k8s.io"], &["endpointslices"], &["list", "watch"]),
    ]
}

/// Returns the rules of the certificate controllers: a part of [`rules`].
fn certificates_rules() -> Vec<Value> {
    let mut rules = vec![
        rule(
            &["windlass.dev"],
            &["servingcertificates"],
            &["get", "list", "watch", "create", "delete"],
        ),
        rule(&["windlass.dev"], &["injectiontargets"], &["list", "watch"]),
        rule(
            &["windlass.dev"],
            &["injectiontargets/status", "servingcertificates/status"],
            &["patch"],
        ),
        rule(
            &[""],
            &["secrets"],
            &["get", "list", "watch", "create", "update", "delete"],
        ),
        rule(&[""], &["services"], &["list", "watch"]),
        rule(&[""], &["pods"], &["list"]),
        rule(&["discovery.k8s.io"], &["endpointslices"], &["list", "watch"]),
        rule(
            &["apps"],
            &["deployments", "statefulsets", "daemonsets"],
            &["get", "patch"],
        ),
        rule(&["apps"], &["replicasets"], &["get"]),
        rule(&["events.k8s.io"], &["events"], &["create", "patch"]),
        rule(&["coordination.k8s.io"], &["leases"], &["list", "watch"]),
        rule(&["cert-manager.io"], &["certificates"], &["list", "watch"]),
        rule(
            &["runtime.cluster.x-k8s.io"],
            &["extensionconfigs/status"],
            &["patch"],
        ),
    ];
    rules.extend(
        KINDS
            .iter()
            .map(|target| rule(&[&target.group], &[&target.plural], &INJECT)),
    );
    rules
}

/// Returns everything that the operator may do when it runs all controllers.
fn rules() -> Vec<Value> {
    let (mut rules, bundled) = (own_rules(), bundled_rules());
    let is_covered = |target: &&TargetKind| covers(&rules, target) || covers(&bundled, target);
    let targets = KINDS.iter().filter(|target| !is_covered(target));
    let inject: Vec<_> = targets
        .map(|target| rule(&[&target.group], &[&target.plural], &INJECT))
        .collect();
    rules.extend(inject);
    let is_core = |rule: &Value| rule["apiGroups"] == json!([""]);
    let (core, other): (Vec<_>, Vec<_>) = bundled.into_iter().partition(is_core);
    rules.push(rule(
        &[""],
        &["namespaces"],
        &["get", "list", "watch", "create", "patch"],
    ));
    rules.extend(core);
    rules.extend([
        rule(&[""], &["serviceaccounts"], &["impersonate"]),
        rule(&["apps"], &["deployments"], &KEEP),
        rule(&["apps"], &["statefulsets", "daemonsets"], &["get", "patch"]),
        rule(&["apps"], &["replicasets"], &["get", "list", "delete"]),
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

/// Returns the rules for the kinds of Windlass, and for the kinds that it arms.
fn own_rules() -> Vec<Value> {
    vec![
        rule(
            &["windlass.dev"],
            &["bundledeployments"],
            &["get", "list", "watch", "patch"],
        ),
        rule(&["windlass.dev"], &["servingcertificates"], &KEEP),
        rule(&["windlass.dev"], &["injectiontargets"], &["list", "watch"]),
        rule(
            &["windlass.dev"],
            &[
                "bundledeployments/status",
                "injectiontargets/status",
                "servingcertificates/status",
            ],
            &["patch"],
        ),
        rule(
            &["runtime.cluster.x-k8s.io"],
            &["extensionconfigs/status"],
            &["patch"],
        ),
        rule(&["coordination.k8s.io"], &["leases"], &["watch"]),
        rule(&["cert-manager.io"], &["certificates"], &["watch"]),
        rule(
            &["config.karmada.io"],
            &["resourceinterpretercustomizations"],
            &["watch"],
        ),
        rule(
            &["interpretation.windlass.dev"],
            &["resourceinterpretations"],
            &["watch"],
        ),
        rule(&["policy.kcloudlabs.io"], &POLICIES, &["watch"]),
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

/// Returns the rules for the kinds that bundles can contain: one rule for kinds of a group with the same
/// verbs.
fn bundled_rules() -> Vec<Value> {
    let mut rules: Vec<(&str, Vec<&str>, Vec<&str>)> = Vec::new();
    for kind in BundledKind::installable() {
        let more: &[&str] = match kind.kind {
            "Role" | "ClusterRole" => &["escalate", "bind"],
            // Secrets of ServingCertificates are replaced as a whole.
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

/// Reports whether rules allow to watch and patch objects of a target's kind.
fn covers(rules: &[Value], target: &TargetKind) -> bool {
    rules.iter().any(|rule| {
        let holds = |field, item: &str| object::items(rule, field).iter().any(|held| held == item);
        holds("/apiGroups", &target.group)
            && holds("/resources", &target.plural)
            && INJECT.iter().all(|verb| holds("/verbs", verb))
    })
}

fn rule(groups: &[&str], resources: &[&str], verbs: &[&str]) -> Value {
    json!({ "apiGroups": groups, "resources": resources, "verbs": verbs })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_target_kind_can_be_watched_and_patched() {
        let rules = rules();
        for target in KINDS.iter() {
            assert!(covers(&rules, target), "{}", target.kind);
        }
    }

    /// Returns each verb on each resource.
    fn rights(rules: &[Value]) -> BTreeSet<(&str, &str, &str)> {
        let words = |rule, field| object::items(rule, field).iter().filter_map(Value::as_str);
        let mut rights = BTreeSet::new();
        for rule in rules {
            for group in words(rule, "/apiGroups") {
                for resource in words(rule, "/resources") {
                    rights.extend(words(rule, "/verbs").map(|verb| (group, resource, verb)));
                }
            }
        }
        rights
    }

    #[test]
    fn certificate_controllers_have_fewer_rights_and_cannot_grant_any() {
        let (all, certificates) = (rules(), certificates_rules());
        let (all, certificates) = (rights(&all), rights(&certificates));
        let is_part = |right: &(&str, &str, &str)| all.contains(right) || all.contains(&("*", "*", right.2));
        assert!(certificates.iter().all(is_part), "{certificates:?}");
        for (group, resource, verb) in certificates {
            assert_ne!(group, "rbac.authorization.k8s.io", "{verb} {resource}");
            assert!(
                !["*", "escalate", "bind", "impersonate"].contains(&verb),
                "{verb} {resource}"
            );
            assert!(resource != "*", "{verb} {resource}");
            assert!(resource != "pods" || verb == "list", "{verb} {resource}");
        }
    }
}
