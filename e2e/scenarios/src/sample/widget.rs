//! Widgets: the objects that traffic creates, and checks for the results of the sample's webhooks.

use serde_json::{Value, json};

use super::names::GROUP;

/// The path of the widgets of a namespace at a version.
pub fn widgets(namespace: &str, version: &str) -> String {
    format!("/apis/{GROUP}/{version}/namespaces/{namespace}/widgets")
}

/// A widget of size 42 at v1 or v2, without a name.
///
/// v1 has `spec.size: 42`, v1beta1 `spec.width: "42"`, v2 `spec.dimensions.size: 42`.
pub fn widget(version: &str) -> Value {
    let spec = match version {
        "v2" => json!({"dimensions": {"size": 42}}),
        _ => json!({"size": 42}),
    };
    json!({"apiVersion": format!("{GROUP}/{version}"), "kind": "Widget", "metadata": {}, "spec": spec})
}

/// Sets the size of a widget at v1 or v2.
pub fn resize(widget: &mut Value, size: i64) {
    let spec = &mut widget["spec"];
    match spec.get_mut("dimensions") {
        Some(dimensions) => dimensions["size"] = size.into(),
        None => spec["size"] = size.into(),
    }
}

/// Describes how `answer` differs from the correct conversion of `example`, an object at v1 or v2.
pub fn misconverted(example: &Value, answer: &Value) -> Option<String> {
    let size = example
        .pointer("/spec/dimensions/size")
        .unwrap_or(&example["spec"]["size"]);
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

/// Describes what the mutating webhook has not set: an annotation and the default color.
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
        assert_eq!(misconverted(&widget("v2"), &answer), None);
        answer["spec"]["width"] = Value::Null;
        assert_eq!(
            misconverted(&example, &answer).as_deref(),
            Some("spec.width is null, not \"42\"")
        );
    }

    #[test]
    fn a_widget_has_its_size_where_its_version_says() {
        for (version, pointer) in [("v1", "/spec/size"), ("v2", "/spec/dimensions/size")] {
            let mut widget = widget(version);
            assert_eq!(widget.pointer(pointer), Some(&json!(42)));
            resize(&mut widget, -1);
            assert_eq!(widget.pointer(pointer), Some(&json!(-1)));
        }
    }
}
