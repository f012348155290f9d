//! The webhook configurations, built from the entries. The same policies always give the same configurations.

use std::{collections::BTreeMap, sync::LazyLock};

use policy::{PolicyKind, api::POLICY_API_VERSION};
use serde_json::{Value, json};
use windlass_cluster::{Kind, kinds};
use windlass_object::{ObjectKey, names, object};

use super::{
    MUTATE_PATH, VALIDATE_PATH,
    entries::{EntryKind, WebhookEntry},
    exclusions::{self, SYSTEM_NAMESPACE, can_select, cel_list},
};

/// The name of both webhook configurations.
pub const CONFIGURATION: &str = "windlass-policies";

/// The Service that answers for policies, and the objects that its webhooks select.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PolicyService {
    pub(super) namespace: String,
    pub(super) service: &'static str,
    /// The `objectSelector` of the webhooks, a LabelSelector.
    pub(super) objects: Value,
}

/// The plural name under which each `(apiVersion, kind)` is served; `None` if it is unknown.
pub(super) type KnownResources = BTreeMap<(String, String), Option<String>>;

/// One of the two configurations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConfigurationKind {
    Mutating,
    Validating,
}

/// `timeoutSeconds` of each webhook.
const TIMEOUT: u32 = 10;

pub(super) const PORT: i64 = 443;

impl ConfigurationKind {
    pub(super) const BOTH: [Self; 2] = [Self::Mutating, Self::Validating];

    pub(super) fn key(self) -> ObjectKey {
        let kind = match self {
            Self::Mutating => kinds::MUTATING_WEBHOOK_CONFIGURATION,
            Self::Validating => kinds::VALIDATING_WEBHOOK_CONFIGURATION,
        };
        kind.object(None, CONFIGURATION)
    }

    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Mutating => MUTATE_PATH,
            Self::Validating => VALIDATE_PATH,
        }
    }

    /// Returns the whole configuration, with `ca_bundle` in each of its webhooks.
    pub(super) fn object(
        self,
        entries: &[WebhookEntry],
        resources: &KnownResources,
        policy_service: &PolicyService,
        ca_bundle: &str,
    ) -> Value {
        let mut webhooks = self.webhooks(entries, resources, policy_service);
        for webhook in &mut webhooks {
            webhook["clientConfig"]["caBundle"] = ca_bundle.into();
        }
        let key = self.key();
        json!({
            "apiVersion": key.api_version, "kind": key.kind,
            "metadata": {"name": key.name, "annotations": annotations(policy_service)},
            "webhooks": webhooks,
        })
    }

    /// Returns the webhooks as the API server stores them, without the CA bundle: one for policies
    /// themselves, and one for each entry.
    pub(super) fn webhooks(
        self,
        entries: &[WebhookEntry],
        resources: &KnownResources,
        policy_service: &PolicyService,
    ) -> Vec<Value> {
        let mut webhooks = vec![self.policy_webhook(policy_service)];
        for (index, entry) in entries.iter().enumerate() {
            let rules = rules(entry, resources);
            if rules.is_empty() {
                continue;
            }
            let earlier = entries[..index].iter().filter(|earlier| entry.overlaps(earlier));
            let mut conditions = exclusions::match_conditions();
            conditions.extend(earlier.map(|earlier| {
                json!({"name": format!("not-{}", earlier.name), "expression": format!("!({})", match_expression(earlier))})
            }));
            let mut webhook = self.webhook(entry.name, entry.failure_policy, rules, policy_service);
            webhook["matchConditions"] = conditions.into();
            webhook["namespaceSelector"] = namespace_selector(entry, policy_service);
            webhook["objectSelector"] = policy_service.objects.clone();
            webhooks.push(webhook);
        }
        webhooks
    }

    /// Returns the webhook that validates policies, and writes rendered programs into them.
    fn policy_webhook(self, policy_service: &PolicyService) -> Value {
        let (group, version) = object::group_and_version(POLICY_API_VERSION);
        let plurals: Vec<_> = PolicyKind::ALL.into_iter().filter_map(plural).collect();
        let rule = json!({
            "apiGroups": [group], "apiVersions": [version], "resources": plurals,
            "operations": ["CREATE", "UPDATE"], "scope": "*",
        });
        self.webhook("policies", "Fail", vec![rule], policy_service)
    }

    fn webhook(
        self,
        name: &str,
        failure_policy: &str,
        rules: Vec<Value>,
        policy_service: &PolicyService,
    ) -> Value {
        let mut webhook = json!({
            "name": format!("{name}.policies.windlass.dev"),
            "clientConfig": {"service": {
                "namespace": policy_service.namespace, "name": policy_service.service, "path": self.path(), "port": PORT,
            }},
            "rules": rules,
            "failurePolicy": failure_policy,
            "matchPolicy": "Equivalent",
            "namespaceSelector": {},
            "objectSelector": {},
            "sideEffects": "None",
            "timeoutSeconds": TIMEOUT,
            "admissionReviewVersions": ["v1"],
        });
        if self == Self::Mutating {
            webhook["reinvocationPolicy"] = "Never".into();
        }
        webhook
    }
}

