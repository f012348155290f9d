//! Reading of valid and invalid files.

use proptest::prelude::*;

use super::{package, problems, read};
use crate::{CatalogFormat, CatalogLimits, CatalogReader, GeneratedCatalog};

#[test]
fn json_and_yaml_yield_the_same_catalog() {
    let of = |format| {
        let mut reader = CatalogReader::default();
        let catalog = GeneratedCatalog::new(format, 3, 4, 100_000);
        reader.read("catalog", catalog).unwrap();
        let mut read = reader.finish();
        assert_eq!(problems(&read), [""; 0]);
        for package in read.catalog.packages.values_mut() {
            // The line numbers differ.
            package.place.clear();
            package
                .bundles
                .values_mut()
                .for_each(|bundle| bundle.place.clear());
            package
                .channels
                .values_mut()
                .for_each(|channel| channel.place.clear());
        }
        read.catalog
    };
    let catalog = of(CatalogFormat::Json);
    assert_eq!(catalog, of(CatalogFormat::Yaml));
    assert_eq!(catalog.packages.len(), 3);
    let bundles = &catalog.packages["operator-2"].bundles;
    assert_eq!(bundles.len(), 4);
    assert_eq!(bundles["operator-2.v1.3.0"].version, "1.3.0");
    assert_eq!(
        bundles["operator-2.v1.3.0"].image,
        "quay.io/generated/operator-2:1.3.0"
    );
}

#[test]
fn a_reader_can_keep_a_single_package() {
    let mut reader = CatalogReader::default().only("operator-1");
    let catalog = GeneratedCatalog::new(CatalogFormat::Json, 3, 2, 100);
    reader.read("catalog", catalog).unwrap();
    reader
        .read(
            "other",
            &br#"{"schema": "olm.bundle", "package": "operator-2"}"#[..],
        )
        .unwrap();
    let read = reader.finish();
    assert_eq!(problems(&read), [""; 0]);
    assert_eq!(read.catalog.packages.keys().collect::<Vec<_>>(), ["operator-1"]);
}

#[test]
fn deprecations_are_kept() {
    let deprecations = r"
schema: olm.deprecations
package: widgets
entries:
- {reference: {schema: olm.package}, message: Use gadgets.}
- {reference: {schema: olm.channel, name: stable}, message: Use fast.}
- {reference: {schema: olm.bundle, name: widgets.v1.0.0}, message: It leaks.}
- {reference: {schema: olm.bundle}, message: Which?}
- {reference: {schema: olm.bundle, name: widgets.v1.0.0}}
";
    let read = read(&[("a.yaml", &package(&[("1.0.0", "")])), ("b.yaml", deprecations)]);
    let deprecations = &read.catalog.packages["widgets"].deprecations;
    assert_eq!(deprecations.package.as_deref(), Some("Use gadgets."));
    assert_eq!(deprecations.channels["stable"], "Use fast.");
    assert_eq!(deprecations.bundles["widgets.v1.0.0"], "It leaks.");
    assert_eq!(
        problems(&read),
        [
            "b.yaml:2: package widgets: entries[3].reference must be a package, or a channel or bundle with its name",
            "b.yaml:2: package widgets: entries[4].message must be a text",
        ]
    );
}

#[test]
fn other_schemas_are_skipped() {
    let text = r#"{"schema": "example.com.icons", "name": 5, "package": [], "entries": {"a": 1}, "properties": "none"}"#;
    let read = read(&[("a.json", text)]);
    assert_eq!((problems(&read), read.catalog.packages.len()), (Vec::new(), 0));
}

#[test]
fn empty_documents_are_skipped() {
    let text = format!(
        "# Widgets\n---\n# Nothing\n---\nnull\n{}---\n",
        package(&[("1.0.0", "")])
    );
    assert_eq!(
        problems(&read(&[
            ("a.yaml", &text),
            ("b.yaml", "# Nothing"),
            ("c.json", "")
        ])),
        [""; 0]
    );
}

