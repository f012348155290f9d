use serde_json::{Value, json};

use crate::{Path, all, first, set};

fn store() -> Value {
    json!({
        "metadata": {"annotations": {"a.b/c": "x"}},
        "spec": {"replicas": 3, "list": [{"n": 1}, {"n": 2}], "letters": ["a", "b", "c", "d"]},
        "status": {"conditions": [
            {"type": "Ready", "status": "True", "generation": 2},
            {"type": "Done", "status": "False", "generation": 3},
            {"type": "Odd", "reason": null},
        ]},
    })
}

#[test]
fn paths_select_what_kubectl_selects() {
    for (path, expected) in [
        (".spec.replicas", json!([3])),
        ("{.spec.replicas}", json!([3])),
        (" { .spec.replicas } ", json!([3])),
        ("$.spec.replicas", json!([3])),
        ("{$.spec.replicas}", json!([3])),
        ("spec.replicas", json!([3])),
        ("$['spec']['replicas']", json!([3])),
        (".spec.['replicas']", json!([3])),
        (".spec.list[1].n", json!([2])),
        (".spec.list[-1].n", json!([2])),
        (".spec.list[2].n", json!([])),
        (".spec.list[-3].n", json!([])),
        (".spec.list[*].n", json!([1, 2])),
        (".spec.list[*].*", json!([1, 2])),
        (".metadata.annotations.a\\.b/c", json!(["x"])),
        (".metadata.annotations['a.b/c']", json!(["x"])),
        (".metadata.annotations['a\\.b/c']", json!(["x"])),
        (".metadata.annotations[\"a.b/c\"]", json!(["x"])),
        (".metadata.annotations.*", json!(["x"])),
        (".status.conditions[?(@.type==\"Done\")].status", json!(["False"])),
        (".status.conditions[?(@.type=='Ready')].status", json!(["True"])),
        (
            ".status.conditions[?( 'Ready' == @.type )].status",
            json!(["True"]),
        ),
        (".status.conditions[?(@.type=='None')].status", json!([])),
        (".missing.field", json!([])),
        (".spec.replicas.field", json!([])),
        (".broken[", json!([])),
    ] {
        assert_eq!(Value::from(all(&store(), path)), expected, "{path}");
    }
    assert_eq!(first(&store(), "."), Some(store()));
    assert_eq!(first(&store(), "$"), Some(store()));
    assert_eq!(first(&store(), ""), Some(store()));
}

#[test]
fn slices_exclude_their_end() {
    for (slice, expected) in [
        ("1:3", json!(["b", "c"])),
        (":2", json!(["a", "b"])),
        ("2:", json!(["c", "d"])),
        (":", json!(["a", "b", "c", "d"])),
        ("-2:", json!(["c", "d"])),
        (":-1", json!(["a", "b", "c"])),
        ("::2", json!(["a", "c"])),
        ("1:4:2", json!(["b", "d"])),
        ("1:9", json!(["b", "c", "d"])),
        ("-9:1", json!(["a"])),
        ("3:1", json!([])),
        ("0,2", json!(["a", "c"])),
        ("2, 0, 2", json!(["c", "a"])),
        ("0:2,-1", json!(["a", "b", "d"])),
        ("0,*", json!(["a", "b", "c", "d"])),
    ] {
        let found = all(&store(), &format!(".spec.letters[{slice}]"));
        assert_eq!(Value::from(found), expected, "{slice}");
    }
    assert_eq!(all(&store(), ".spec['replicas','missing']"), [json!(3)]);
}

#[test]
fn filters_compare_values_of_one_type() {
    for (filter, expected) in [
        ("@.generation", json!(["Ready", "Done"])),
        ("@.reason", json!(["Odd"])),
        ("@.reason==null", json!(["Odd"])),
        ("@.generation==2", json!(["Ready"])),
        ("@.generation==2.0", json!(["Ready"])),
        // An absent value is not compared.
        ("@.generation!=2", json!(["Done"])),
        ("@.generation>2", json!(["Done"])),
        ("@.generation>=2", json!(["Ready", "Done"])),
        ("@.generation<3", json!(["Ready"])),
        ("@.generation <= 3", json!(["Ready", "Done"])),
        ("@.generation<'9'", json!([])),
        ("@.type>'O'", json!(["Ready", "Odd"])),
        ("@.type!=@.status", json!(["Ready", "Done"])),
        ("@.status=='a)\\'b'", json!([])),
        ("@.generation>-1", json!(["Ready", "Done"])),
        ("@['type']=='Odd'", json!(["Odd"])),
    ] {
        let found = all(&store(), &format!(".status.conditions[?({filter})].type"));
        assert_eq!(Value::from(found), expected, "{filter}");
    }
    let lists = json!([{"a": [{"b": 1}], "n": 1}, {"a": [{"c": 1}], "n": 2}]);
    assert_eq!(all(&lists, "[?(@.a[?(@.b==1)])].n"), [json!(1)]);
    assert_eq!(all(&json!([1, 2, 3]), "[?(@>1)]"), [json!(2), json!(3)]);
}

#[test]
fn descent_finds_each_value_once() {
    let object = json!({"a": {"a": 1, "l": [{"a": 2}]}, "b": {"a": 3}});
    for (path, expected) in [
        ("..a", json!([{"a": 1, "l": [{"a": 2}]}, 1, 2, 3])),
        ("$..l[0]", json!([{"a": 2}])),
        ("..[0].a", json!([2])),
        (".a..a", json!([1, 2])),
        ("..a..a", json!([1, 2])),
        (".b..", json!([{"a": 3}, 3])),
        (".b..*", json!([3])),
        ("..[?(@.a==2)].a", json!([2])),
    ] {
        assert_eq!(Value::from(all(&object, path)), expected, "{path}");
    }
}

#[test]
fn a_path_finds_each_value_at_most_once() {
    let mut deep = json!(0);
    for _ in 0..100 {
        deep = json!([deep, 1]);
    }
    let union = "[0,0,1,*]".repeat(100);
    assert_eq!(Path::parse(&union).unwrap().find(&deep).len(), 2);
    let descents = Path::parse("..[*]..[*]..[*]..[*]").unwrap();
    assert_eq!(descents.find(&deep).len(), 194);
    let mut copied = json!(null);
    assert!(!descents.copy(&deep, &mut copied));
    copied = deep.clone();
    assert!(descents.copy(&deep, &mut copied));
    assert_eq!(copied, deep);
}

#[test]
fn setting_creates_missing_parents() {
    for (path, expected) in [
        (
            ".spec.size.count",
            json!({"spec": {"size": {"count": 2}}, "a": 1}),
        ),
        (".a.b", json!({"a": {"b": 2}})),
        // Only a plain path selects one place.
        (".spec[*]", json!({"a": 1})),
        (".spec.list[0]", json!({"a": 1})),
        (".spec[", json!({"a": 1})),
    ] {
        let mut object = json!({"a": 1});
        set(&mut object, path, json!(2));
        assert_eq!(object, expected, "{path}");
    }
    assert!(Path::parse(".a['b']").unwrap().is_plain());
    assert_eq!(Path::parse("$['a'].b").unwrap().first_field(), Some("a"));
    assert_eq!(Path::parse("..a").unwrap().first_field(), None);
    assert!(Path::parse("{$}").unwrap().is_root());
    assert!(!Path::parse("..").unwrap().is_root());
    assert!(!Path::parse(".a[0]").unwrap().is_plain());
}