/// Returns the annotations that request the injection of the CA bundle.
pub(super) fn annotations(policy_service: &PolicyService) -> Value {
    json!({names::INJECT_CA_FROM: format!("{}/{}", policy_service.namespace, policy_service.service)})
}

/// Returns one rule for all kinds of a group and version with the same operations. A kind whose resource is
/// unknown selects its whole group and version, since it may be served at any moment.
fn rules(entry: &WebhookEntry, resources: &KnownResources) -> Vec<Value> {
    let scope = if entry.namespaces.is_some() {
        "Namespaced"
    } else {
        "*"
    };
    let mut grouped: BTreeMap<(&str, &str, Vec<&str>), Vec<&str>> = BTreeMap::new();
    for (kind, operations) in &entry.kinds {
        let (group, version, resource) = match kind {
            EntryKind::All => ("*", "*", "*"),
            EntryKind::Named(api_version, kind) if can_select(api_version, kind) => {
                let (group, version) = object::group_and_version(api_version);
                let known = resources.get(&(api_version.clone(), kind.clone()));
                (group, version, known.and_then(Option::as_deref).unwrap_or("*"))
            }
            EntryKind::Named(..) => continue,
        };
        let (connecting, other): (Vec<_>, Vec<_>) =
            operations.iter().copied().partition(|name| *name == "CONNECT");
        if !other.is_empty() {
            grouped.entry((group, version, other)).or_default().push(resource);
        }
        // CONNECT requests go to a subresource whose name differs from the kind's plural.
        if !connecting.is_empty() {
            grouped
                .entry((group, version, connecting))
                .or_default()
                .push("*/*");
        }
    }
    grouped
        .into_iter()
        .map(|((group, version, operations), mut resources)| {
            resources.sort_unstable();
            resources.dedup();
            if resources.contains(&"*") {
                resources = vec!["*"];
            }
            json!({
                "apiGroups": [group], "apiVersions": [version], "resources": resources,
                "operations": operations, "scope": scope,
            })
        })
        .collect()
}

/// Returns the `namespaceSelector` of an entry. It always excludes the operator's own and the system
/// namespace: otherwise the pods that answer for policies could not start while no replica is ready.
fn namespace_selector(entry: &WebhookEntry, policy_service: &PolicyService) -> Value {
    const NAME: &str = "kubernetes.io/metadata.name";
    let never = [policy_service.namespace.as_str(), SYSTEM_NAMESPACE];
    let mut expressions = vec![json!({"key": NAME, "operator": "NotIn", "values": never})];
    if let Some(namespaces) = &entry.namespaces {
        expressions.push(json!({"key": NAME, "operator": "In", "values": namespaces}));
    }
    json!({"matchExpressions": expressions})
}

