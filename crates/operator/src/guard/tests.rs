use proptest::prelude::*;
use serde_json::{Value, json};
use windlass_object::names;

use super::{judgement::*, *};
use crate::removal_obstacles::deletion_policy;

const OPERATOR: &str = "system:serviceaccount:windlass-system:windlass";
const OWNER: &str = "sample";
const CRD: &str = "widgets.example.com";

fn crd() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": CRD, "labels": {names::BUNDLE_DEPLOYMENT: OWNER, "other": "label"}},
        "spec": {
            "conversion": {"strategy": "Webhook", "webhook": {"clientConfig": {"caBundle": "QQ=="}}},
            "versions": [{"name": "v1"}, {"name": "v2"}, {"name": "v3"}],
        },
        "status": {"storedVersions": ["v1", "v2"]},
    })
}

fn deployment() -> Value {
    json!({
        "kind": "BundleDeployment", "metadata": {"name": OWNER},
        "status": {"conversions": [{"crd": CRD, "state": "Armed"}]},
    })
}

/// Returns `object` with some fields set; null removes a field.
fn with_changes(object: Value, changes: &[(&str, Value)]) -> Value {
    let mut object = object;
    for (pointer, value) in changes {
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        let parent = object.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        match value {
            Value::Null => parent.remove(field),
            value => parent.insert(field.to_owned(), value.clone()),
        };
    }
    object
}

fn request(user: &str, operation: &str, old: &Value, new: &Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u-1", "operation": operation, "userInfo": {"username": user}, "name": CRD,
            "resource": {"group": "apiextensions.k8s.io", "version": "v1", "resource": "customresourcedefinitions"},
            "oldObject": old, "object": new,
        },
    })
}

fn review(user: &str, operation: &str, old: &Value, new: &Value) -> Review {
    Review::read(request(user, operation, old, new).to_string().as_bytes()).unwrap()
}

/// Returns short names of the reasons to deny an update to `new`.
fn denials_of_update(old: &Value, new: &Value, deployment: Option<&Value>) -> Vec<&'static str> {
    short_names(judge(
        &review("alice", "UPDATE", old, new),
        &[OPERATOR],
        deployment,
    ))
}

fn short_names(verdict: Result<(), Refused>) -> Vec<&'static str> {
    let Err(Refused(refusals)) = verdict else {
        return Vec::new();
    };
    let word = |refusal: &Denial| match refusal {
        Denial::Conversion { .. } => "conversion",
        Denial::StoredVersions { .. } => "versions",
        Denial::Owner { .. } => "owner",
        Denial::Deletion { .. } => "deletion",
        Denial::Removal { .. } => "removal",
    };
    refusals.iter().map(word).collect()
}

#[test]
fn changes_that_lose_objects_or_break_requests_are_denied() {
    let relabelled = |value: Value| {
        let mut new = crd();
        new["metadata"]["labels"][names::BUNDLE_DEPLOYMENT] = value;
        new
    };
    let changed = |changes: &[(&str, Value)]| with_changes(crd(), changes);
    let versions = |names: &[&str]| -> Value { names.iter().map(|name| json!({"name": name})).collect() };
    for (new, expected) in [
        (
            changed(&[("/spec/conversion", json!({"strategy": "None"}))]),
            vec!["conversion"],
        ),
        (changed(&[("/spec/conversion", json!(null))]), vec!["conversion"]),
        (
            changed(&[("/spec/conversion/webhook/clientConfig/caBundle", json!("Qg=="))]),
            vec!["conversion"],
        ),
        (
            changed(&[("/spec/versions", versions(&["v1", "v3"]))]),
            vec!["versions"],
        ),
        (changed(&[("/spec/versions", json!("garbage"))]), vec!["versions"]),
        (changed(&[("/spec/versions", versions(&["v2", "v1"]))]), vec![]),
        (relabelled(json!(null)), vec!["owner"]),
        (relabelled(json!("other")), vec!["owner"]),
        (
            with_changes(relabelled(json!(null)), &[("/spec", json!({}))]),
            vec!["owner", "conversion", "versions"],
        ),
        (crd(), vec![]),
        (changed(&[("/metadata/labels/other", json!("changed"))]), vec![]),
        (changed(&[("/metadata/annotations", json!({"a": "b"}))]), vec![]),
        (changed(&[("/spec/names", json!({"shortNames": ["w"]}))]), vec![]),
        (changed(&[("/status/storedVersions", json!(["v2"]))]), vec![]),
    ] {
        assert_eq!(
            denials_of_update(&crd(), &new, Some(&deployment())),
            expected,
            "{new}"
        );
    }
}

