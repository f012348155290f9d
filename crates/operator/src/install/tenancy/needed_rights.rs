//! The rights that an install needs: to write each object, and to hand out what its roles allow.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use windlass_api::{MissingRights, PermissionRule};
use windlass_bundle::BundledKind;
use windlass_object::{ObjectKey, object};

use super::coverage::{RightAtom, atoms, covers, rules_of};

/// What an account must be allowed, by namespace; without one, in the whole cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NeededRights {
    writes: BTreeMap<Option<String>, Vec<PermissionRule>>,
    handed_out: Vec<HandedOut>,
}

/// Rules that a role or a binding hands out. Nobody may hand out more than they have, unless a verb on the role allows it
/// ("Privilege escalation prevention and bootstrapping" in the Kubernetes documentation of RBAC).
#[derive(Clone, Debug, PartialEq)]
pub struct HandedOut {
    /// Where they hold; in the whole cluster, without.
    pub namespace: Option<String>,
    /// What makes it unnecessary to have them: `escalate` or `bind`.
    pub unless: PermissionRule,
    /// The rules.
    pub rules: Vec<PermissionRule>,
}

/// What an account has, by namespace; without one, in the whole cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeldRights {
    /// The rules.
    pub rules: BTreeMap<Option<String>, Vec<PermissionRule>>,
    /// Where it may have more than these: there, only trying tells.
    pub incomplete: BTreeSet<Option<String>>,
}

/// Where a kind is in RBAC.
struct RbacResource {
    group: String,
    plural: &'static str,
    namespaced: bool,
}

const RBAC: &str = "rbac.authorization.k8s.io";

/// The kinds that a bundle has beside [`BundledKind`]s: kind, group, resource, whether it is namespaced.
const OTHERS: [(&str, &str, &str, bool); 5] = [
    ("Namespace", "", "namespaces", false),
    ("Deployment", "apps", "deployments", true),
    (
        "CustomResourceDefinition",
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        false,
    ),
    (
        "ValidatingWebhookConfiguration",
        "admissionregistration.k8s.io",
        "validatingwebhookconfigurations",
        false,
    ),
    (
        "MutatingWebhookConfiguration",
        "admissionregistration.k8s.io",
        "mutatingwebhookconfigurations",
        false,
    ),
];

impl NeededRights {
    /// What it takes to keep `objects`. `role` finds roles that are in the cluster: bindings may name them.
    pub fn to_apply<'a>(
        objects: impl IntoIterator<Item = &'a Value>,
        role: impl Fn(&ObjectKey) -> Option<&'a Value>,
    ) -> Self {
        let objects: Vec<_> = objects.into_iter().collect();
        let mut needed = Self::default();
        for object in &objects {
            // RBAC cannot restrict creation by name.
            needed.write(object, &["create"], false);
            needed.write(object, &["patch"], true);
            let planned = |key: &ObjectKey| {
                let is_it = |other: &&&Value| {
                    ObjectKey::from_object(other).is_some_and(|other| other.is_same_object(key))
                };
                objects.iter().find(is_it).copied()
            };
            needed
                .handed_out
                .extend(HandedOut::by(object, |key| planned(key).or_else(|| role(key))));
        }
        needed
    }

    /// The same, and to delete these.
    #[must_use]
    pub fn and_to_delete<'a>(mut self, objects: impl IntoIterator<Item = &'a Value>) -> Self {
        for object in objects {
            self.write(object, &["delete"], true);
        }
        self
    }

    /// The places where what an account has must be known.
    pub fn places(&self) -> BTreeSet<Option<&str>> {
        let handed_out = self.handed_out.iter().map(|handed| handed.namespace.as_deref());
        self.writes
            .keys()
            .map(Option::as_deref)
            .chain(handed_out)
            .collect()
    }

    /// What an account lacks that has `held`.
    pub fn missing(&self, held: &HeldRights) -> Vec<MissingRights> {
        let mut missing: BTreeMap<&Option<String>, BTreeSet<RightAtom>> = BTreeMap::new();
        let has = |place: &Option<String>, atom: &RightAtom| {
            let rules = held.rules.get(place).map_or(&[][..], Vec::as_slice);
            covers(rules, atom)
        };
        let mut lacks = |place, rules: &[PermissionRule]| {
            let lacking = atoms(rules).into_iter().filter(|atom| !has(place, atom));
            missing.entry(place).or_default().extend(lacking);
        };
        for (place, rules) in &self.writes {
            lacks(place, rules);
        }
        for HandedOut {
            namespace,
            unless,
            rules,
        } in &self.handed_out
        {
            if !atoms([unless]).iter().all(|atom| has(namespace, atom)) {
                lacks(namespace, rules);
            }
        }
        missing.retain(|place, atoms| !atoms.is_empty() && !held.incomplete.contains(*place));
        missing
            .into_iter()
            .map(|(namespace, atoms)| MissingRights {
                namespace: namespace.clone(),
                rules: rules_of(atoms),
            })
            .collect()
    }

    /// What is in a namespace is not told apart by name: its names change with each version of a bundle. In the whole cluster,
    /// `named` verbs are for the object alone.
    fn write(&mut self, object: &Value, verbs: &[&str], named: bool) {
        let Some((key, resource)) = ObjectKey::from_object(object).and_then(|key| {
            let resource = RbacResource::of(&key)?;
            Some((key, resource))
        }) else {
            return;
        };
        let rule = PermissionRule::new(&resource.group, resource.plural, verbs);
        let rule = match named && !resource.namespaced {
            true => rule.named(&key.name),
            false => rule,
        };
        let place = key.namespace.filter(|_| resource.namespaced);
        let rules = self.writes.entry(place).or_default();
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
}

