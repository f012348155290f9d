//! What of a plan is left out, because what it would be in, or be, is not there (yet).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use windlass_bundle::BundledKind;
use windlass_cluster::Kind;
use windlass_object::{ObjectKey, object};
use windlass_trust::injection::KINDS;

use super::{install_plan::Plan, phases::Phases};

/// What is not there of what a plan asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Absences {
    /// Kinds that the cluster does not serve: `apiVersion` and kind.
    pub kinds: BTreeSet<(String, String)>,
    /// The `apiVersion` in which the cluster serves a kind that it does not serve in the one of the plan, or serves in a newer one.
    pub versions: BTreeMap<(String, String), String>,
    /// Namespaces that do not exist, or are being deleted.
    pub namespaces: BTreeSet<String>,
}

/// The kinds of objects in the plan without which an operator works: of monitoring, of consoles, of autoscalers, of Cluster
/// API.
pub fn optional_kinds(plan: &Plan) -> BTreeSet<(String, String)> {
    plan.phases
        .all()
        .filter(|object| is_optional(object))
        .map(kind)
        .collect()
}

/// The namespaces of the plan other than the operator's own: those that it watches.
pub fn watched_namespaces(plan: &Plan) -> BTreeSet<String> {
    plan.phases
        .all()
        .filter_map(namespace)
        .filter(|namespace| *namespace != plan.namespace)
        .map(str::to_owned)
        .collect()
}

/// Returns the plan without optional objects whose kind is not served and objects whose namespace does not
/// exist, with messages about them; `None` if none is left out. An OperatorCondition is left out without a
/// message.
pub fn without(plan: &Plan, absences: &Absences) -> Option<(Plan, Vec<String>)> {
    let is_absent = |object: &Value| is_optional(object) && absences.kinds.contains(&kind(object));
    let unasked: BTreeSet<_> = plan
        .phases
        .all()
        .filter(|object| is_operator_condition(object) && is_absent(object))
        .filter_map(name)
        .collect();
    let is_served = |object: &Value| {
        let is_of_unasked = matches!(object::text(object, "/kind"), Some("Role" | "RoleBinding"))
            && namespace(object) == Some(&plan.namespace)
            && name(object).is_some_and(|name| unasked.contains(name));
        !is_absent(object) && !is_of_unasked
    };
    let has_place = |object: &Value| {
        namespace(object)
            .is_none_or(|namespace| namespace == plan.namespace || !absences.namespaces.contains(namespace))
    };
    let mut unserved: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    let mut homeless = BTreeSet::new();
    for object in plan.phases.all() {
        if !is_served(object) {
            if !is_operator_condition(object) && is_absent(object) {
                let name = name(object).unwrap_or_default();
                unserved.entry(kind(object)).or_default().push(name.to_owned());
            }
        } else if !has_place(object) {
            homeless.extend(namespace(object).map(str::to_owned));
        }
    }
    let unserved = unserved.iter().map(|((api_version, kind), names)| {
        format!(
            "the cluster does not serve {kind} ({api_version}): {} is created once it does",
            names.join(", ")
        )
    });
    let homeless = homeless.iter().map(|namespace| {
        format!(
            "the watched namespace {namespace} does not exist: the operator gets its roles there once it does"
        )
    });
    let notices: Vec<_> = unserved.chain(homeless).collect();
    if notices.is_empty() && unasked.is_empty() && absences.versions.is_empty() {
        return None;
    }
    let left = plan
        .phases
        .all()
        .filter(|object| is_served(object) && has_place(object));
    let pruned = Plan {
        phases: Phases::new(left.map(|object| in_served_version(object, absences))),
        ..plan.clone()
    };
    Some((pruned, notices))
}

/// The versions of a kind in which its objects say the same, newest first: those in which a target may be watched.
pub fn versions_of(api_version: &str, kind: &str) -> Vec<String> {
    let (group, _) = object::group_and_version(api_version);
    let target = KINDS
        .iter()
        .find(|target| target.is(group, kind) && !target.older.is_empty());
    let Some(target) = target else {
        return vec![api_version.to_owned()];
    };
    Kind::versions_of(target)
        .map(|kind| kind.api_version.into_owned())
        .collect()
}

fn in_served_version(object: &Value, absences: &Absences) -> Value {
    let mut object = object.clone();
    if let Some(version) = absences.versions.get(&kind(&object)) {
        object["apiVersion"] = version.as_str().into();
    }
    object
}

fn is_optional(object: &Value) -> bool {
    let kind = object::text(object, "/kind").unwrap_or_default();
    BundledKind::installable().any(|installed| installed.optional && installed.kind == kind)
}

fn is_operator_condition(object: &Value) -> bool {
    object::text(object, "/kind") == Some(BundledKind::OPERATOR_CONDITION.kind)
}

fn name(object: &Value) -> Option<&str> {
    object::text(object, "/metadata/name")
}

fn kind(object: &Value) -> (String, String) {
    let text = |pointer| object::text(object, pointer).unwrap_or_default().to_owned();
    (text("/apiVersion"), text("/kind"))
}

