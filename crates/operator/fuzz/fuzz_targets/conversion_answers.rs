//! Fuzzes answers of a conversion webhook; the first line of the input is the request. Accepted answers are
//! those that the API server accepts.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use windlass_crd::conversion_review::ConversionReview;

/// The answer of a webhook that changes only the version.
fn echo(objects: &[Value], desired: &str, version: &str) -> Value {
    let converted: Vec<_> = objects
        .iter()
        .map(|object| {
            let mut object = object.clone();
            object["apiVersion"] = desired.into();
            object
        })
        .collect();
    json!({
        "apiVersion": format!("apiextensions.k8s.io/{version}"), "kind": "ConversionReview",
        "response": {"uid": "1", "result": {"status": "Success"}, "convertedObjects": converted},
    })
}

fuzz_target!(|input: &[u8]| {
    let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let (asked, answer) = input.split_at(end);
    let asked: Value = serde_json::from_slice(asked).unwrap_or_else(|_| {
        json!([{"apiVersion": "example.com/v1beta1", "kind": "Widget", "metadata": {"name": "a", "namespace": "n", "uid": "u"}}])
    });
    let objects: Vec<_> = asked.as_array().into_iter().flatten().filter(|object| object.is_object()).cloned().collect();
    for version in ["v1", "v1beta1"] {
        let review = ConversionReview::new(version, "1", "example.com/v1", objects.clone());
        assert_eq!(review.request()["request"]["objects"], json!(objects));
        let echoed = echo(&objects, "example.com/v1", version);
        assert_eq!(review.parse_response(&echoed).as_deref().map(<[_]>::len), Ok(objects.len()));
        let Ok(answer) = serde_json::from_slice::<Value>(answer) else { continue };
        match review.parse_response(&answer) {
            Ok(converted) => {
                assert_eq!(converted.len(), objects.len());
                for (sent, got) in objects.iter().zip(&converted) {
                    assert_eq!(got["apiVersion"], "example.com/v1");
                    assert_eq!(got["kind"].as_str(), sent["kind"].as_str());
                }
            }
            Err(problem) => assert!(!problem.to_string().is_empty()),
        }
    }
});
