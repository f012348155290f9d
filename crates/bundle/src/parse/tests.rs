use proptest::prelude::*;
use serde_json::{Value, json};
use windlass_object::{JsonPath, Problem, object};

use super::*;

const CSV: &str = "
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: sample.v1}
";

fn files(contents: &[(&str, &str)]) -> Files {
    contents
        .iter()
        .map(|(file, content)| ((*file).to_owned(), content.as_bytes().to_vec()))
        .collect()
}

/// The files of a bundle that contains a ClusterServiceVersion and `object`.
fn with_object(object: &str) -> Files {
    files(&[
        (
            "metadata/annotations.yaml",
            "annotations: {operators.operatorframework.io.bundle.package.v1: sample}",
        ),
        ("manifests/csv.yaml", CSV),
        ("manifests/object.yaml", object),
    ])
}

/// The formatted problems of a bundle that contains `object`.
fn problems(object: &str) -> Vec<String> {
    let problems = Bundle::parse(&with_object(object)).unwrap_err();
    problems.iter().map(ToString::to_string).collect()
}

#[test]
fn objects_keep_their_order_and_location() {
    let mut files = with_object("{kind: B, metadata: {name: b}}\n---\n---\n{kind: C, metadata: {name: c}}\n");
    files.insert(
        "manifests/a.json".to_owned(),
        br#"{"kind": "List", "items": [{"kind": "A"}, {"kind": "List", "items": [{"kind": "CustomResourceDefinition"}]}]}"#
            .to_vec(),
    );
    let bundle = Bundle::parse(&files).unwrap();
    let place = |manifest: &Manifest| {
        let Manifest {
            file, document, path, ..
        } = manifest;
        format!("{} {file} {document:?} {path}", manifest.kind())
    };
    let places: Vec<String> = bundle.manifests().map(place).collect();
    assert_eq!(
        places,
        [
            "ClusterServiceVersion manifests/csv.yaml None $",
            "CustomResourceDefinition manifests/a.json None $.items[1].items[0]",
            "A manifests/a.json None $.items[0]",
            "B manifests/object.yaml Some(0) $",
            "C manifests/object.yaml Some(1) $",
        ]
    );
    assert_eq!(
        bundle.others[2]
            .problem(&JsonPath::from_fields("spec"), rule::SYNTAX, "is wrong")
            .to_string(),
        "manifests/object.yaml: $[1].spec: is wrong"
    );
}

#[test]
fn annotations_are_found_in_files_of_other_names() {
    let package = |name: &str, text: &str| {
        let mut files = with_object("{kind: A}");
        let annotations = files.remove("metadata/annotations.yaml").unwrap();
        files.insert(name.to_owned(), annotations);
        files.insert("metadata/a.yaml".to_owned(), text.into());
        Bundle::parse(&files).map(|bundle| bundle.package)
    };
    for name in ["metadata/annotations.yml", "metadata/bundle.json"] {
        assert_eq!(package(name, "[]").as_deref(), Ok("sample"), "{name}");
        assert_eq!(package(name, "a: [").as_deref(), Ok("sample"), "{name}");
    }
    assert!(package("elsewhere/annotations.yaml", "{}").is_err());
}

#[test]
fn scalars_are_parsed_as_yaml_1_2() {
    let bundle = Bundle::parse(&with_object(
        "{kind: A, a: yes, b: on, c: true, d: 0o17, e: 1.50, f: ~, g: '1', 1: h, i: !!str 2, j: 9007199254740993, \
          k: 0400, l: '0400', m: 0, n: -017, o: 0.5, p: 0x1f, q: 08:00}",
    ))
    .unwrap();
    assert_eq!(
        bundle.others[0].object,
        json!({"kind": "A", "a": "yes", "b": "on", "c": true, "d": 15, "e": 1.5, "f": null, "g": "1", "1": "h",
               "i": "2", "j": 9_007_199_254_740_993_u64, "k": 256, "l": "0400", "m": 0, "n": -15, "o": 0.5, "p": 31,
               "q": "08:00"})
    );
}

