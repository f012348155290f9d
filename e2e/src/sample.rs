//! The sample operator's resources: what traffic creates, and what its webhooks must have made of it.

use std::path::PathBuf;

use serde_json::{Value, json};

/// The image of the sample bundles.
pub const IMAGE: &str = "example.com/windlass/sample-operator";

/// The group of the sample resources.
pub const GROUP: &str = "sample.windlass.dev";

/// The folder of a sample bundle of the repository.
pub fn bundle(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "bundles", name]
        .iter()
        .collect()
}

/// How `answer` differs from what the conversion must have made of `example`, an object at v1.
///
/// v1 says `spec.size: 42`, v1beta1 `spec.width: "42"`, v2 `spec.dimensions.size: 42`.
pub fn misconverted(example: &Value, answer: &Value) -> Option<String> {
    let size = &example["spec"]["size"];
    let spec = &answer["spec"];
    let version = answer["apiVersion"]
        .as_str()
        .and_then(|version| version.split_once('/'));
    let (field, actual, expected) = match version {
        Some((_, "v1beta1")) => ("width", &spec["width"], json!(size.to_string())),
        Some((_, "v2")) => ("dimensions.size", &spec["dimensions"]["size"], size.clone()),
        _ => ("size", &spec["size"], size.clone()),
    };
    (*actual != expected).then(|| format!("spec.{field} is {actual}, not {expected}"))
}

/// What the mutating webhook left out: it sets an annotation and the default color.
pub fn unmutated(answer: &Value) -> Option<String> {
    let color = &answer["spec"]["color"];
    if *color != "blue" {
        return Some(format!(
            "spec.color is {color}, not the default of the mutating webhook"
        ));
    }
    if answer["metadata"]["annotations"]["sample.windlass.dev/mutated"] != "true" {
        return Some("the mutating webhook was not called".to_owned());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_converted_object_is_recognised_and_a_lost_field_is_not() {
        let example = json!({"spec": {"size": 42}});
        let mut answer = json!({
            "apiVersion": "sample.windlass.dev/v1beta1",
            "metadata": {"annotations": {"sample.windlass.dev/mutated": "true"}},
            "spec": {"width": "42", "color": "blue"},
        });
        assert_eq!(unmutated(&answer), None);
        assert_eq!(misconverted(&example, &answer), None);
        answer["spec"]["width"] = Value::Null;
        assert_eq!(
            misconverted(&example, &answer).as_deref(),
            Some("spec.width is null, not \"42\"")
        );
    }
}
