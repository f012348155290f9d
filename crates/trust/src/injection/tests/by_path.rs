//! Targets that an annotation or an added field path identifies, rather than a built-in kind: ConfigMaps and
//! added kinds.

use std::sync::Arc;

use super::*;

/// A kind that is added by field paths, and a target of that kind.
fn added() -> (TargetKind, Value) {
    let place = |path, encoding| CaBundlePlace::at(path, encoding).unwrap();
    let kind = TargetKind {
        group: "example.com".into(),
        kind: "Gateway".into(),
        places: vec![
            place("/spec/tls/ca", Encoding::Pem),
            place("/spec/backends/*/caBundle", Encoding::Base64),
        ],
        ..KINDS[0].clone()
    };
    let kind = TargetKind {
        only_if: None,
        dropped_as_a_whole: None,
        ..kind
    };
    let target = json!({
        "apiVersion": "example.com/v1", "kind": "Gateway", "metadata": {"name": "g", "resourceVersion": "1"},
        "spec": {"tls": {}, "backends": [
            {"port": 1},
            {"name": "hook", "service": {"namespace": "system", "name": "hook"}},
            {"name": "other", "service": {"namespace": "system", "name": "other"}},
        ]},
    });
    (kind, target)
}

#[test]
fn an_added_kind_gets_the_bundle_at_each_path() {
    let (kind, target) = added();
    let kinds = Arc::new(TargetKinds::new([kind]));
    let trust = trust(1);
    let injection = Injection::new(
        trust.clone(),
        InjectionScope::everything()
            .with_servers(sample::names())
            .with_kinds(kinds.clone()),
    );
    let patch = injection.plan(&target).unwrap().unwrap();
    let mut patched = target.clone();
    json_patch::patch(&mut patched, &patch).unwrap();
    let (pem, encoded) = (trust.to_pem(), STANDARD.encode(trust.to_pem()));
    assert_eq!(patched["spec"]["tls"], json!({"ca": pem}));
    let bundles =
        ["0", "1", "2"].map(|index| patched["spec"]["backends"].pointer(&format!("/{index}/caBundle")));
    assert_eq!(
        bundles,
        [Some(&json!(encoded)), Some(&json!(encoded)), None],
        "an entry for another server"
    );
    assert_eq!(injection.plan(&patched), Ok(None));
    let mut written = target.clone();
    written["metadata"]["resourceVersion"] = "2".into();
    assert!(
        json_patch::patch(&mut written, &patch).is_err(),
        "a changed entry"
    );
    let without =
        json!({"apiVersion": "example.com/v1", "kind": "Gateway", "metadata": {"name": "g"}, "spec": {}});
    assert_eq!(
        injection.plan(&without),
        Ok(None),
        "a missing parent, which only the owner creates"
    );
    assert!(matches!(
        Injection::new(trust, InjectionScope::everything()).plan(&target),
        Err(InjectionError::UnknownKind(_))
    ));
}

#[test]
fn a_bundle_injected_into_a_config_map_is_removed() {
    let kinds = TargetKinds::default();
    let mut target = inject(&config_map(), &trust(1));
    let fields = json!({"f:data": {"f:ca-bundle.crt": {}}});
    let entry = json!({"manager": "windlass-inject", "operation": "Update", "fieldsV1": fields});
    target["metadata"]["managedFields"] = json!([entry]);
    assert!(has_injected_bundle(&target, &kinds));
    let kept = relevant_fields(&target, &entry, &kinds);
    assert_eq!(kept, Some(json!({"f:caBundle": {}})));
    let patch = withdrawal(&target, &kinds).unwrap();
    json_patch::patch(&mut target, &patch).unwrap();
    assert_eq!(target["data"], json!({"other": "a"}));
}
