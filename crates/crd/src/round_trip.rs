//! Data that an object loses in a conversion to another version and back.

use std::{collections::BTreeSet, fmt};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_object::{GoDuration, JsonPath, path::is_within};

/// A field that a round trip lost or changed. Never contains the value, because objects may hold secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The field, for example `spec.size`.
    pub field: String,
    /// Whether the field is missing; otherwise its value changed.
    pub is_gone: bool,
}

/// A field that conversions of a CustomResourceDefinition may lose or change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConversionException {
    /// Name of the CustomResourceDefinition.
    #[schemars(length(min = 1, max = 253))]
    pub crd: String,
    /// Field as reported, for example `spec.replicas`; also matches everything below it, and all items of a list.
    #[schemars(length(min = 1, max = 4096))]
    pub field: String,
    /// Why this is acceptable, as documentation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub reason: Option<String>,
}

impl ConversionException {
    /// Reports whether this exception allows `loss` in an object of `crd`.
    pub fn allows(&self, crd: &str, loss: &Loss) -> bool {
        self.crd == crd && is_within(&loss.field, &self.field)
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.is_gone { "was lost" } else { "changed" };
        write!(f, "{} {what}", self.field)
    }
}

/// Returns what `back` lost compared with `sent`, of which it is the round trip.
///
/// Only labels and annotations of the metadata count: the API server restores the rest (`restoreObjectMeta`
/// of its `webhook_converter.go`). Additional fields are allowed, as defaults. Zero values may be missing,
/// and quantities may be written in canonical form, as typed clients do.
pub fn losses(sent: &Value, back: &Value) -> Vec<Loss> {
    let mut found = Vec::new();
    let names: BTreeSet<&String> = sent
        .as_object()
        .into_iter()
        .flat_map(|fields| fields.keys())
        .collect();
    for name in names {
        let path = JsonPath::root().field(name);
        match name.as_str() {
            "apiVersion" | "kind" => {}
            "metadata" => {
                for part in ["labels", "annotations"] {
                    let at = |object: &Value| object.pointer(&format!("/metadata/{part}")).cloned();
                    if let Some(sent) = at(sent) {
                        compare(&path.field(part), &sent, at(back).as_ref(), &mut found);
                    }
                }
            }
            name => compare(&path, &sent[name], back.get(name), &mut found),
        }
    }
    found
}

/// Returns the new losses: those that neither the installed revision has nor an exception allows.
pub fn new_losses(
    found: Vec<Loss>,
    known: &[Loss],
    crd: &str,
    exceptions: &[ConversionException],
) -> Vec<Loss> {
    let mut news = found;
    news.retain(|loss| {
        let is_known = known.iter().any(|known| is_within(&loss.field, &known.field));
        !is_known && !exceptions.iter().any(|exception| exception.allows(crd, loss))
    });
    news
}

fn compare(path: &JsonPath, sent: &Value, back: Option<&Value>, found: &mut Vec<Loss>) {
    let mut note = |is_gone| {
        found.push(Loss {
            field: path.to_string().trim_start_matches('.').to_owned(),
            is_gone,
        });
    };
    match (sent, back) {
        (sent, None | Some(Value::Null)) if !is_zero(sent) => note(true),
        (_, None | Some(Value::Null)) => {}
        (Value::Object(sent), Some(Value::Object(back))) => {
            for (name, value) in sent {
                compare(&path.field(name), value, back.get(name), found);
            }
        }
        (Value::Array(sent), Some(Value::Array(back))) if sent.len() == back.len() => {
            for (index, (value, back)) in sent.iter().zip(back).enumerate() {
                compare(&path.item(index), value, Some(back), found);
            }
        }
        (sent, Some(back)) if is_same(sent, back) => {}
        _ => note(false),
    }
}

/// Reports whether Go's `omitempty` leaves out the value.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_zero),
    }
}

fn is_same(sent: &Value, back: &Value) -> bool {
    match (sent, back) {
        (Value::Number(sent), Value::Number(back)) => sent == back || sent.as_f64() == back.as_f64(),
        // A number may be a quantity or an int-or-string.
        (Value::Number(number), Value::String(text)) | (Value::String(text), Value::Number(number)) => {
            number.to_string() == *text || is_close(parse_quantity(text), number.as_f64())
        }
        (Value::String(sent), Value::String(back)) => {
            // Two plain numbers in quotes are strings: "1.10" differs from "1.1".
            let has_unit = [sent, back].iter().any(|text| text.contains(char::is_alphabetic));
            let is_same_amount = || is_close(parse_quantity(sent), parse_quantity(back));
            sent == back || (has_unit && (is_same_amount() || is_same_duration(sent, back)))
        }
        (sent, back) => sent == back || (is_zero(sent) && is_zero(back)),
    }
}

fn is_same_duration(sent: &str, back: &str) -> bool {
    let read = |text: &str| text.parse::<GoDuration>().ok();
    read(sent).is_some_and(|sent| read(back) == Some(sent))
}

fn is_close(one: Option<f64>, other: Option<f64>) -> bool {
    let (Some(one), Some(other)) = (one, other) else {
        return false;
    };
    (one - other).abs() <= one.abs().max(other.abs()) * 1e-12
}