impl HandedOut {
    /// What `object` hands out, if it is a role or a binding. What a role allows that cannot be read is not known: then only the
    /// right to bind it helps.
    fn by<'a>(object: &Value, role: impl Fn(&ObjectKey) -> Option<&'a Value>) -> Option<Self> {
        let key = ObjectKey::from_object(object).filter(|key| key.group() == RBAC)?;
        let allowing = |verb: &str, kind: &str, name: &str| {
            let plural = BundledKind::from_kind(kind).map(|kind| kind.plural)?;
            Some(PermissionRule::new(RBAC, plural, &[verb]).named(name))
        };
        let (unless, rules) = match key.kind.as_str() {
            "Role" | "ClusterRole" => (allowing("escalate", &key.kind, &key.name)?, rules(object)),
            "RoleBinding" | "ClusterRoleBinding" => {
                let text = |pointer| object::text(object, pointer);
                let (kind, name) = (text("/roleRef/kind")?, text("/roleRef/name")?);
                let unless = allowing("bind", kind, name)?;
                let of = ObjectKey {
                    kind: kind.to_owned(),
                    name: name.to_owned(),
                    namespace: key.namespace.clone().filter(|_| kind == "Role"),
                    ..key.clone()
                };
                let rules = role(&of).map_or_else(|| vec![unless.clone()], rules);
                (unless, rules)
            }
            _ => return None,
        };
        Some(Self {
            namespace: key.namespace,
            unless,
            rules,
        })
    }
}

impl RbacResource {
    /// That of an object which is written by the account.
    fn of(key: &ObjectKey) -> Option<Self> {
        let other = OTHERS
            .iter()
            .find(|(kind, group, ..)| key.kind == *kind && key.group() == *group);
        if let Some((_, group, plural, namespaced)) = other.copied() {
            return Some(Self {
                group: group.to_owned(),
                plural,
                namespaced,
            });
        }
        let bundled = BundledKind::installable().find(|bundled| key.kind == bundled.kind)?;
        Some(Self {
            group: key.group().to_owned(),
            plural: bundled.plural,
            namespaced: bundled.namespaced,
        })
    }
}

