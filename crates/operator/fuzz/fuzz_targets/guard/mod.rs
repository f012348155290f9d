//! The guard of the operator.

#[path = "../../../src/guard/denial.rs"]
mod denial;
#[path = "../../../src/guard/excerpt.rs"]
mod excerpt;
#[path = "../../../src/guard/judgement.rs"]
mod judgement;
#[path = "../../../src/guard/review.rs"]
mod review;

use serde_json::Value;
use windlass_object::names;

use self::judgement::{judge, judge_removal};
use self::review::{BUNDLE_DEPLOYMENT, CRD, Review, ReviewedKind};

const OPERATOR: &str = "system:serviceaccount:windlass-system:windlass";

/// Checks that skipped fields change no verdict, and that every readable review has an answer.
pub fn check(body: &[u8]) {
    for (subject, read) in [
        (&CRD, Review::read(body)),
        (&BUNDLE_DEPLOYMENT, Review::read_bundle_deployment(body)),
    ] {
        let Ok(review) = read else { continue };
        if let Ok(whole) = serde_json::from_slice::<Value>(body) {
            check_as_whole(subject, &review, &whole);
        }
        check_judgement(&review);
    }
}

fn check_as_whole(subject: &ReviewedKind, review: &Review, whole: &Value) {
    let whole_review = Review::from_value(subject, whole).expect("the guard reads only fields of the excerpt");
    assert_eq!(review.user(), whole_review.user());
    assert_eq!(review.owner(), whole_review.owner());
    for deployment in deployments(review) {
        let [judged, whole_review] = [review, &whole_review].map(|review| judge(review, &[OPERATOR], Some(&deployment)));
        assert_eq!(judged, whole_review);
    }
    let [judged, removed] = [review, &whole_review].map(|review| judge_removal(review, &["widgets.example.com"]));
    assert_eq!(judged, removed);
    let answer = review.answer(&Ok(()));
    assert_eq!(answer["response"]["uid"], whole["request"]["uid"]);
}

fn check_judgement(review: &Review) {
    assert_eq!(judge(review, &[], None), Ok(()));
    assert_eq!(judge_removal(review, &[]), Ok(()));
    for deployment in deployments(review) {
        assert_eq!(judge(review, &[review.user()], Some(&deployment)), Ok(()));
        let verdict = judge(review, &[OPERATOR], Some(&deployment));
        let answer = review.answer(&verdict);
        assert_eq!(answer["response"]["allowed"], verdict.is_ok());
        assert_eq!(answer["response"]["status"].is_object(), verdict.is_err());
        // An unchanged object is always allowed.
        if review.old_object() == review.new_object() {
            assert_eq!(verdict, Ok(()));
        }
    }
}

/// BundleDeployments that claim the CRD or not.
fn deployments(review: &Review) -> [Value; 3] {
    let crd = review.old_object().map(|before| before["metadata"]["name"].clone()).unwrap_or_default();
    let deployment = |spec: Value, conversions: Value| {
        serde_json::json!({
            "apiVersion": names::GROUP, "kind": "BundleDeployment", "metadata": {"name": review.owner()}, "spec": spec,
            "status": {"conversions": conversions},
        })
    };
    [
        deployment(serde_json::json!({}), serde_json::json!([{"crd": crd}])),
        deployment(serde_json::json!({}), serde_json::json!([])),
        deployment(serde_json::json!({"conversion": "External"}), serde_json::json!([{"crd": crd}])),
    ]
}
