//! What every ledger and every record must hold.

use std::collections::BTreeSet;

use proptest::{collection, option, prelude::*};
use serde_json::{Value, json};
use windlass_api::{
    BundleStatus, CertificateDefaults, ConfigMapName, ConversionManager, DirectorySource, InstalledRevision,
    Source,
};
use windlass_object::{InCluster, ObjectKey};

use super::*;

fn bundle(version: u8) -> BundleStatus {
    BundleStatus {
        package: "p".to_owned(),
        name: format!("p.v{version}"),
        version: format!("{version}.0.0"),
        digest: format!("sha256:{version:064}"),
    }
}

fn settings(config: Option<Value>) -> InstallSettings {
    InstallSettings {
        namespace: "ns".to_owned(),
        watch_namespaces: Vec::new(),
        config,
        certificates: CertificateDefaults::default(),
        conversion: ConversionManager::Managed,
        allow_blocking_webhooks: false,
        overrides: Vec::new(),
    }
}

fn directory(path: &str) -> Source {
    Source {
        directory: Some(DirectorySource {
            path: path.to_owned(),
        }),
        ..Source::default()
    }
}

fn record(number: i64, version: u8, installed: bool) -> RevisionRecord {
    RevisionRecord {
        number,
        bundle: bundle(version),
        source: directory("d"),
        image: None,
        settings: settings(None),
        config_maps: Vec::new(),
        installed,
        inventory: RevisionInventory::default(),
    }
}

fn installed(revision: i64, version: u8) -> InstalledRevision {
    InstalledRevision {
        revision,
        bundle: bundle(version),
        image: None,
        healthy: true,
    }
}

fn encoded(record: &RevisionRecord) -> Value {
    encode(record, "name", "uid-1", "windlass-system").unwrap()
}

fn items(count: usize) -> RevisionInventory {
    let item = |index: usize| InventoryItem {
        key: ObjectKey {
            cluster: InCluster::Local,
            api_version: "rbac.authorization.k8s.io/v1".to_owned(),
            kind: "ClusterRoleBinding".to_owned(),
            namespace: Some("some-operator-system".to_owned()),
            // No two alike, as those with hashes in them.
            name: format!(
                "some-operator.v1-{:016x}{:016x}",
                index * 0x9e37_79b9_7f4a,
                index * 0xc2b2_ae3d
            ),
        },
        uid: Some(format!(
            "{:08x}-{:04x}-4000-8000-{:012x}",
            index.wrapping_mul(0x9e37_79b9) & 0xffff_ffff,
            index & 0xffff,
            index.wrapping_mul(0x9e37_79b9_7f4a) & 0xffff_ffff_ffff
        )),
    };
    (0..count).map(item).collect()
}

#[test]
fn five_thousand_objects_fit_a_config_map() {
    let mut large = record(1, 1, true);
    large.inventory = items(5000);
    let encoded = encoded(&large);
    assert!(encoded.to_string().len() < (1 << 20) - (16 << 10));
    assert_eq!(decode(&encoded).unwrap(), large);
}

#[test]
fn what_does_not_fit_is_refused_in_words() {
    let mut huge = record(7, 1, true);
    huge.inventory = items(60_000);
    let error = encode(&huge, "name", "uid", "ns").unwrap_err().to_string();
    assert!(
        error.starts_with("revision 7 with 60000 objects is too large to be recorded"),
        "{error}"
    );
}

