//! Normalises an object: removes values that differ between runs.

use std::{collections::BTreeMap, net::IpAddr};

use base64::Engine;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use windlass_object::names;

use crate::request::text;

/// The prefix of the volume that admission adds to a pod for its token.
const TOKEN_VOLUME: &str = "kube-api-access-";

/// The annotation with the time of the last endpoint-relevant change; it depends on what the controller
/// observed.
const TRIGGER: &str = "endpoints.kubernetes.io/last-change-trigger-time";

/// Maps each generated name to the part that is the same in every run.
pub(super) fn generated_names<'a>(objects: impl Iterator<Item = &'a Value>) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    for object in objects {
        let prefix = text(object, "/metadata/generateName");
        if !prefix.is_empty() {
            names.insert(text(object, "/metadata/name").to_owned(), format!("{prefix}*"));
        }
    }
    names
}

/// The object without run-specific values; `names` are the generated names. Whether endpoints were refreshed
/// depends on the API server's restarts, so that is removed.
pub(super) fn normalised(object: &Value, names: &BTreeMap<String, String>) -> Value {
    let generation = object["metadata"]["generation"].clone();
    let mut object = object.clone();
    let mut was_refreshed = false;
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in ["uid", "resourceVersion", "creationTimestamp", "generation"] {
            metadata.remove(field);
        }
        if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
            annotations.remove(TRIGGER);
            was_refreshed = annotations.remove(names::ENDPOINTS_REFRESHED).is_some();
            if annotations.is_empty() {
                metadata.remove("annotations");
            }
        }
        if let Some(entries) = metadata.get_mut("managedFields") {
            *entries = managers(entries, was_refreshed);
        }
    }
    if object
        .pointer("/metadata/labels")
        .is_some_and(|labels| labels.get(names::REVISION_OF).is_some())
        && let Some(parts) = object["binaryData"].as_object_mut()
    {
        // Compressed objects with their uids.
        parts.values_mut().for_each(|part| *part = json!("<record>"));
    }
    relate_generations(&mut object);
    replace(&mut object, &generation, names);
    object
}

/// The field managers and operations, without the write that refreshed endpoints.
fn managers(entries: &Value, was_refreshed: bool) -> Value {
    let refresh = format!("{} Update ", names::INSTALL);
    let entries = entries.as_array().into_iter().flatten();
    let mut managers: Vec<String> = entries
        .map(|entry| {
            let (manager, operation) = (text(entry, "/manager"), text(entry, "/operation"));
            format!("{manager} {operation} {}", text(entry, "/subresource"))
        })
        .filter(|entry| !(was_refreshed && *entry == refresh))
        .collect();
    managers.sort();
    json!(managers)
}

/// CA generations grow with every rotation: only their distance matters.
fn relate_generations(object: &mut Value) {
    let Some(current) = object
        .pointer("/status/ca/current/generation")
        .and_then(Value::as_i64)
    else {
        return;
    };
    for pointer in ["/status/ca/current/generation", "/status/ca/next/generation"] {
        if let Some(generation) = object.pointer_mut(pointer) {
            *generation = json!(generation.as_i64().map(|number| number - current));
        }
    }
}

fn replace(value: &mut Value, generation: &Value, names: &BTreeMap<String, String>) {
    match value {
        Value::Object(fields) => {
            if let Some(observed) = fields.get_mut("observedGeneration") {
                *observed = json!(if observed == generation {
                    "current"
                } else {
                    "stale"
                });
            }
            let old: Map<String, Value> = std::mem::take(fields);
            for (key, mut value) in old {
                replace(&mut value, generation, names);
                fields.insert(key, value);
            }
        }
        Value::Array(items) => {
            for item in items {
                replace(item, generation, names);
            }
        }
        Value::String(string) => *string = in_words(string, names),
        _ => {}
    }
}

fn in_words(string: &str, names: &BTreeMap<String, String>) -> String {
    if let Some(inside) = decoded(string) {
        return inside;
    }
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.' | ':');
    let mut words = String::new();
    let mut rest = string;
    while !rest.is_empty() {
        let end = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
        words.push_str(&word(&rest[..end], names));
        let gap = rest[end..].find(is_part).unwrap_or(rest.len() - end);
        words.push_str(&rest[end..end + gap]);
        rest = &rest[end + gap..];
    }
    words
}