#[test]
fn a_crd_is_guarded_while_its_conversion_is_claimed() {
    let none = json!({"strategy": "None"});
    let elsewhere = json!({"strategy": "Webhook", "webhook": {}});
    let unclaimed = with_changes(deployment(), &[("/status/conversions", json!([]))]);
    let annotations = json!({names::RETURN_TO_OWNER: "helm/n/r"});
    let returning = with_changes(deployment(), &[("/metadata/annotations", annotations)]);
    let external = with_changes(deployment(), &[("/spec", json!({"conversion": "External"}))]);
    let drifted = with_changes(crd(), &[("/spec/conversion", none.clone())]);
    let stranger = with_changes(crd(), &[("/metadata/labels", json!({}))]);
    for (old, deployment, expected) in [
        (&crd(), Some(deployment()), vec!["conversion"]),
        // Only Windlass may repair drift.
        (&drifted, Some(deployment()), vec!["conversion"]),
        (&crd(), Some(unclaimed.clone()), vec!["conversion"]),
        (&drifted, Some(unclaimed), vec![]),
        // The CRD is being handed back to its former owner.
        (&crd(), Some(returning), vec![]),
        // A conversion that the operator has armed is claimed even without a status.
        (&crd(), Some(external), vec![]),
        (&crd(), None, vec![]),
        (&stranger, Some(self::deployment()), vec![]),
    ] {
        let new = with_changes(old.clone(), &[("/spec/conversion", elsewhere.clone())]);
        assert_eq!(
            denials_of_update(old, &new, deployment.as_ref()),
            expected,
            "{old} {deployment:?}"
        );
    }
}

#[test]
fn a_crd_is_deleted_only_after_its_bundle_deployment() {
    let now = json!("2026-01-01T00:00:00Z");
    let terminating = |object| with_changes(object, &[("/metadata/deletionTimestamp", now.clone())]);
    for (old, deployment, expected) in [
        (crd(), Some(deployment()), vec!["deletion"]),
        (terminating(crd()), Some(deployment()), vec![]),
        (crd(), Some(terminating(deployment())), vec![]),
        (crd(), None, vec![]),
    ] {
        let review = review("alice", "DELETE", &old, &Value::Null);
        assert_eq!(
            short_names(judge(&review, &[OPERATOR], deployment.as_ref())),
            expected,
            "{old} {deployment:?}"
        );
    }
}

#[test]
fn windlass_may_do_everything_and_any_user_may_create() {
    let new = with_changes(crd(), &[("/spec", json!({})), ("/metadata/labels", json!({}))]);
    for (user, operation, new) in [
        (OPERATOR, "UPDATE", &new),
        (OPERATOR, "DELETE", &Value::Null),
        ("alice", "CREATE", &new),
    ] {
        let review = review(user, operation, &crd(), new);
        assert_eq!(
            judge(&review, &[OPERATOR], Some(&deployment())),
            Ok(()),
            "{user} {operation}"
        );
    }
}

#[test]
fn each_denial_states_what_to_do() {
    let new = with_changes(crd(), &[("/spec", json!({})), ("/metadata/labels", json!({}))]);
    let change = review("alice", "UPDATE", &crd(), &new);
    let deletion = review("alice", "DELETE", &crd(), &Value::Null);
    let messages: Vec<_> = [change, deletion]
        .iter()
        .map(|review| review.answer(&judge(review, &[OPERATOR], Some(&deployment())))["response"].take())
        .collect();
    insta::assert_json_snapshot!(messages);
    let harmless = review("alice", "UPDATE", &crd(), &crd());
    assert_eq!(
        harmless.answer(&judge(&harmless, &[OPERATOR], Some(&deployment())))["response"],
        json!({"uid": "u-1", "allowed": true})
    );
}

#[test]
fn every_problem_of_an_invalid_review_is_reported() {
    let read = |body: &Value| Review::read(body.to_string().as_bytes()).unwrap_err().to_string();
    let good = || request("alice", "UPDATE", &crd(), &crd());
    for (bad, expected) in [
        (
            with_changes(good(), &[("/kind", json!("ConversionReview"))]),
            vec!["kind: expected AdmissionReview, got \"ConversionReview\""],
        ),
        (
            with_changes(good(), &[("/request/operation", json!("CONNECT"))]),
            vec!["request.operation: expected CREATE, UPDATE or DELETE, got \"CONNECT\""],
        ),
        (
            with_changes(good(), &[("/request/resource/resource", json!("pods"))]),
            vec!["request.resource.resource: expected customresourcedefinitions, got \"pods\""],
        ),
        (
            with_changes(
                good(),
                &[("/request/object", json!([])), ("/request/uid", json!(1))],
            ),
            vec![
                "request.object: expected an object",
                "request.uid: expected a non-empty string",
            ],
        ),
        (
            json!({}),
            vec![
                "apiVersion: expected admission.k8s.io/v1, got nothing",
                "request.userInfo.username",
            ],
        ),
    ] {
        let problems = read(&bad);
        for part in expected {
            assert!(problems.contains(part), "{problems}");
        }
    }
    let garbage = Review::read(b"{").unwrap_err().to_string();
    assert!(garbage.contains("the body cannot be read: EOF"), "{garbage}");
    assert!(Review::read("[".repeat(100_000).as_bytes()).is_err());
}