#[test]
fn a_record_goes_with_its_bundle_deployment_and_is_no_object_of_it() {
    let config_map = encoded(&record(4, 1, true));
    assert_eq!(config_map["metadata"]["name"], "name-revision-4");
    assert_eq!(
        config_map["metadata"]["labels"],
        json!({"windlass.dev/revision-of": "name"})
    );
    let owner = &config_map["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["name"], &owner["uid"]), (&json!("name"), &json!("uid-1")));
}

#[test]
fn the_same_bundle_with_the_same_settings_is_the_same_revision() {
    let ledger = Ledger::new(vec![record(2, 2, false), record(1, 1, true)]);
    let plain = settings(None);
    let number = |version: u8, settings: &InstallSettings| {
        ledger.number(&bundle(version).digest, settings, Some(&installed(1, 1)))
    };
    assert_eq!(number(1, &plain), 1, "set back to the installed one");
    assert_eq!(number(2, &plain), 2, "the one that is under way");
    assert_eq!(number(3, &plain), 3);
    assert_eq!(
        number(1, &settings(Some(json!({"env": []})))),
        3,
        "other settings"
    );
    let after = Ledger::new(vec![record(1, 1, true), record(2, 2, true)]);
    let back = after.number(&bundle(1).digest, &plain, Some(&installed(2, 2)));
    assert_eq!(back, 3, "what comes back is another revision");
    assert_eq!(Ledger::default().number("d", &plain, None), 1);
    let lost = Ledger::default().number(&bundle(4).digest, &plain, Some(&installed(4, 4)));
    assert_eq!(lost, 4, "its record was deleted");
}

#[test]
fn a_source_that_cannot_be_read_is_replaced_only_by_what_came_from_it() {
    let mut ledger = vec![record(1, 1, true), record(2, 2, false)];
    ledger[1].source = directory("e");
    let ledger = Ledger::new(ledger);
    let instead = |source: &Source, settings: &InstallSettings| {
        let found = ledger.instead_of(source, settings, Some(2), Some(1));
        found.map(|record| record.number)
    };
    let plain = settings(None);
    assert_eq!(instead(&directory("d"), &plain), Some(1));
    assert_eq!(instead(&directory("e"), &plain), Some(2));
    assert_eq!(instead(&directory("f"), &plain), None);
    assert_eq!(instead(&directory("e"), &settings(Some(json!({})))), None);
    let pinned = |path: &str, version: u8| Source {
        digest: Some(bundle(version).digest),
        ..directory(path)
    };
    assert_eq!(
        instead(&pinned("f", 2), &plain),
        Some(2),
        "it is the one by its digest"
    );
    assert_eq!(instead(&pinned("d", 3), &plain), None);
}

/// Settings under which a policy has put a mirror before an image.
fn overridden() -> InstallSettings {
    let mirror = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "namespace": "ns", "name": "d",
        "patch": [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "mirror/i"}],
    });
    settings(None).overridden(vec![serde_json::from_value(mirror).unwrap()])
}

#[test]
fn other_overrides_are_another_revision_and_are_recorded() {
    let mirrored = RevisionRecord {
        settings: overridden(),
        ..record(1, 1, true)
    };
    let encoded = encode(&mirrored, "name", "uid-1", "windlass-system").unwrap();
    assert_eq!(decode(&encoded).unwrap(), mirrored);
    let ledger = Ledger::new(vec![mirrored]);
    let number =
        |settings: &InstallSettings| ledger.number(&bundle(1).digest, settings, Some(&installed(1, 1)));
    assert_eq!((number(&overridden()), number(&settings(None))), (1, 2));
    let instead = ledger.instead_of(&directory("d"), &settings(None), Some(1), Some(1));
    assert!(instead.is_some(), "whatever was overridden, it came from there");
}

#[test]
fn what_was_recorded_before_there_were_overrides_has_none() {
    let before: InstallSettings = serde_json::from_value(json!({"namespace": "ns"})).unwrap();
    assert_eq!(before.overrides, []);
    let written = serde_json::to_value(settings(None)).unwrap();
    assert_eq!(written.get("overrides"), None, "new records equal earlier ones");
}

fn source() -> impl Strategy<Value = Source> {
    let config_maps = collection::vec("[a-z]{1,9}", 1..4).prop_map(|names| Source {
        config_maps: Some(names.into_iter().map(|name| ConfigMapName { name }).collect()),
        ..Source::default()
    });
    prop_oneof!["[a-z/]{1,20}".prop_map(|path| directory(&path)), config_maps]
}

fn inventory() -> impl Strategy<Value = RevisionInventory> {
    let item = (
        ".{0,9}",
        ".{1,9}",
        option::of(".{1,9}"),
        ".{1,20}",
        option::of("[0-9a-f-]{36}"),
    );
    let item = item.prop_map(|(api_version, kind, namespace, name, uid)| InventoryItem {
        key: ObjectKey {
            cluster: InCluster::Local,
            api_version,
            kind,
            namespace,
            name,
        },
        uid,
    });
    collection::vec(item, 0..8).prop_map(|items| items.into_iter().collect())
}