/// Parses a Kubernetes quantity: `1500m`, `2Gi`, `1e3`.
fn parse_quantity(text: &str) -> Option<f64> {
    const SUFFIXES: [(&str, f64); 15] = [
        ("Ki", 1024.0),
        ("Mi", 1_048_576.0),
        ("Gi", 1_073_741_824.0),
        ("Ti", 1_099_511_627_776.0),
        ("Pi", 1_125_899_906_842_624.0),
        ("Ei", 1_152_921_504_606_846_976.0),
        ("n", 1e-9),
        ("u", 1e-6),
        ("m", 1e-3),
        ("k", 1e3),
        ("M", 1e6),
        ("G", 1e9),
        ("T", 1e12),
        ("P", 1e15),
        ("E", 1e18),
    ];
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) {
        return None;
    }
    let suffix = SUFFIXES
        .iter()
        .find_map(|(suffix, factor)| Some((text.strip_suffix(suffix)?, *factor)));
    let (number, factor) = suffix.unwrap_or((text, 1.0));
    Some(number.parse::<f64>().ok()? * factor)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn found(sent: Value, back: Value) -> Vec<String> {
        losses(&sent, &back).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn lost_and_changed_fields_are_named_without_values() {
        let sent = json!({
            "apiVersion": "g/v1", "kind": "K",
            "metadata": {"name": "a", "uid": "1", "labels": {"l": "secret"}, "annotations": {"a/b": "secret"}},
            "spec": {"size": 42, "list": [{"a": 1}, {"a": 2}], "more": {"password": "secret"}},
            "status": {"ready": true},
        });
        let all = [
            ("metadata.labels.l was lost", "/metadata/labels", json!({})),
            (
                "metadata.annotations['a/b'] was lost",
                "/metadata/annotations",
                json!({}),
            ),
            ("spec.size was lost", "/spec/size", Value::Null),
            ("spec.size changed", "/spec/size", json!(43)),
            ("spec.list[1].a changed", "/spec/list/1/a", json!(3)),
            ("spec.list changed", "/spec/list", json!([{"a": 1}])),
            ("spec.more.password was lost", "/spec/more", json!({})),
            ("status was lost", "/status", Value::Null),
        ];
        for (expected, pointer, value) in all {
            let mut back = sent.clone();
            *back.pointer_mut(pointer).unwrap() = value;
            let found = found(sent.clone(), back);
            assert_eq!(found, [expected]);
            assert!(!found[0].contains("secret"));
        }
    }

    #[test]
    fn normalization_by_clients_and_the_api_server_is_not_a_loss() {
        let sent = json!({
            "apiVersion": "g/v1", "metadata": {"name": "a", "generation": 3, "creationTimestamp": "x"},
            "spec": {"no": false, "zero": 0, "none": "", "empty": [], "object": {"zero": 0}, "null": null,
                "cpu": "1000m", "some": "300m", "memory": "1024Mi", "wait": "90s", "pause": ".5s", "never": "0",
                "one": 1.0, "port": "80"},
        });
        let back = json!({
            "apiVersion": "g/v2", "metadata": {"annotations": {"kept": "here"}},
            "spec": {"cpu": "1", "some": "0.3", "memory": "1Gi", "wait": "1m30s", "pause": "500ms", "never": "0s",
                "one": 1, "port": 80, "default": true},
            "status": {},
        });
        assert_eq!(found(sent, back), [""; 0]);
    }

    #[test]
    fn different_amounts_are_reported_as_changed() {
        for (sent, back) in [
            ("1", "2"),
            ("1m", "1s"),
            ("a", "b"),
            ("1.0.0", "1.0"),
            ("1.10", "1.1"),
            ("inf", "infinity"),
            ("5m", "5M"),
        ] {
            let of = |text| json!({"spec": {"a": text}});
            assert_eq!(found(of(sent), of(back)), ["spec.a changed"], "{sent} {back}");
        }
    }

    #[test]
    fn known_and_allowed_losses_are_not_new() {
        let loss = |field: &str| Loss {
            field: field.into(),
            is_gone: true,
        };
        let exception = |crd: &str, field: &str| ConversionException {
            crd: crd.into(),
            field: field.into(),
            reason: None,
        };
        let found = || vec![loss("spec.size"), loss("spec.list[1].a"), loss("status")];
        let fields = |known: &[Loss], exceptions: &[ConversionException]| {
            let news = new_losses(found(), known, "widgets.example.com", exceptions);
            news.into_iter()
                .map(|loss| loss.field)
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(fields(&[], &[]), "spec.size spec.list[1].a status");
        assert_eq!(
            fields(&[loss("spec.size"), loss("status")], &[]),
            "spec.list[1].a"
        );
        assert_eq!(fields(&[loss("spec")], &[]), "status");
        assert_eq!(
            fields(&[loss("status.ready")], &[]),
            "spec.size spec.list[1].a status"
        );
        let allowed = |crd, field| fields(&[], &[exception(crd, field)]);
        assert_eq!(allowed("widgets.example.com", "spec.list"), "spec.size status");
        assert_eq!(
            allowed("widgets.example.com", "spec.siz"),
            "spec.size spec.list[1].a status"
        );
        assert_eq!(
            allowed("gadgets.example.com", "spec"),
            "spec.size spec.list[1].a status"
        );
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a-z0-9]{0,4}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-d]", inner, 0..4).prop_map(|fields| json!(fields)),
            ]
        })
    }

    proptest! {
        #[test]
        fn an_unchanged_object_has_no_losses(spec in value()) {
            let object = json!({"spec": spec});
            prop_assert_eq!(losses(&object, &object), []);
        }

        #[test]
        fn comparing_any_response_never_panics(sent in value(), back in value()) {
            losses(&json!({"spec": sent}), &json!({"spec": back}));
            losses(&sent, &back);
        }

        #[test]
        fn a_removed_field_with_a_value_is_reported(spec in value(), number in 1..9) {
            let sent = json!({"spec": {"x": number, "rest": spec}});
            let back = json!({"spec": {"rest": spec}});
            let found = losses(&sent, &back);
            prop_assert_eq!(found.len(), 1);
            prop_assert_eq!(&found[0].field, "spec.x");
        }
    }
}