#[test]
fn all_problems_are_reported_at_once() {
    let text = r#"{"schema": "olm.package", "name": "widgets"}
{"name": "widgets"}
{"schema": "olm.channel", "package": "widgets", "name": "stable", "entries": [
  {"name": "widgets.v1.0.0", "replaces": 5, "skips": "no", "skipRange": "newer"}, {"replaces": "a"},
  {"name": "widgets.v1.0.0"}]}
{"schema": "olm.channel", "package": "widgets", "name": "fast", "entries": []}
{"schema": "olm.bundle", "package": "widgets", "name": "widgets.v1.0.0", "image": {},
 "properties": [{"type": "olm.package", "value": {"packageName": "gadgets", "version": "newest"}}]}
{"schema": "olm.bundle", "package": "widgets", "name": "widgets.v1.1.0", "image": "a", "properties": [{"type": "olm.gvk", "value": {}}]}
{"schema": ["olm.bundle"]}
{"schema": "olm.bundle", }
{"schema": "olm.package", "name": "widgets", "defaultChannel": "slow"}
{"schema": "olm.package", "name": "widgets", "defaultChannel": "stable"}"#;
    let read = read(&[("widgets.json", text), ("list.json", "[]"), ("end.json", "{")]);
    assert_eq!(
        problems(&read),
        [
            "widgets.json:1: defaultChannel is missing",
            "widgets.json:2: schema is missing: it is the type of the blob, for example olm.bundle",
            "widgets.json:3: package widgets: channel stable: entries[0].replaces must be a text",
            "widgets.json:3: package widgets: channel stable: entries[0].skipRange: \"newer\" is not a range of versions, for \
             example \">=1.0.0 <1.2.0\"",
            "widgets.json:3: package widgets: channel stable: entries[0].skips must be a list of names",
            "widgets.json:3: package widgets: channel stable: entries[1].name is missing",
            "widgets.json:3: package widgets: channel stable: entries[2].name: widgets.v1.0.0 is in the channel already",
            "widgets.json:6: package widgets: channel fast: entries must be a list of bundles",
            "widgets.json:7: package widgets: image of widgets.v1.0.0 must be a text",
            "widgets.json:7: package widgets: the property olm.package of widgets.v1.0.0 names another package",
            "widgets.json:7: package widgets: \"newest\", the version of widgets.v1.0.0, is not a semantic version",
            "widgets.json:9: package widgets: widgets.v1.1.0 must have one property olm.package, and has 0",
            "widgets.json:10: schema is missing: it is the type of the blob, for example olm.bundle",
            "widgets.json:11: cannot be read as JSON: trailing comma at line 11, column 26",
            "widgets.json:13: package widgets: olm.package is in widgets.json:12 already",
            "list.json:1: cannot be read as YAML (lines are those of the blob): expected mapping start at line 1, column 1",
            "end.json:1: the JSON object does not end",
            "widgets.json:3: package widgets: channel stable: olm.bundle is missing or invalid for widgets.v1.0.0",
            "widgets.json:12: package widgets: the default channel slow is missing",
        ]
    );
}

#[test]
fn the_number_of_problems_is_limited() {
    let mut reader = CatalogReader::new(CatalogLimits {
        problems: 2,
        ..CatalogLimits::default()
    });
    reader.read("a", "{}".repeat(10).as_bytes()).unwrap();
    let said = problems(&reader.finish());
    assert_eq!(said.len(), 3);
    assert_eq!(said[2], "the catalog: 8 more problems are not shown");
}

#[test]
fn the_size_of_names_is_limited() {
    let mut reader = CatalogReader::new(CatalogLimits {
        kept: 10_000,
        ..CatalogLimits::default()
    });
    let catalog = GeneratedCatalog::new(CatalogFormat::Json, 100, 10, 10);
    let error = reader.read("a", catalog).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("the names and versions of the catalog exceed"),
        "{error}"
    );
}

#[test]
fn yaml_aliases_are_limited() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..9 {
        let before = format!("*a{}, ", level - 1).repeat(10);
        bomb += &format!("a{level}: &a{level} [{before}]\n");
    }
    let deep = format!("schema: {}", "[".repeat(10_000));
    let read = read(&[("bomb.yaml", &bomb), ("deep.yaml", &deep)]);
    let said = problems(&read);
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(
        said[0].starts_with("bomb.yaml:1: cannot be read as YAML"),
        "{said:?}"
    );
    assert!(
        said[1].starts_with("deep.yaml:1: cannot be read as YAML"),
        "{said:?}"
    );
}

#[test]
fn deep_json_is_skipped() {
    let text = format!(
        r#"{{"schema": "a", "b": {}{}}}"#,
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    assert_eq!(problems(&read(&[("deep.json", &text)])), [""; 0]);
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut reader = CatalogReader::default();
        reader.read("a", bytes.as_slice()).unwrap();
        reader.finish();
    }

    #[test]
    fn a_changed_byte_affects_only_one_package(at in 0_usize..2000, byte in any::<u8>()) {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut GeneratedCatalog::new(CatalogFormat::Json, 1, 2, 20), &mut bytes).unwrap();
        let at = at % bytes.len();
        bytes[at] = byte;
        let mut reader = CatalogReader::default();
        reader.read("broken", bytes.as_slice()).unwrap();
        reader.read("sound", package(&[("1.0.0", "")]).as_bytes()).unwrap();
        let read = reader.finish();
        prop_assert!(read.problems.iter().all(|problem| problem.package.as_deref() != Some("widgets")));
        prop_assert!(read.catalog.packages["widgets"].resolve(&Default::default()).is_ok());
    }
}