/// The rules of a role. One that puts others together may get any rule (`fullAuthority` of kube-apiserver's
/// `clusterrole/policybased`).
fn rules(role: &Value) -> Vec<PermissionRule> {
    let mut rules: Vec<PermissionRule> = object::items(role, "/rules")
        .iter()
        .filter_map(|rule| serde_json::from_value(rule.clone()).ok())
        .collect();
    if role.get("aggregationRule").is_some_and(|rule| !rule.is_null()) {
        rules.push(PermissionRule::new("*", "*", &["*"]));
        rules.push(PermissionRule {
            non_resource_urls: vec!["*".to_owned()],
            verbs: vec!["*".to_owned()],
            ..PermissionRule::default()
        });
    }
    rules
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(api_version: &str, kind: &str, namespace: Option<&str>, name: &str) -> Value {
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"namespace": namespace, "name": name}})
    }

    fn role(kind: &str, namespace: Option<&str>, rules: Value) -> Value {
        let mut role = object("rbac.authorization.k8s.io/v1", kind, namespace, "r");
        role["rules"] = rules;
        role
    }

    fn binding(kind: &str, namespace: Option<&str>, of: &str, name: &str) -> Value {
        let mut binding = object("rbac.authorization.k8s.io/v1", kind, namespace, "b");
        binding["roleRef"] = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": of, "name": name});
        binding
    }

    fn reading_pods() -> Value {
        json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}])
    }

    fn held(rules: &[(Option<&str>, PermissionRule)]) -> HeldRights {
        let mut held = HeldRights::default();
        for (place, rule) in rules {
            let place = place.map(str::to_owned);
            held.rules.entry(place).or_default().push(rule.clone());
        }
        held
    }

    /// What is missing, a rule a line, after where.
    fn said(missing: &[MissingRights]) -> Vec<String> {
        let lines = missing.iter().flat_map(|missing| {
            let place = missing.namespace.as_deref().unwrap_or("*");
            missing.rules.iter().map(move |rule| format!("{place}: {rule}"))
        });
        lines.collect()
    }

    fn missing(objects: &[Value], held: &HeldRights) -> Vec<String> {
        said(&NeededRights::to_apply(objects, |_| None).missing(held))
    }

    #[test]
    fn each_object_is_written_where_it_is_and_by_name_in_the_whole_cluster() {
        let objects = [
            object("v1", "ConfigMap", Some("n"), "a"),
            object("v1", "ConfigMap", Some("n"), "b"),
            object("apps/v1", "Deployment", Some("n"), "a"),
            object(
                "apiextensions.k8s.io/v1",
                "CustomResourceDefinition",
                None,
                "a.example.com",
            ),
            object("v1", "Service", Some("m"), "a"),
            // Windlass' own.
            object("windlass.dev/v1alpha1", "ServingCertificate", Some("n"), "a"),
        ];
        let expected = [
            "*: create customresourcedefinitions.apiextensions.k8s.io",
            "*: patch customresourcedefinitions.apiextensions.k8s.io named a.example.com",
            "m: create, patch services",
            "n: create, patch configmaps",
            "n: create, patch deployments.apps",
        ];
        assert_eq!(missing(&objects, &HeldRights::default()), expected);
        let needed = NeededRights::to_apply(&objects, |_| None).and_to_delete(&objects[2..4]);
        let rights = said(&needed.missing(&HeldRights::default()));
        assert!(
            rights.contains(&"n: create, delete, patch deployments.apps".to_owned()),
            "{rights:?}"
        );
        let crd = "*: delete, patch customresourcedefinitions.apiextensions.k8s.io named a.example.com";
        assert!(rights.contains(&crd.to_owned()), "{rights:?}");
    }

    #[test]
    fn every_kind_of_a_bundle_has_a_resource() {
        for kind in BundledKind::installable() {
            let object = object(kind.api_version, kind.kind, kind.namespaced.then_some("n"), "a");
            let missing = missing(&[object], &HeldRights::default());
            assert!(
                missing.iter().any(|right| right.contains(kind.plural)),
                "{}: {missing:?}",
                kind.kind
            );
        }
    }

    #[test]
    fn what_a_role_allows_must_be_held_where_it_holds_or_its_escalation() {
        let writes = |plural: &str, place| (place, PermissionRule::new(RBAC, plural, &["create", "patch"]));
        let pods = |place| (place, PermissionRule::new("", "pods", &["get"]));
        let escalate = |plural: &str, place| (place, PermissionRule::new(RBAC, plural, &["escalate"]));
        let in_namespace = [role("Role", Some("n"), reading_pods())];
        let in_cluster = [role("ClusterRole", None, reading_pods())];
        let roles = writes("roles", Some("n"));
        assert_eq!(
            missing(&in_namespace, &held(std::slice::from_ref(&roles))),
            ["n: get pods"]
        );
        assert_eq!(
            missing(&in_namespace, &held(&[roles.clone(), pods(Some("n"))])),
            [""; 0]
        );
        assert_eq!(
            missing(&in_namespace, &held(&[roles, escalate("roles", Some("n"))])),
            [""; 0]
        );
        let roles = writes("clusterroles", None);
        let elsewhere = held(&[roles.clone(), pods(Some("n"))]);
        assert_eq!(missing(&in_cluster, &elsewhere), ["*: get pods"]);
        assert_eq!(missing(&in_cluster, &held(&[roles, pods(None)])), [""; 0]);
    }

    #[test]
    fn what_a_binding_hands_out_is_that_of_its_role_wherever_that_comes_from() {
        let writes = ["rolebindings", "clusterroles"].map(|plural| {
            [None, Some("n")].map(|place| (place, PermissionRule::new(RBAC, plural, &["create", "patch"])))
        });
        let writes: Vec<_> = writes.into_iter().flatten().collect();
        let bundled = [
            role("ClusterRole", None, reading_pods()),
            binding("RoleBinding", Some("n"), "ClusterRole", "r"),
        ];
        assert_eq!(missing(&bundled, &held(&writes)), ["*: get pods", "n: get pods"]);
        let there = role("ClusterRole", None, reading_pods());
        let found = NeededRights::to_apply(&bundled[1..], |key| {
            assert_eq!(
                (&*key.kind, &*key.name, key.namespace.as_deref()),
                ("ClusterRole", "r", None)
            );
            Some(&there)
        });
        assert_eq!(said(&found.missing(&held(&writes))), ["n: get pods"]);
        // A role that nobody knows.
        let unknown = "n: bind clusterroles.rbac.authorization.k8s.io named r";
        assert_eq!(missing(&bundled[1..], &held(&writes)), [unknown]);
        let bind = PermissionRule::new(RBAC, "clusterroles", &["bind"]).named("r");
        let bound: Vec<_> = writes.into_iter().chain([(Some("n"), bind)]).collect();
        assert_eq!(missing(&bundled[1..], &held(&bound)), [""; 0]);
    }

    #[test]
    fn a_role_of_roles_takes_every_right() {
        let mut of_roles = role("ClusterRole", None, json!([]));
        of_roles["aggregationRule"] = json!({"clusterRoleSelectors": []});
        let writes = (
            None,
            PermissionRule::new(RBAC, "clusterroles", &["create", "patch"]),
        );
        assert_eq!(missing(&[of_roles], &held(&[writes])), ["*: * *.*", "*: * *"]);
    }

    #[test]
    fn nothing_is_said_of_a_place_where_an_account_may_have_more() {
        let mut held = HeldRights::default();
        held.incomplete.insert(Some("n".to_owned()));
        let objects = [
            object("v1", "ConfigMap", Some("n"), "a"),
            object("v1", "ConfigMap", Some("m"), "a"),
        ];
        assert_eq!(missing(&objects, &held), ["m: create, patch configmaps"]);
    }

    #[test]
    fn what_is_granted_is_enough() {
        let objects = [
            object("v1", "ConfigMap", Some("n"), "a"),
            role("ClusterRole", None, reading_pods()),
            role(
                "Role",
                Some("n"),
                json!([{"apiGroups": ["*"], "resources": ["*"], "resourceNames": ["x"], "verbs": ["*"]}]),
            ),
            binding("RoleBinding", Some("m"), "Role", "other"),
        ];
        let needed = NeededRights::to_apply(&objects, |_| None).and_to_delete(&objects);
        let mut granted = HeldRights::default();
        for missing in needed.missing(&HeldRights::default()) {
            granted.rules.insert(missing.namespace, missing.rules);
        }
        assert_eq!(needed.missing(&granted), []);
    }
}
