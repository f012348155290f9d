//! ConfigMaps and Secrets that the pods of a revision read: each revision has copies of its own, named by their content, so
//! that a change reaches new pods at once and those of the revision before never.

use serde_json::Value;
use sha2::{Digest, Sha256};
use windlass_object::{json, object, text::hexadecimal};

/// How many hexadecimal digits name a content.
const DIGITS: usize = 10;

/// The most characters of a name that are part of its copy's: both are DNS subdomains.
const LONGEST_NAME: usize = 240;

/// The type of Secrets that Kubernetes fills in.
const FILLED_IN: &str = "kubernetes.io/service-account-token";

/// Where a pod names ConfigMaps and Secrets, but for those that a volume's driver reads: the list, the field that holds
/// the reference below each of its items, and the field of that with the name.
const REFERENCES: [(&str, &str, &str, &str); 9] = [
    ("ConfigMap", "/volumes", "/configMap", "name"),
    ("Secret", "/volumes", "/secret", "secretName"),
    ("ConfigMap", "/projected/sources", "/configMap", "name"),
    ("Secret", "/projected/sources", "/secret", "name"),
    ("ConfigMap", "/env", "/valueFrom/configMapKeyRef", "name"),
    ("Secret", "/env", "/valueFrom/secretKeyRef", "name"),
    ("ConfigMap", "/envFrom", "/configMapRef", "name"),
    ("Secret", "/envFrom", "/secretRef", "name"),
    ("Secret", "/imagePullSecrets", "", "name"),
];

/// Copies of those of `objects` that the pods of `deployment` read, and makes them read the copies.
pub(super) fn copy_configuration<'a>(
    deployment: &mut Value,
    objects: impl IntoIterator<Item = &'a Value>,
) -> Vec<Value> {
    let Some(spec) = deployment.pointer_mut("/spec/template/spec") else {
        return Vec::new();
    };
    let mut copies = Vec::new();
    for original in objects {
        let text = |pointer| object::text(original, pointer).unwrap_or_default();
        let (kind, name) = (text("/kind"), text("/metadata/name"));
        if !matches!(kind, "ConfigMap" | "Secret") || text("/type") == FILLED_IN {
            continue;
        }
        let copied = name_of_copy(original, name);
        if rename(spec, kind, name, &copied) {
            let mut copy = original.clone();
            json::fields(&mut copy, &["metadata"]).insert("name".into(), copied.into());
            copies.push(copy);
        }
    }
    copies
}

fn name_of_copy(original: &Value, name: &str) -> String {
    let mut sorted = original.clone();
    sorted.sort_all_objects();
    let mut digits = hexadecimal(&Sha256::digest(sorted.to_string()));
    digits.truncate(DIGITS);
    let end = name
        .char_indices()
        .map(|(index, character)| index + character.len_utf8())
        .take_while(|end| *end <= LONGEST_NAME)
        .last()
        .unwrap_or(0);
    let cut = &name[..end];
    format!("{}-{digits}", cut.trim_end_matches(['-', '.']))
}

/// Renames every reference of a pod to an object. Says whether there was one.
fn rename(spec: &mut Value, kind: &str, from: &str, to: &str) -> bool {
    let mut found = rename_in(spec, kind, from, to);
    for list in ["volumes", "initContainers", "containers"] {
        for item in spec
            .get_mut(list)
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            found |= rename_in(item, kind, from, to);
        }
    }
    found
}

fn rename_in(parent: &mut Value, kind: &str, from: &str, to: &str) -> bool {
    let mut found = false;
    for (_, list, reference, field) in REFERENCES.iter().filter(|(of, ..)| *of == kind) {
        let items = parent.pointer_mut(list).and_then(Value::as_array_mut);
        for item in items.into_iter().flatten() {
            let name = item
                .pointer_mut(reference)
                .and_then(|reference| reference.get_mut(*field))
                .filter(|name| name.as_str() == Some(from));
            if let Some(name) = name {
                *name = to.into();
                found = true;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deployment(spec: Value) -> Value {
        json!({"metadata": {"name": "d"}, "spec": {"template": {"spec": spec}}})
    }

    #[test]
    fn every_way_to_read_an_object_leads_to_its_copy() {
        let reading = deployment(json!({
            "imagePullSecrets": [{"name": "x"}],
            "volumes": [
                {"name": "a", "configMap": {"name": "x"}},
                {"name": "b", "secret": {"secretName": "x"}},
                {"name": "c", "projected": {"sources": [{"configMap": {"name": "x"}}, {"secret": {"name": "x"}}]}},
                {"name": "d", "configMap": {"name": "other"}},
            ],
            "initContainers": [{"envFrom": [{"configMapRef": {"name": "x"}}, {"secretRef": {"name": "x"}}]}],
            "containers": [{"env": [
                {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "x", "key": "k"}}},
                {"name": "B", "valueFrom": {"secretKeyRef": {"name": "x", "key": "k"}}},
                {"name": "C", "value": "x"},
            ]}],
        }));
        let named = reading.to_string().matches(r#""x""#).count();
        for (kind, references) in [("ConfigMap", 4), ("Secret", 5)] {
            let mut reader = reading.clone();
            let read = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "x", "namespace": "n"}, "data": {"k": "new"}});
            let copies = copy_configuration(&mut reader, [&read]);
            let name = copies[0]["metadata"]["name"].as_str().unwrap().to_owned();
            assert!(name.starts_with("x-") && name.len() == 2 + DIGITS, "{name}");
            let mut original = copies[0].clone();
            original["metadata"]["name"] = json!("x");
            assert_eq!((copies.len(), original), (1, read));
            let spec = reader.to_string();
            assert_eq!(spec.matches(&name).count(), references, "{spec}");
            assert_eq!(
                spec.matches(r#""x""#).count(),
                named - references,
                "objects of the other kind and values stay: {spec}"
            );
        }
    }

    #[test]
    fn another_content_is_another_copy() {
        let name = |value: &str| {
            let mut reader = deployment(json!({"volumes": [{"configMap": {"name": "x"}}]}));
            let read = json!({"kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"k": value}});
            copy_configuration(&mut reader, [&read]).remove(0)["metadata"]["name"].take()
        };
        assert_eq!(name("a"), name("a"));
        assert_ne!(name("a"), name("b"));
    }

    #[test]
    fn what_the_pods_do_not_read_or_kubernetes_fills_in_is_not_copied() {
        let unread = [
            json!({"kind": "Secret", "metadata": {"name": "y"}}),
            json!({"kind": "Service", "metadata": {"name": "x"}}),
            json!({"kind": "Secret", "metadata": {"name": "t"}, "type": FILLED_IN}),
        ];
        let mut reader = deployment(json!({
            "volumes": [{"configMap": {"name": "x"}}, {"secret": {"secretName": "t"}}], "containers": [],
        }));
        let before = reader.clone();
        assert!(copy_configuration(&mut reader, &unread).is_empty());
        assert_eq!(reader, before);
    }

    #[test]
    fn a_long_name_is_cut_where_a_name_may_end() {
        let name = format!("{}.{}", "a".repeat(LONGEST_NAME - 1), "b".repeat(12));
        let copied = name_of_copy(&json!({}), &name);
        assert_eq!(copied.len(), LONGEST_NAME - 1 + 1 + DIGITS);
        assert!(!copied.contains('.'));
    }
}
