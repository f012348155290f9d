//! Differences of two objects, in the format of `diff -u`.

use std::time::Duration;

use serde_json::Value;
use similar::{Algorithm, TextDiff};
use windlass_object::{object, text::OneLine};

use crate::terminal::yaml;

/// Time limit for finding the smallest difference; after that a larger one is accepted.
const PATIENCE: Duration = Duration::from_secs(2);

/// Replaces values of Secrets, as in `kubectl diff`.
const HIDDEN: &str = "***";

/// Returns the difference of `before` and `after` as YAML; empty if they are equal.
///
/// # Errors
///
/// When they cannot be written as YAML.
pub(super) fn unified(
    (heading_before, before): (&str, &Value),
    (heading_after, after): (&str, &Value),
) -> anyhow::Result<String> {
    if before == after {
        return Ok(String::new());
    }
    let (before, after) = redact_secrets(before, after);
    let (before, after) = (yaml::document(&before)?, yaml::document(&after)?);
    let mut configuration = TextDiff::configure();
    configuration.algorithm(Algorithm::Myers).timeout(PATIENCE);
    let diff = configuration.diff_lines(&before, &after);
    let headings = [heading_before, heading_after].map(|heading| OneLine(heading).to_string());
    let [before, after] = &headings;
    let shown = diff.unified_diff().header(before, after).to_string();
    let lines = shown.lines().map(|line| format!("{}\n", OneLine(line)));
    Ok(lines.collect())
}

/// Replaces values of Secrets, so that only the changed keys are visible.
fn redact_secrets(before: &Value, after: &Value) -> (Value, Value) {
    let (mut before, mut after) = (before.clone(), after.clone());
    let is_secret = |object: &Value| {
        object::text(object, "/kind") == Some("Secret") && object::text(object, "/apiVersion") == Some("v1")
    };
    if !is_secret(&before) && !is_secret(&after) {
        return (before, after);
    }
    // The annotation repeats all values.
    let last_applied = "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration";
    for (object, mark) in [(&mut before, " (before)"), (&mut after, " (after)")] {
        if let Some(applied) = object.pointer_mut(last_applied) {
            *applied = format!("{HIDDEN}{mark}").into();
        }
    }
    for field in ["data", "stringData"] {
        let values = |object: &Value| object.get(field).cloned().unwrap_or_default();
        let (old, new) = (values(&before), values(&after));
        let mark = |object: &mut Value, other: &Value, own: &Value, mark: &str| match object.get_mut(field) {
            Some(Value::Object(entries)) => {
                for (name, value) in entries {
                    let is_same = other.get(name) == own.get(name);
                    let mark = if is_same || other.get(name).is_none() {
                        ""
                    } else {
                        mark
                    };
                    *value = format!("{HIDDEN}{mark}").into();
                }
            }
            Some(value) => *value = format!("{HIDDEN}{mark}").into(),
            None => {}
        };
        mark(&mut before, &new, &old, " (before)");
        mark(&mut after, &old, &new, " (after)");
    }
    (before, after)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_diff_shows_changed_lines_with_context() {
        let before = json!({"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6});
        let mut after = before.clone();
        assert_eq!(unified(("x", &before), ("y", &after)).unwrap(), "");
        after["e"] = json!("\u{1b}[2J");
        insta::assert_snapshot!(unified(("x", &before), ("y", &after)).unwrap(), @r#"
        --- x
        +++ y
        @@ -2,5 +2,5 @@
         b: 2
         c: 3
         d: 4
        -e: 5
        +e: "\e[2J"
         f: 6
        "#);
    }

    #[test]
    fn values_of_secrets_are_not_shown() {
        let secret = |data: Value| json!({"apiVersion": "v1", "kind": "Secret", "data": data});
        let before = secret(json!({"a": "c2VjcmV0", "b": "c2VjcmV0", "c": "c2VjcmV0"}));
        let after = secret(json!({"a": "b3RoZXI=", "b": "c2VjcmV0", "d": "b3RoZXI="}));
        insta::assert_snapshot!(unified(("x", &before), ("y", &after)).unwrap(), @r#"
        --- x
        +++ y
        @@ -1,6 +1,6 @@
         apiVersion: v1
         kind: Secret
         data:
        -  a: "*** (before)"
        +  a: "*** (after)"
           b: "***"
        -  c: "***"
        +  d: "***"
        "#);
    }
}
