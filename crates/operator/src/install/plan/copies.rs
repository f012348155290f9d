//! ConfigMaps and Secrets that a new bundle changes: the canary gets copies, and what serves keeps what it has.

use serde_json::{Value, json};
use windlass_object::{names, object};

use super::pod::cut;

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

/// Copies of those of `changed` that `pod`, a canary, reads, and makes it read the copies. They go with the canary.
pub fn copy_configuration(pod: &mut Value, changed: &[Value]) -> Vec<Value> {
    let Some(revision) = object::label(pod, names::CANARY).map(str::to_owned) else {
        return Vec::new();
    };
    let mut copies = Vec::new();
    for original in changed {
        let text = |pointer| object::text(original, pointer).unwrap_or_default();
        let (kind, name) = (text("/kind"), text("/metadata/name"));
        let copied = format!("{}-canary-{revision}", cut(name));
        if !rename(&mut pod["spec"], kind, name, &copied) {
            continue;
        }
        let mut copy = original.clone();
        copy["metadata"] = json!({
            "name": copied,
            "namespace": original.pointer("/metadata/namespace"),
            "labels": pod["metadata"]["labels"],
            "ownerReferences": pod["metadata"]["ownerReferences"],
        });
        copies.push(copy);
    }
    copies
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
    use super::*;

    fn canary(spec: Value) -> Value {
        json!({"metadata": {"labels": {"windlass.dev/canary": "r"}, "ownerReferences": [{"uid": "u"}]}, "spec": spec})
    }

    #[test]
    fn every_way_to_read_a_changed_object_leads_to_its_copy() {
        let reading = canary(json!({
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
        let named = reading["spec"].to_string().matches(r#""x""#).count();
        for (kind, references) in [("ConfigMap", 4), ("Secret", 5)] {
            let mut pod = reading.clone();
            let changed = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "x", "namespace": "n"}, "data": {"k": "new"}});
            let copies = copy_configuration(&mut pod, &[changed]);
            assert_eq!(copies.len(), 1);
            assert_eq!(copies[0]["kind"], kind);
            assert_eq!(copies[0]["data"], json!({"k": "new"}));
            assert_eq!(
                copies[0]["metadata"],
                json!({"name": "x-canary-r", "namespace": "n", "labels": {"windlass.dev/canary": "r"}, "ownerReferences": [{"uid": "u"}]})
            );
            let spec = pod["spec"].to_string();
            assert_eq!(spec.matches("x-canary-r").count(), references, "{spec}");
            assert_eq!(
                spec.matches(r#""x""#).count(),
                named - references,
                "objects of the other kind and values stay: {spec}"
            );
        }
    }

    #[test]
    fn what_the_pod_does_not_read_is_not_copied() {
        let unread = [
            json!({"kind": "Secret", "metadata": {"name": "y"}}),
            json!({"kind": "Service", "metadata": {"name": "x"}}),
        ];
        let mut pod = canary(json!({"volumes": [{"configMap": {"name": "x"}}], "containers": []}));
        let before = pod.clone();
        assert_eq!(copy_configuration(&mut pod, &unread), [Value::Null; 0]);
        assert_eq!(pod, before);
    }
}
