//! The OpenAPI document is valid for any title and version, and each of its references exists.

#![no_main]

use libfuzzer_sys::fuzz_target;
use runtime_hooks::Catalog;
use serde_json::Value;

fuzz_target!(|named: (&str, &str)| {
    let document = Catalog::cluster_api().openapi(named.0, named.1);
    assert_eq!(document["info"]["title"], named.0);
    let text = document.to_string();
    let read: Value = serde_json::from_str(&text).expect("the document is JSON");
    assert_eq!(read, document);
    check_references(&document, &document);
});

fn check_references(value: &Value, document: &Value) {
    match value {
        Value::Object(fields) => {
            if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
                let pointer = reference
                    .strip_prefix('#')
                    .expect("the reference is within the document");
                assert!(document.pointer(pointer).is_some(), "{reference}");
            }
            fields
                .values()
                .for_each(|value| check_references(value, document));
        }
        Value::Array(items) => items.iter().for_each(|value| check_references(value, document)),
        _ => {}
    }
}