/// Any JSON, with fields that the guard reads and others.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z0-9/.~-]{0,8}".prop_map(Value::from),
        Just(json!("Webhook")),
        Just(json!(OWNER)),
    ];
    let field = prop_oneof![
        Just("metadata".to_owned()),
        Just("labels".to_owned()),
        Just(names::BUNDLE_DEPLOYMENT.to_owned()),
        Just("name".to_owned()),
        Just("spec".to_owned()),
        Just("conversion".to_owned()),
        Just("strategy".to_owned()),
        Just("versions".to_owned()),
        Just("status".to_owned()),
        Just("storedVersions".to_owned()),
        Just("conversions".to_owned()),
        "[a-z~/]{0,4}",
    ];
    leaf.prop_recursive(5, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(field.clone(), inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// A CRD with any changes, or any other value.
fn any_object() -> impl Strategy<Value = Value> {
    let fields = prop::sample::subsequence(
        vec![
            "/metadata",
            "/metadata/name",
            "/metadata/deletionTimestamp",
            "/metadata/labels",
            "/metadata/annotations",
            "/spec",
            "/spec/conversion",
            "/spec/deletionPolicy",
            "/spec/names",
            "/spec/versions",
            "/status",
            "/status/storedVersions",
        ],
        0..4,
    );
    let changed = (fields, prop::collection::vec(any_json(), 4)).prop_map(|(fields, values)| {
        // Inner fields first: an outer one may replace the object that contains them.
        let changes: Vec<_> = fields.into_iter().rev().zip(values).collect();
        with_changes(crd(), &changes)
    });
    prop_oneof![8 => changed, 1 => any_json()]
}

fn any_operation() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["CREATE", "UPDATE", "DELETE", "CONNECT", "", "delete"])
}

proptest! {
    #[test]
    fn every_readable_review_is_answered(
        bytes in prop::collection::vec(any::<u8>(), 0..64),
        json in any_json(),
        old in any_json(),
        new in any_json(),
        deployment in any_json(),
        operation in any_operation(),
    ) {
        let _ = Review::read(&bytes);
        let _ = Review::read(json.to_string().as_bytes());
        let body = request("alice", operation, &old, &new).to_string();
        if let Ok(review) = Review::read(body.as_bytes()) {
            let verdict = judge(&review, &[OPERATOR], Some(&deployment));
            let answer = review.answer(&verdict);
            prop_assert_eq!(&answer["response"]["uid"], "u-1");
            prop_assert_eq!(&answer["response"]["allowed"], verdict.is_ok());
        }
    }

    #[test]
    fn the_excerpt_gives_the_same_verdict_as_the_whole_review(
        old in any_object(),
        new in any_object(),
        deployment in any_object(),
        operation in any_operation(),
    ) {
        let whole = request("alice", operation, &old, &new);
        let excerpt = Review::read(whole.to_string().as_bytes());
        let whole = Review::from_value(&review::CRD, &whole);
        prop_assert_eq!(excerpt.as_ref().err(), whole.as_ref().err());
        if let (Ok(excerpt), Ok(whole)) = (excerpt, whole) {
            prop_assert_eq!(excerpt.owner(), whole.owner());
            prop_assert_eq!(excerpt.user(), whole.user());
            for deployment in [Some(&deployment), Some(&self::deployment()), None] {
                let judged = |review| judge(review, &[OPERATOR], deployment);
                prop_assert_eq!(excerpt.answer(&judged(&excerpt)), whole.answer(&judged(&whole)));
            }
            prop_assert_eq!(judge_removal(&excerpt, &[CRD]), judge_removal(&whole, &[CRD]));
            let policy = |review: &Review| review.old_object().map(deletion_policy);
            prop_assert_eq!(policy(&excerpt), policy(&whole));
        }
    }

    #[test]
    fn changes_of_unguarded_fields_are_allowed(change in any_json(), field in "[a-z]{1,8}") {
        prop_assume!(!["conversion", "versions"].contains(&field.as_str()));
        let mut new = crd();
        new["spec"][&field] = change.clone();
        new["metadata"]["annotations"] = change.clone();
        new["status"] = change;
        prop_assert_eq!(denials_of_update(&crd(), &new, Some(&deployment())), Vec::<&str>::new());
    }

    #[test]
    fn every_change_of_a_claimed_conversion_is_denied(conversion in any_json()) {
        let new = with_changes(crd(), &[("/spec/conversion", conversion)]);
        let expected = if new == crd() { vec![] } else { vec!["conversion"] };
        prop_assert_eq!(denials_of_update(&crd(), &new, Some(&deployment())), expected);
    }
}