/// Returns the CEL expression that matches the requests of an entry.
fn match_expression(entry: &WebhookEntry) -> String {
    let mut by_operations: BTreeMap<Vec<&str>, Vec<&EntryKind>> = BTreeMap::new();
    for (kind, operations) in &entry.kinds {
        let operations = operations.iter().copied().collect();
        by_operations.entry(operations).or_default().push(kind);
    }
    let alternatives = by_operations.into_iter().map(|(operations, kinds)| {
        let operations = format!("request.operation in {}", cel_list(&operations));
        if kinds.contains(&&EntryKind::All) {
            return operations;
        }
        let mut kinds: Vec<_> = kinds
            .into_iter()
            .filter_map(|kind| match kind {
                EntryKind::Named(_, name) => Some(format!("{}/{name}", kind.group().unwrap_or_default())),
                EntryKind::All => None,
            })
            .collect();
        kinds.dedup();
        let kinds: Vec<_> = kinds.iter().map(String::as_str).collect();
        format!(
            "{operations} && (request.kind.group + '/' + request.kind.kind) in {}",
            cel_list(&kinds)
        )
    });
    let kinds = alternatives
        .map(|one| format!("({one})"))
        .collect::<Vec<_>>()
        .join(" || ");
    match &entry.namespaces {
        Some(namespaces) => {
            let namespaces: Vec<_> = namespaces.iter().map(String::as_str).collect();
            format!("request.namespace in {} && ({kinds})", cel_list(&namespaces))
        }
        None => kinds,
    }
}

/// Returns the plural name of a policy kind.
fn plural(kind: PolicyKind) -> Option<String> {
    // Cached: building the schemas took most of the time of each reconciliation.
    static CRDS: LazyLock<Vec<Value>> = LazyLock::new(policy::crds);
    let crd = CRDS
        .iter()
        .find(|crd| object::text(crd, "/spec/names/kind") == Some(kind.name()))?;
    object::text(crd, "/spec/names/plural").map(str::to_owned)
}