#[test]
fn booleans_of_yaml_1_1_are_accepted_where_the_api_has_booleans() {
    let mut files = with_object(
        "{kind: CustomResourceDefinition, apiVersion: apiextensions.k8s.io/v1, metadata: {name: a.b, labels: {y: 'yes'}}, \
          spec: {group: b, scope: Cluster, names: {kind: A, plural: a}, versions: [{name: v1, served: yes, storage: On, \
          schema: {openAPIV3Schema: {type: object, properties: {y: {type: string, nullable: no, default: on}}}}}]}}",
    );
    let csv = format!(
        "{CSV}spec:\n  installModes: [{{type: AllNamespaces, supported: yes}}, {{type: OwnNamespace, supported: off}}]\n  \
         install: {{spec: {{deployments: [{{name: a, spec: {{selector: {{}}, template: {{spec: {{hostNetwork: no, \
         containers: [{{name: yes, volumeMounts: [{{name: a, mountPath: /a, readOnly: on}}]}}]}}}}}}}}]}}}}\n"
    );
    files.insert("manifests/csv.yaml".to_owned(), csv.into_bytes());
    let bundle = Bundle::parse(&files).unwrap();
    assert_eq!(bundle.csv().install_modes(), [InstallMode::AllNamespaces]);
    let spec = bundle.csv().deployments().next().unwrap().spec().unwrap();
    assert_eq!(
        spec["template"]["spec"],
        json!({"hostNetwork": false, "containers": [
            {"name": "yes", "volumeMounts": [{"name": "a", "mountPath": "/a", "readOnly": true}]},
        ]})
    );
    let version = &bundle.crds[0].object["spec"]["versions"][0];
    assert_eq!(
        (&version["served"], &version["storage"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(
        version["schema"]["openAPIV3Schema"]["properties"]["y"],
        json!({"type": "string", "nullable": false, "default": "on"})
    );
    assert_eq!(bundle.crds[0].object["metadata"]["labels"]["y"], "yes");
}

#[test]
fn json_may_be_indented_with_tabs() {
    let bundle = Bundle::parse(&with_object("{\n\t\"kind\": \"A\",\n\t\"a\": [\n\t\t1\n\t]\n}\n")).unwrap();
    assert_eq!(bundle.others[0].object, json!({"kind": "A", "a": [1]}));
}

#[test]
fn problems_name_file_and_path() {
    for (object, expected) in [
        (
            "kind: A\nkind: B\n",
            "manifests/object.yaml: $: duplicate key 'kind' at line 2, column 1",
        ),
        ("a: [1, 2\n", "manifests/object.yaml: $: "),
        (
            "text",
            "manifests/object.yaml: $: is not a Kubernetes object: expected a mapping",
        ),
        (
            "kind: A\n---\na: 1\n",
            "manifests/object.yaml: $[1].kind: the object has no kind",
        ),
        (
            "{kind: List, items: {}}",
            "manifests/object.yaml: $.items: must be a list",
        ),
        (
            "{kind: A, metadata: {labels: {a: 1}}}",
            "manifests/object.yaml: $.metadata.labels.a: must be a string, not a number",
        ),
        ("{kind: A, a: .nan}", "manifests/object.yaml: $: "),
    ] {
        let problems = problems(object);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].starts_with(expected), "{problems:?}");
        assert!(!problems[0].contains('\n'), "{problems:?}");
    }
}

#[test]
fn binary_files_are_refused() {
    let mut files = with_object("{kind: A}");
    files.insert("manifests/binary".to_owned(), vec![0xff; 100]);
    let problems = Bundle::parse(&files).unwrap_err();
    assert_eq!(
        problems.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["manifests/binary: $: is neither YAML nor JSON: byte 0 is not UTF-8"]
    );
}

#[test]
fn bombs_are_refused_quickly() {
    let aliases: String = (0..30)
        .map(|level| match level {
            0 => "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned(),
            _ => {
                let item = format!("*a{}", level - 1);
                format!("a{level}: &a{level} [{}]\n", [item.as_str(); 10].join(", "))
            }
        })
        .collect();
    for bomb in [
        format!("kind: A\n{aliases}"),
        format!("kind: A\na: {}", "[".repeat(100_000)),
        format!("kind: A\na: {}1{}", "[".repeat(200), "]".repeat(200)),
        (0..200)
            .map(|depth| format!("{}a:\n", " ".repeat(depth)))
            .collect(),
        "- ".repeat(100_000),
        format!("[{}]", "1,".repeat(500_000)),
    ] {
        assert_eq!(problems(&bomb).len(), 1);
    }
}

#[test]
fn nesting_up_to_the_limit_is_accepted() {
    let object = format!("kind: A\na: {}1{}", "[".repeat(120), "]".repeat(120));
    assert!(Bundle::parse(&with_object(&object)).is_ok());
}

#[test]
fn properties_of_the_file_follow_those_of_the_annotation() {
    let mut files = with_object("{kind: A}");
    files.insert(
        "manifests/csv.yaml".to_owned(),
        br#"{"kind": "ClusterServiceVersion", "metadata": {"annotations": {"olm.properties": "[{\"type\": \"a\", \"value\": 1}]"}}}"#
            .to_vec(),
    );
    let property = |files: &Files| {
        let bundle = Bundle::parse(files).unwrap();
        object::annotation(&bundle.csv.object, "olm.properties")
            .unwrap()
            .to_owned()
    };
    assert_eq!(property(&files), r#"[{"type": "a", "value": 1}]"#);
    files.insert(
        "metadata/properties.yaml".to_owned(),
        b"properties:\n- {type: b, value: {c: d}}\n".to_vec(),
    );
    assert_eq!(
        property(&files),
        r#"[{"type":"a","value":1},{"type":"b","value":{"c":"d"}}]"#
    );
}

#[test]
fn channels_and_package_come_from_the_annotations() {
    let mut files = with_object("{kind: A}");
    files.insert(
        "metadata/annotations.yaml".to_owned(),
        b"annotations:
  operators.operatorframework.io.bundle.package.v1: sample
  operators.operatorframework.io.bundle.channels.v1: stable, alpha
"
        .to_vec(),
    );
    let bundle = Bundle::parse(&files).unwrap();
    assert_eq!(
        (bundle.package.as_str(), bundle.channels),
        ("sample", vec!["stable".to_owned(), "alpha".to_owned()])
    );
}

#[test]
fn line_breaks_in_names_are_escaped() {
    let problem = Problem::in_bundle("manifests/a\nb", rule::SYNTAX, "is \u{1b}[31mred");
    assert_eq!(problem.to_string(), "manifests/a\\nb: $: is \\u{1b}[31mred");
}

/// Any JSON value with a few levels of nesting.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9).prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        "[ \\t\\na-z:#'\"-]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map("[a-zA-Z0-9./ -]{1,10}", inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn every_json_value_survives(value in any_json(), pretty in any::<bool>()) {
        let object = json!({"kind": "A", "value": value});
        let text = if pretty { serde_json::to_string_pretty(&object) } else { serde_json::to_string(&object) };
        let bundle = Bundle::parse(&with_object(&text.unwrap())).unwrap();
        prop_assert_eq!(&bundle.others[0].object, &object);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut files = with_object("{kind: A}");
        for file in ["manifests/csv.yaml", "metadata/annotations.yaml", "metadata/properties.yaml"] {
            files.insert(file.to_owned(), bytes.clone());
        }
        let _ = Bundle::parse(&files);
    }

    #[test]
    fn arbitrary_text_never_panics(text in "[a-z:\\[\\]{}&*!|>?,'\"#%@` \\n\\t-]{0,80}") {
        let _ = Bundle::parse(&with_object(&text));
    }
}