fn any_record() -> impl Strategy<Value = RevisionRecord> {
    let text = || ".{0,12}";
    let config = option::of(collection::btree_map(text(), text(), 0..4));
    let settings =
        (text(), collection::vec(text(), 0..3), config).prop_map(|(namespace, watched, config)| {
            InstallSettings {
                namespace,
                watch_namespaces: watched,
                config: config.map(|fields| json!(fields)),
                certificates: CertificateDefaults::default(),
                conversion: ConversionManager::Managed,
                allow_blocking_webhooks: false,
                overrides: Vec::new(),
            }
        });
    let bundle = (text(), text(), text(), text()).prop_map(|(package, name, version, digest)| BundleStatus {
        package,
        name,
        version,
        digest,
    });
    let parts = (
        1..i64::MAX,
        bundle,
        (source(), option::of(text())),
        settings,
        collection::vec(text(), 0..4),
        any::<bool>(),
        inventory(),
    );
    parts.prop_map(
        |(number, bundle, (source, image), settings, config_maps, installed, inventory)| RevisionRecord {
            number,
            bundle,
            source,
            image,
            settings,
            config_maps,
            installed,
            inventory,
        },
    )
}

/// A change that makes no record of a record.
fn damage() -> impl Strategy<Value = (&'static str, Value)> {
    let pointers = prop_oneof![
        Just("/data"),
        Just("/data/revision.json"),
        Just("/binaryData"),
        Just("/binaryData/settings.json.gz"),
        Just("/binaryData/inventory.json.gz"),
    ];
    let garbage = prop_oneof![
        Just(Value::Null),
        Just(json!(7)),
        "[a-zA-Z0-9+/= {}]{0,40}".prop_map(Value::from),
        // An empty list by gzip, where an object belongs, or plain text.
        Just(json!("H4sIAAAAAAAA/4uOBQApu0wNAgAAAA==!")),
    ];
    (pointers, garbage)
}

proptest! {
    #[test]
    fn a_record_is_read_as_it_was_written(record in any_record()) {
        prop_assert_eq!(decode(&encoded(&record)).unwrap(), record);
    }

    #[test]
    fn garbage_is_one_clear_error((pointer, garbage) in damage()) {
        let mut config_map = encoded(&record(1, 1, true));
        *config_map.pointer_mut(pointer).unwrap() = garbage;
        let error = decode(&config_map).unwrap_err().to_string();
        prop_assert!(
            error.starts_with("the ConfigMap name-revision-1 is not a revision record: "),
            "{}", error
        );
        prop_assert!(!error.contains('\n'), "{}", error);
    }

    #[test]
    fn the_installed_the_next_and_the_last_three_are_always_kept(
        flags in collection::vec(any::<bool>(), 1..12),
        chosen in any::<prop::sample::Index>(),
        has_next in any::<bool>(),
    ) {
        let records: Vec<_> = (1..).zip(&flags).map(|(number, was)| record(number, 1, *was)).collect();
        let ledger = Ledger::new(records);
        let count = i64::try_from(flags.len()).unwrap();
        let installed = i64::try_from(chosen.index(flags.len())).unwrap() + 1;
        let next = (has_next && installed < count).then_some(count);
        let gone: BTreeSet<_> = ledger
            .outdated(Some(installed), next)
            .iter()
            .map(|record| record.number)
            .collect();
        prop_assert!(!gone.contains(&installed) && !next.is_some_and(|next| gone.contains(&next)));
        let history = ledger.history(Some(installed));
        for kept in history.iter().filter(|known| Some(known.revision) != next).take(3) {
            prop_assert!(!gone.contains(&kept.revision), "{:?}", kept);
        }
        prop_assert!(flags.len() - gone.len() <= 8);
        let rest: Vec<_> = ledger.records().iter().filter(|record| !gone.contains(&record.number)).cloned().collect();
        prop_assert!(Ledger::new(rest).outdated(Some(installed), next).is_empty(), "not at once");
    }
}