/// Returns the kinds that entries name, each with its apiVersion.
pub(super) fn named_kinds(entries: &[WebhookEntry]) -> impl Iterator<Item = Kind> {
    entries
        .iter()
        .flat_map(|entry| entry.kinds.keys())
        .filter_map(|kind| match kind {
            EntryKind::Named(api_version, kind) if can_select(api_version, kind) => {
                Some(Kind::named(api_version.clone(), kind.clone()))
            }
            _ => None,
        })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn policy_service() -> PolicyService {
        PolicyService {
            namespace: "windlass-system".to_owned(),
            service: "windlass-policies",
            objects: json!({}),
        }
    }

    fn entry(
        name: &'static str,
        namespaces: Option<&[&str]>,
        kinds: &[(&str, &str, &'static [&'static str])],
    ) -> WebhookEntry {
        let kind = |api_version: &str, kind: &str| match kind {
            "*" => EntryKind::All,
            kind => EntryKind::Named(api_version.to_owned(), kind.to_owned()),
        };
        WebhookEntry {
            name,
            failure_policy: "Fail",
            namespaces: namespaces.map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
            kinds: kinds
                .iter()
                .map(|(api_version, name, operations)| {
                    (kind(api_version, name), operations.iter().copied().collect())
                })
                .collect(),
        }
    }

    fn resources() -> KnownResources {
        let known = [
            ("v1", "Pod", Some("pods")),
            ("v1", "Secret", Some("secrets")),
            ("a.b/v1", "New", None),
        ];
        known
            .into_iter()
            .map(|(api_version, kind, resource)| {
                (
                    (api_version.to_owned(), kind.to_owned()),
                    resource.map(str::to_owned),
                )
            })
            .collect()
    }

    #[test]
    fn policies_are_always_validated() {
        for kind in ConfigurationKind::BOTH {
            let webhooks = kind.webhooks(&[], &KnownResources::new(), &policy_service());
            assert_eq!(webhooks.len(), 1);
            assert_eq!(
                webhooks[0]["rules"][0]["resources"],
                json!([
                    "clusteroverridepolicies",
                    "overridepolicies",
                    "clustervalidatepolicies"
                ])
            );
            assert_eq!(
                webhooks[0]["objectSelector"],
                json!({}),
                "policies are checked whatever their labels"
            );
        }
    }

    #[test]
    fn policies_are_validated_whatever_the_object_selector() {
        let objects = json!({"matchLabels": {"policies": "on"}});
        let policy_service = PolicyService {
            objects: objects.clone(),
            ..policy_service()
        };
        let entries = [entry("fail", None, &[("v1", "Pod", &["CREATE"])])];
        for kind in ConfigurationKind::BOTH {
            let webhooks = kind.webhooks(&entries, &resources(), &policy_service);
            assert_eq!(webhooks[0]["objectSelector"], json!({}));
            assert_eq!(webhooks[1]["objectSelector"], objects);
        }
    }

    #[test]
    fn rules_select_the_whole_group_until_the_resource_is_known() {
        let entries = [entry(
            "fail",
            None,
            &[
                ("v1", "Pod", &["CREATE"]),
                ("v1", "Secret", &["CREATE"]),
                ("a.b/v1", "New", &["UPDATE"]),
            ],
        )];
        let webhooks = ConfigurationKind::Mutating.webhooks(&entries, &resources(), &policy_service());
        assert_eq!(
            webhooks[1]["rules"],
            json!([
                {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods", "secrets"], "operations": ["CREATE"], "scope": "*"},
                {"apiGroups": ["a.b"], "apiVersions": ["v1"], "resources": ["*"], "operations": ["UPDATE"], "scope": "*"},
            ])
        );
    }

    #[test]
    fn the_operators_own_objects_are_excluded() {
        let kinds: &[(&str, &str, &'static [&'static str])] = &[
            ("coordination.k8s.io/v1", "Lease", &["CREATE"]),
            ("v1", "Event", &["CREATE"]),
            ("windlass.dev/v1alpha1", "BundleDeployment", &["CREATE"]),
            ("*/*", "Pod", &["CREATE"]),
            ("", "Pod", &["CREATE"]),
            ("apps/", "Deployment", &["CREATE"]),
        ];
        let named = [entry("fail", None, kinds)];
        assert_eq!(
            ConfigurationKind::Mutating
                .webhooks(&named, &KnownResources::new(), &policy_service())
                .len(),
            1
        );
        assert_eq!(named_kinds(&named).count(), 0);
        let all = [entry("fail", None, &[("", "*", &["CREATE"])])];
        let webhooks =
            ConfigurationKind::Validating.webhooks(&all, &KnownResources::new(), &policy_service());
        let selector = &webhooks[1]["namespaceSelector"]["matchExpressions"][0];
        assert_eq!(
            (&selector["operator"], &selector["values"]),
            (&json!("NotIn"), &json!(["windlass-system", "kube-system"]))
        );
        assert_eq!(
            webhooks[1]["matchConditions"],
            Value::from(exclusions::match_conditions())
        );
    }

    #[test]
    fn connect_rules_select_subresources() {
        let entries = [entry("fail", None, &[("v1", "Pod", &["CONNECT", "CREATE"])])];
        let webhooks = ConfigurationKind::Validating.webhooks(&entries, &resources(), &policy_service());
        let rules: BTreeSet<_> = object::items(&webhooks[1], "/rules")
            .iter()
            .map(|rule| {
                (
                    rule["operations"][0].to_string(),
                    rule["resources"][0].to_string(),
                )
            })
            .collect();
        let expected = [("\"CONNECT\"", "\"*/*\""), ("\"CREATE\"", "\"pods\"")];
        assert_eq!(
            rules,
            expected
                .map(|(one, other)| (one.to_owned(), other.to_owned()))
                .into()
        );
    }

    #[test]
    fn a_request_matches_only_one_entry() {
        let entries = [
            entry("fail.namespaced", Some(&["n"]), &[("v1", "Pod", &["CREATE"])]),
            entry("ignore", None, &[("", "*", &["CREATE", "UPDATE"])]),
        ];
        let webhooks = ConfigurationKind::Mutating.webhooks(&entries, &resources(), &policy_service());
        assert_eq!(
            webhooks[2]["matchConditions"][exclusions::match_conditions().len()],
            json!({
                "name": "not-fail.namespaced",
                "expression": r#"!(request.namespace in ["n"] && ((request.operation in ["CREATE"] && (request.kind.group + '/' + request.kind.kind) in ["/Pod"])))"#,
            })
        );
        assert_eq!(webhooks[1]["rules"][0]["scope"], "Namespaced");
        assert_eq!(webhooks[2]["rules"][0]["scope"], "*");
    }

    #[test]
    fn a_new_configuration_has_the_ca_bundle() {
        let object =
            ConfigurationKind::Mutating.object(&[], &KnownResources::new(), &policy_service(), "Q0E=");
        assert_eq!(object["webhooks"][0]["clientConfig"]["caBundle"], "Q0E=");
        assert_eq!(
            object["metadata"]["annotations"][names::INJECT_CA_FROM],
            "windlass-system/windlass-policies"
        );
    }
}
