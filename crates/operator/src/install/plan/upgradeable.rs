//! Whether an operator says that it can be upgraded now.

use serde_json::Value;
use windlass_object::object;

/// The type of the condition (`operators/v2`, `Upgradeable` in operator-framework/api).
const UPGRADEABLE: &str = "Upgradeable";

/// Returns why an operator reports that it cannot be upgraded now; `None` if it can.
///
/// As in OLM, an override of a cluster admin has precedence. OLM copies what operators write to
/// `spec.conditions` into `status.conditions`, and uses the copy; here the copy counts only if there is no
/// original.
pub fn why_not_upgradeable(operator_condition: &Value) -> Option<String> {
    let said = ["/spec/overrides", "/spec/conditions", "/status/conditions"]
        .into_iter()
        .find_map(|conditions| {
            object::items(operator_condition, conditions)
                .iter()
                .find(|condition| object::text(condition, "/type") == Some(UPGRADEABLE))
        })?;
    if object::text(said, "/status") != Some("False") {
        return None;
    }
    let words = ["/reason", "/message"]
        .into_iter()
        .filter_map(|field| object::text(said, field))
        .filter(|words| !words.is_empty());
    Some(words.collect::<Vec<_>>().join(": "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_override_comes_before_what_the_operator_says_and_that_before_its_copy() {
        let says = |status: &str| {
            json!([{"type": "Other", "status": "False"},
            {"type": "Upgradeable", "status": status, "reason": "Migrating", "message": "3 of 4 shards"}])
        };
        let nothing = json!(null);
        for (overrides, conditions, copy, expected) in [
            (&nothing, &nothing, &nothing, None),
            (
                &nothing,
                &says("False"),
                &nothing,
                Some("Migrating: 3 of 4 shards"),
            ),
            (&nothing, &says("True"), &nothing, None),
            (&nothing, &says("Unknown"), &nothing, None),
            (&says("True"), &says("False"), &says("False"), None),
            (
                &says("False"),
                &says("True"),
                &nothing,
                Some("Migrating: 3 of 4 shards"),
            ),
            (&nothing, &says("True"), &says("False"), None),
            (
                &nothing,
                &nothing,
                &says("False"),
                Some("Migrating: 3 of 4 shards"),
            ),
            (&json!("garbage"), &json!([7, {"type": 7}]), &json!({}), None),
            (
                &nothing,
                &json!([{"type": "Upgradeable", "status": "False"}]),
                &nothing,
                Some(""),
            ),
        ] {
            let object = json!({
                "spec": {"overrides": overrides, "conditions": conditions}, "status": {"conditions": copy},
            });
            assert_eq!(why_not_upgradeable(&object).as_deref(), expected, "{object}");
        }
    }
}
