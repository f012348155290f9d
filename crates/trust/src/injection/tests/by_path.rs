//! Targets that are told by their annotation, not by their kind: ConfigMaps, and kinds that are added by the paths of their fields.

use std::sync::Arc;

use super::*;

/// Of a kind that is added by its paths, and a target of it.
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
fn a_kind_that_was_added_gets_the_bundle_at_each_of_its_paths() {
    let (kind, target) = added();
    let kinds = Arc::new(TargetKinds::with([kind]));
    let trust = trust(1);
    let injection = Injection::new(
        trust.clone(),
        Reach::everything().calling(sample::names()).within(kinds.clone()),
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
        "what calls another server"
    );
    assert_eq!(injection.plan(&patched), Ok(None));
    let mut written = target.clone();
    written["metadata"]["resourceVersion"] = "2".into();
    assert!(
        json_patch::patch(&mut written, &patch).is_err(),
        "it has changed since"
    );
    let without =
        json!({"apiVersion": "example.com/v1", "kind": "Gateway", "metadata": {"name": "g"}, "spec": {}});
    assert_eq!(
        injection.plan(&without),
        Ok(None),
        "what holds the field is its owner's to make"
    );
    assert!(matches!(
        Injection::new(trust, Reach::everything()).plan(&target),
        Err(InjectionError::UnknownKind(_))
    ));
}

#[test]
fn what_was_injected_into_a_config_map_is_taken_away() {
    let kinds = TargetKinds::default();
    let mut target = inject(&config_map(), &trust(1));
    let fields = json!({"f:data": {"f:ca-bundle.crt": {}}});
    let entry = json!({"manager": "windlass-inject", "operation": "Update", "fieldsV1": fields});
    target["metadata"]["managedFields"] = json!([entry]);
    assert!(is_left_behind(&target, &kinds));
    let kept = relevant_fields(&target, &entry, &kinds);
    assert_eq!(kept, Some(json!({"f:caBundle": {}})));
    let patch = withdrawal(&target, &kinds).unwrap();
    json_patch::patch(&mut target, &patch).unwrap();
    assert_eq!(target["data"], json!({"other": "a"}));
}
