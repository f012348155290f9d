//! Conditions that make one failure cause many others.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use windlass_object::{ObjectKey, age::age, label_selector, object};

use crate::{check::DoctorCheck, finding::DoctorFinding};

/// How long the deletion of a namespace may take.
const MAX_TERMINATION: SignedDuration = SignedDuration::from_mins(10);

/// Conditions that, if `True`, explain why a namespace is not deleted.
const BLOCKING_CONDITIONS: [&str; 5] = [
    "NamespaceDeletionDiscoveryFailure",
    "NamespaceDeletionGroupVersionParsingFailure",
    "NamespaceDeletionContentFailure",
    "NamespaceFinalizersRemaining",
    "NamespaceContentRemaining",
];

/// Finds an APIService that the API server reports as unavailable.
pub fn api_service(live: &Value) -> Option<DoctorFinding> {
    let available = object::condition(live, "Available")?;
    if object::text(available, "/status") != Some("False") {
        return None;
    }
    let why = object::text(available, "/message").unwrap_or_default();
    let message = format!(
        "the API server does not reach it: {why}; until then its kinds are unavailable and no namespace can be deleted: repair its server, \
         or delete the APIService"
    );
    Some(DoctorCheck::ApiServiceUnavailable.error(ObjectKey::from_object(live)?, message))
}

/// Finds a namespace that has been terminating for long; `now` is the API server's time.
pub fn terminating_namespace(live: &Value, now: Timestamp) -> Option<DoctorFinding> {
    let since: Timestamp = object::text(live, "/metadata/deletionTimestamp")?.parse().ok()?;
    if now.duration_since(since) < MAX_TERMINATION {
        return None;
    }
    let why = BLOCKING_CONDITIONS.iter().find_map(|condition| {
        let condition = object::condition(live, condition)?;
        let holds = object::text(condition, "/status") == Some("True");
        object::text(condition, "/message").filter(|_| holds)
    });
    let message = format!(
        "has been terminating for {}: {}; remove what blocks its deletion",
        age(since, now),
        why.unwrap_or("no condition explains why")
    );
    Some(DoctorCheck::NamespaceStuck.warning(ObjectKey::from_object(live)?, message))
}

/// Finds a PodDisruptionBudget that allows no eviction now.
pub fn disruption_budget(live: &Value) -> Option<DoctorFinding> {
    let number = |field: &str| live.pointer(&format!("/status/{field}")).and_then(Value::as_i64);
    let (allowed, expected) = (number("disruptionsAllowed")?, number("expectedPods")?);
    if allowed > 0 || expected == 0 {
        return None;
    }
    let (healthy, desired) = (number("currentHealthy")?, number("desiredHealthy")?);
    let message = match healthy < desired {
        true => {
            format!("{healthy} of its {expected} pods are healthy, but {desired} must be: check these pods")
        }
        false => format!(
            "allows no eviction of its {expected} pods, so drains of their nodes never finish: add a replica, or set maxUnavailable"
        ),
    };
    Some(DoctorCheck::DrainsBlocked.warning(ObjectKey::from_object(live)?, message))
}

/// Finds a NetworkPolicy in the namespace of Windlass that restricts outgoing connections of its pods with
/// these names.
pub fn egress_policy(policy: &Value, pods: &[&str]) -> Option<DoctorFinding> {
    let rules = object::items(policy, "/spec/egress");
    let types = object::items(policy, "/spec/policyTypes");
    let restricts = match types {
        [] => !rules.is_empty(),
        types => types.contains(&json!("Egress")),
    };
    // A rule without peers and ports allows everything.
    let everything = rules
        .iter()
        .any(|rule| rule.as_object().is_some_and(serde_json::Map::is_empty));
    let selector = policy.pointer("/spec/podSelector")?;
    let selects = |name: &&&str| label_selector::matches(selector, &json!({"app.kubernetes.io/name": name}));
    let selected = pods.iter().find(selects)?;
    (restricts && !everything).then_some(())?;
    let message = format!(
        "restricts outgoing connections of the pods {selected}, which must reach the API server and the webhook servers of all bundles, in any namespace and on \
         any port: exclude these pods, or allow the connections"
    );
    Some(DoctorCheck::EgressRestricted.warning(ObjectKey::from_object(policy)?, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(kind: &str, fields: &Value) -> Value {
        let mut object = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "a"}});
        for (name, value) in fields.as_object().unwrap() {
            object[name] = value.clone();
        }
        object
    }

    #[test]
    fn an_unavailable_api_service_is_reported() {
        let with = |status: &str| {
            let condition = json!({"type": "Available", "status": status, "message": "connection refused"});
            api_service(&object(
                "APIService",
                &json!({"status": {"conditions": [condition]}}),
            ))
        };
        assert!(with("False").unwrap().message.contains("connection refused"));
        assert_eq!((with("True"), with("Unknown")), (None, None));
        assert_eq!(api_service(&object("APIService", &json!({}))), None);
    }

    #[test]
    fn only_long_terminating_namespaces_are_reported() {
        let now: Timestamp = "2026-11-27T03:00:00Z".parse().unwrap();
        let since = |time: &str| {
            let conditions = json!([
                {"type": "NamespaceContentRemaining", "status": "True", "message": "widgets has 1"},
                {"type": "NamespaceDeletionContentFailure", "status": "False", "message": "fine"},
            ]);
            let mut namespace = object("Namespace", &json!({"status": {"conditions": conditions}}));
            namespace["metadata"]["deletionTimestamp"] = json!(time);
            terminating_namespace(&namespace, now)
        };
        assert_eq!(since("2026-11-27T02:55:00Z"), None);
        let stuck = since("2026-11-27T02:30:00Z").unwrap().message;
        assert!(stuck.contains("for 30m: widgets has 1"), "{stuck}");
        assert_eq!(terminating_namespace(&object("Namespace", &json!({})), now), None);
    }

    #[test]
    fn a_blocking_budget_is_distinguished_from_unhealthy_pods() {
        let budget = |allowed, expected, healthy, desired| {
            let status = json!({
                "disruptionsAllowed": allowed, "expectedPods": expected, "currentHealthy": healthy, "desiredHealthy": desired,
            });
            disruption_budget(&object("PodDisruptionBudget", &json!({ "status": status })))
                .map(|found| found.message)
        };
        assert_eq!(budget(1, 2, 2, 1), None);
        assert_eq!(budget(0, 0, 0, 0), None);
        assert!(budget(0, 1, 1, 1).unwrap().contains("never finish"));
        assert!(budget(0, 2, 1, 2).unwrap().starts_with("1 of its 2 pods"));
    }

    #[test]
    fn only_egress_policies_of_windlass_pods_are_reported() {
        let policy = |spec: Value| {
            egress_policy(&object("NetworkPolicy", &json!({ "spec": spec })), &["windlass"]).is_some()
        };
        for (spec, expected) in [
            (json!({"podSelector": {}, "policyTypes": ["Egress"]}), true),
            (
                json!({"podSelector": {}, "policyTypes": ["Egress"], "egress": [{}]}),
                false,
            ),
            (json!({"podSelector": {}, "policyTypes": ["Ingress"]}), false),
            (json!({"podSelector": {}, "ingress": []}), false),
            (
                json!({"podSelector": {"matchLabels": {"app.kubernetes.io/name": "other"}}, "policyTypes": ["Egress"]}),
                false,
            ),
        ] {
            assert_eq!(policy(spec.clone()), expected, "{spec}");
        }
    }
}