/// A word, or its kind if it differs between runs.
fn word(word: &str, names: &BTreeMap<String, String>) -> String {
    let bare = word.trim_end_matches(['.', ':']);
    let kind = if bare.parse::<Timestamp>().is_ok() {
        "<time>"
    } else if bare.parse::<IpAddr>().is_ok() {
        "<address>"
    } else if is_uid(bare) {
        "<uid>"
    } else if bare.starts_with(TOKEN_VOLUME) {
        "kube-api-access-*"
    } else if let Some(name) = names.get(bare) {
        name
    } else {
        return word.to_owned();
    };
    word.replacen(bare, kind, 1)
}

fn is_uid(word: &str) -> bool {
    let lengths: Vec<usize> = word.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12] && word.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

/// Describes the content of a text, or its base64, that every run generates: kinds and numbers of PEM blocks,
/// the shape of JSON. `None` for other texts.
fn decoded(string: &str) -> Option<String> {
    let decoded = base64::engine::general_purpose::STANDARD
        .decode(string)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok());
    let text = decoded.as_deref().unwrap_or(string);
    pem(text).or_else(|| {
        let mut json: Value = serde_json::from_str(text).ok().filter(Value::is_object)?;
        keep_shape(&mut json);
        Some(json.to_string())
    })
}

fn pem(text: &str) -> Option<String> {
    let mut blocks: BTreeMap<&str, u32> = BTreeMap::new();
    for line in text.lines() {
        if let Some(label) = line.strip_prefix("-----BEGIN ") {
            *blocks.entry(label.trim_end_matches('-')).or_default() += 1;
        }
    }
    let blocks: Vec<String> = blocks
        .iter()
        .map(|(label, count)| format!("<{count} {label}>"))
        .collect();
    (!blocks.is_empty()).then(|| blocks.join(" "))
}

fn keep_shape(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(keep_shape),
        Value::Array(items) => items.iter_mut().for_each(keep_shape),
        Value::String(_) => *value = json!("<string>"),
        Value::Number(_) => *value = json!("<number>"),
        Value::Bool(_) | Value::Null => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_word_is_replaced_and_others_stay() {
        let names = BTreeMap::from([("web-x1".to_owned(), "web-*".to_owned())]);
        for (given, expected) in [
            ("renewed at 2026-11-21T10:00:00Z.", "renewed at <time>."),
            ("pod web-x1 at 10.0.0.3, of web", "pod web-* at <address>, of web"),
            ("id://0f8fad5b-d9cb-469f-a165-70867728950e/0", "id://<uid>/0"),
            ("0f8fad5b-d9cb-469f-a165-70867728950e", "<uid>"),
            ("kube-api-access-b7t68", "kube-api-access-*"),
            ("3 of 3", "3 of 3"),
        ] {
            assert_eq!(in_words(given, &names), expected);
        }
    }

    #[test]
    fn of_certificates_their_number_stays() {
        let text = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".repeat(2);
        let encoded = base64::engine::general_purpose::STANDARD.encode(&text);
        for given in [&text, &encoded] {
            assert_eq!(in_words(given, &BTreeMap::new()), "<2 CERTIFICATE>");
        }
    }

    #[test]
    fn generations_are_kept_as_relations() {
        let object = json!({
            "metadata": {"generation": 7},
            "status": {
                "observedGeneration": 7,
                "ca": {"current": {"generation": 4}, "next": {"generation": 5}},
                "conditions": [{"observedGeneration": 6}],
            },
        });
        assert_eq!(
            normalised(&object, &BTreeMap::new()),
            json!({
                "metadata": {},
                "status": {
                    "observedGeneration": "current",
                    "ca": {"current": {"generation": 0}, "next": {"generation": 1}},
                    "conditions": [{"observedGeneration": "stale"}],
                },
            })
        );
    }
}