fn namespace(object: &Value) -> Option<&str> {
    // Of cluster-scoped objects none is written.
    ObjectKey::from_object(object)?;
    object::text(object, "/metadata/namespace")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(api_version: &str, kind: &str, namespace: Option<&str>, name: &str) -> Value {
        let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
        if let Some(namespace) = namespace {
            object["metadata"]["namespace"] = namespace.into();
        }
        object
    }

    fn plan() -> Plan {
        const RBAC: &str = "rbac.authorization.k8s.io/v1";
        Plan {
            namespace: "own".into(),
            phases: Phases::new([
                object(RBAC, "Role", Some("a"), "r"),
                object(RBAC, "RoleBinding", Some("a"), "r"),
                object(RBAC, "Role", Some("b"), "r"),
                object(RBAC, "ClusterRole", None, "c"),
                object("v1", "ConfigMap", Some("own"), "m"),
                object("monitoring.coreos.com/v1", "ServiceMonitor", Some("own"), "s"),
                object("monitoring.coreos.com/v1", "ServiceMonitor", Some("own"), "t"),
                object("console.openshift.io/v1alpha1", "ConsolePlugin", None, "p"),
            ]),
            conversions: vec![],
            self_managed: None,
            certificates: vec![],
            serving: windlass_bundle::render::ServingDefaults::default(),
            examples: vec![],
            notices: vec![],
        }
    }

    fn pair(api_version: &str, kind: &str) -> (String, String) {
        (api_version.to_owned(), kind.to_owned())
    }

    #[test]
    fn without_its_kind_an_operator_condition_goes_silently_and_its_role_with_it() {
        const RBAC: &str = "rbac.authorization.k8s.io/v1";
        let condition = BundledKind::OPERATOR_CONDITION;
        let own = Some("own");
        let objects = [
            object(condition.api_version, condition.kind, own, "sample.v1"),
            object(RBAC, "Role", own, "sample.v1"),
            object(RBAC, "RoleBinding", own, "sample.v1"),
            object(RBAC, "Role", own, "other"),
            object(RBAC, "ClusterRole", None, "sample.v1"),
            object("v1", "ConfigMap", own, "sample.v1"),
        ];
        let plan = Plan {
            phases: Phases::new(objects),
            ..plan()
        };
        assert_eq!(without(&plan, &Absences::default()), None);
        let absences = Absences {
            kinds: [(condition.api_version.to_owned(), condition.kind.to_owned())].into(),
            ..Absences::default()
        };
        let (left, notices) = without(&plan, &absences).unwrap();
        let left: Vec<_> = left.phases.all().filter_map(ObjectKey::from_object).collect();
        let left: Vec<_> = left.iter().map(ToString::to_string).collect();
        assert_eq!(
            left,
            [
                "Role own/other",
                "ClusterRole sample.v1",
                "ConfigMap own/sample.v1"
            ]
        );
        assert_eq!(notices, [""; 0]);
    }

    #[test]
    fn an_extension_config_comes_in_the_version_that_is_watched() {
        let (newer, older) = (
            "runtime.cluster.x-k8s.io/v1beta2",
            "runtime.cluster.x-k8s.io/v1alpha1",
        );
        assert_eq!(versions_of(older, "ExtensionConfig"), [newer, older]);
        assert_eq!(versions_of("v1", "ConfigMap"), ["v1"]);
        for (written, served) in [(older, newer), (newer, older)] {
            let plan = Plan {
                phases: Phases::new([
                    object("v1", "ConfigMap", Some("own"), "m"),
                    object(written, "ExtensionConfig", None, "e"),
                ]),
                ..plan()
            };
            let absences = Absences {
                versions: [(pair(written, "ExtensionConfig"), served.to_owned())].into(),
                ..Absences::default()
            };
            let (left, notices) = without(&plan, &absences).unwrap();
            let versions: Vec<_> = left.phases.all().map(|object| &object["apiVersion"]).collect();
            assert_eq!(versions, ["v1", served]);
            assert_eq!(notices, [""; 0]);
        }
    }

    #[test]
    fn what_may_be_absent_is_known_of_the_plan() {
        assert_eq!(
            optional_kinds(&plan()),
            [
                pair("console.openshift.io/v1alpha1", "ConsolePlugin"),
                pair("monitoring.coreos.com/v1", "ServiceMonitor"),
            ]
            .into()
        );
        assert_eq!(
            watched_namespaces(&plan()),
            ["a".to_owned(), "b".to_owned()].into()
        );
    }

    #[test]
    fn what_is_absent_is_left_out_and_said() {
        let plan = plan();
        assert_eq!(without(&plan, &Absences::default()), None);

        let absences = Absences {
            kinds: [
                pair("monitoring.coreos.com/v1", "ServiceMonitor"),
                // Without it the operator does not work.
                pair("v1", "ConfigMap"),
            ]
            .into(),
            namespaces: ["a".to_owned(), "own".to_owned()].into(),
            versions: BTreeMap::new(),
        };
        let (pruned, notices) = without(&plan, &absences).unwrap();
        let kept: Vec<_> = pruned
            .phases
            .all()
            .filter_map(ObjectKey::from_object)
            .map(|key| key.to_string())
            .collect();
        assert_eq!(
            kept,
            ["Role b/r", "ClusterRole c", "ConfigMap own/m", "ConsolePlugin p"]
        );
        assert_eq!(
            notices,
            [
                "the cluster does not serve ServiceMonitor (monitoring.coreos.com/v1): s, t is created once it does",
                "the watched namespace a does not exist: the operator gets its roles there once it does",
            ]
        );
    }
}
