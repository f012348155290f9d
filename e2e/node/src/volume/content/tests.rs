use std::net::Ipv4Addr;

use k8s_openapi::api::core::v1::Pod;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// One Secret and one ConfigMap in the namespace `n`.
struct Fixed;

impl Sources for Fixed {
    fn secret(&self, namespace: &str, name: &str) -> Option<Entries> {
        let entry = |key: &str| (key.to_owned(), key.to_uppercase().into_bytes());
        ((namespace, name) == ("n", "tls")).then(|| [entry("tls.crt"), entry("tls.key")].into())
    }

    fn config_map(&self, namespace: &str, name: &str) -> Option<Entries> {
        ((namespace, name) == ("n", "settings")).then(|| [("a".to_owned(), b"1".to_vec())].into())
    }
}

fn volume(volume: &Value) -> Result<Vec<(String, String, u32)>, Missing> {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "p", "namespace": "n"},
        "spec": {"containers": [], "volumes": [volume]},
    }))
    .unwrap();
    let fields = PodFields {
        pod: &pod,
        address: None,
        host: Ipv4Addr::LOCALHOST,
        node: "node",
    };
    let tokens = BTreeMap::from([(("v".to_owned(), "token".to_owned()), "issued".to_owned())]);
    let ingredients = Ingredients {
        fields,
        namespace: "n",
        sources: &Fixed,
        tokens: &tokens,
    };
    let mut volumes = ingredients.volumes(pod.spec.as_ref().unwrap())?;
    let files = volumes.remove("v").unwrap_or_default();
    let text = |file: &File| String::from_utf8(file.bytes.clone()).unwrap();
    Ok(files
        .iter()
        .map(|(path, file)| (path.display().to_string(), text(file), file.mode))
        .collect())
}

fn file(path: &str, text: &str, mode: u32) -> (String, String, u32) {
    (path.to_owned(), text.to_owned(), mode)
}

#[test]
fn every_entry_is_a_file_unless_items_choose() {
    assert_eq!(
        volume(&json!({"name": "v", "secret": {"secretName": "tls", "defaultMode": 0o400}})),
        Ok(vec![
            file("tls.crt", "TLS.CRT", 0o400),
            file("tls.key", "TLS.KEY", 0o400)
        ])
    );
    let items = json!([{"key": "tls.crt", "path": "certs/apiserver.crt", "mode": 0o440}]);
    assert_eq!(
        volume(&json!({"name": "v", "secret": {"secretName": "tls", "items": items}})),
        Ok(vec![file("certs/apiserver.crt", "TLS.CRT", 0o440)])
    );
    assert_eq!(
        volume(&json!({"name": "v", "configMap": {"name": "settings"}})),
        Ok(vec![file("a", "1", 0o644)])
    );
}

#[test]
fn projections_are_merged() {
    let sources = json!([
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
        {"configMap": {"name": "settings"}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
    ]);
    assert_eq!(
        volume(&json!({"name": "v", "projected": {"sources": sources}})),
        Ok(vec![
            file("a", "1", 0o644),
            file("namespace", "n", 0o644),
            file("token", "issued", 0o644)
        ])
    );
}

#[test]
fn what_is_not_there_is_named_unless_it_is_optional() {
    let secret = |more: Value| {
        let mut secret = json!({"secretName": "tls"});
        secret
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        volume(&json!({"name": "v", "secret": secret}))
    };
    let absent = secret(json!({"secretName": "x"})).unwrap_err();
    assert_eq!(absent.to_string(), "secret \"x\" not found");
    assert_eq!(secret(json!({"secretName": "x", "optional": true})), Ok(vec![]));
    let items = json!([{"key": "ca.crt", "path": "ca.crt"}]);
    let key = secret(json!({"items": items})).unwrap_err();
    assert_eq!(key.to_string(), "couldn't find key ca.crt in secret n/tls");
    assert_eq!(secret(json!({"items": items, "optional": true})), Ok(vec![]));
    let map = volume(&json!({"name": "v", "configMap": {"name": "y"}})).unwrap_err();
    assert_eq!(map.to_string(), "configmap \"y\" not found");
}

#[test]
fn a_file_never_leaves_its_volume() {
    for path in ["../x", "/x", "a/../../x", "", "..data"] {
        let items = json!([{"key": "tls.crt", "path": path}]);
        let refused = volume(&json!({"name": "v", "secret": {"secretName": "tls", "items": items}}));
        assert_eq!(refused, Err(Missing::Path(path.to_owned())));
    }
}

#[test]
fn keys_are_not_shown() {
    let file = File {
        bytes: b"a private key".to_vec(),
        mode: 0o600,
    };
    assert_eq!(format!("{file:?}"), "File(13 bytes, mode 600)");
}

proptest! {
    #[test]
    fn a_relative_path_stays_below_any_folder(path in "[./a]{0,12}") {
        if let Some(relative) = relative(&path) {
            let joined = Path::new("/volume").join(relative);
            prop_assert!(joined.starts_with("/volume") && joined != Path::new("/volume"));
            prop_assert!(!joined.components().any(|component| component == Component::ParentDir));
        }
    }
}
