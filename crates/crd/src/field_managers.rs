//! Field managers of custom resources, by the version of their last write.
//!
//! At a server-side apply, the API server converts the object to the version of each field manager. It fails if the definition no
//! longer has that version, or if the webhook does not know it (`structured-merge-diff/merge.Updater`, kubernetes/kubernetes#111937).

use serde_json::{Value, json};

/// Returns `metadata.managedFields` without the entries of `versions` of a group; `None` if it has none of them.
pub fn without_versions(managed_fields: &Value, group: &str, versions: &[&str]) -> Option<Value> {
    let entries = managed_fields.as_array()?;
    let is_kept = |entry: &&Value| {
        let written = entry["apiVersion"]
            .as_str()
            .and_then(|version| version.split_once('/'));
        !written.is_some_and(|(of_group, version)| of_group == group && versions.contains(&version))
    };
    let kept: Vec<_> = entries.iter().filter(is_kept).collect();
    if kept.len() == entries.len() {
        return None;
    }
    // The API server ignores an empty list; one empty entry resets it.
    Some(if kept.is_empty() { json!([{}]) } else { json!(kept) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_entries_of_the_versions_are_removed() {
        let entry = |manager: &str, version: &str| json!({"manager": manager, "apiVersion": version});
        let [old, new] = [entry("a", "example.com/v1"), entry("b", "example.com/v2")];
        let other = entry("c", "other.com/v2");
        for (entries, expected) in [
            (json!([old, new]), Some(json!([old]))),
            (json!([new]), Some(json!([{}]))),
            (json!([old, other]), None),
            (json!([new, other]), Some(json!([other]))),
            (json!([]), None),
            (Value::Null, None),
        ] {
            let kept = without_versions(&entries, "example.com", &["v2", "v3"]);
            assert_eq!(kept, expected, "{entries}");
        }
    }
}
