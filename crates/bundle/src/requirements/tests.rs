use serde_json::{Value, json};

use super::*;
use crate::{parse::Bundle, render::sample};

fn bundle_with(dependencies: Value, properties: &Value) -> Bundle {
    let mut bundle = sample::bundle();
    let mut file = sample::manifest(json!({"dependencies": dependencies}));
    file.file = "metadata/dependencies.yaml".into();
    bundle.dependencies = Some(file);
    bundle.csv.object["metadata"]["annotations"]["olm.properties"] = properties.to_string().into();
    bundle
}

fn problems(bundle: &Bundle) -> Vec<String> {
    let problems = Requirements::read(bundle).1;
    problems.iter().map(ToString::to_string).collect()
}

#[test]
fn every_source_of_requirements_is_read() {
    let gvk = json!({"group": "cert-manager.io", "version": "v1", "kind": "Certificate"});
    let mut bundle = bundle_with(
        json!([
            {"type": "olm.gvk", "value": gvk},
            {"type": "olm.package", "value": {"packageName": "etcd", "version": ">3.1.0 <4"}},
            {"type": "olm.label", "value": {"label": "a"}},
            {"type": "olm.constraint", "value": {"failureMessage": "needs both", "all": {"constraints": [
                {"gvk": gvk}, {"cel": {"rule": "properties.exists(p, p.type == 'certified')"}},
            ]}}},
        ]),
        &json!([
            {"type": "olm.gvk", "value": gvk},
            {"type": "olm.gvk.required", "value": gvk},
            {"type": "olm.package.required", "value": {"packageName": "etcd", "versionRange": "1.x"}},
        ]),
    );
    let spec = &mut bundle.csv.object["spec"];
    spec["minKubeVersion"] = json!("1.30.0");
    spec["customresourcedefinitions"]["required"] = json!([
        {"name": "servicemonitors.monitoring.coreos.com", "version": "v1", "kind": "ServiceMonitor"},
        {"name": "widgets.example.com", "version": "v1", "kind": "Widget"},
    ]);
    spec["apiservicedefinitions"]["required"] =
        json!([{"group": "metrics.k8s.io", "version": "v1beta1", "kind": "NodeMetrics", "name": "nodes"}]);
    spec["nativeAPIs"] = json!([{"group": "", "version": "v1", "kind": "Pod"}]);
    let (requirements, problems) = Requirements::read(&bundle);
    assert_eq!(problems, []);
    assert_eq!(requirements.min_kube_version.as_deref(), Some("1.30.0"));
    let sources: Vec<_> = requirements
        .constraints
        .iter()
        .map(|constraint| constraint.source.as_str())
        .collect();
    assert_eq!(
        sources,
        [
            "spec.customresourcedefinitions.required",
            "spec.customresourcedefinitions.required",
            "spec.apiservicedefinitions.required",
            "spec.nativeAPIs",
            "olm.properties",
            "olm.properties",
            "metadata/dependencies.yaml",
            "metadata/dependencies.yaml",
            "metadata/dependencies.yaml",
        ]
    );
    let apis: Vec<_> = requirements.apis().iter().map(ToString::to_string).collect();
    // The cluster does not need to serve the kinds that the bundle contains.
    assert_eq!(
        apis,
        [
            "ServiceMonitor (monitoring.coreos.com/v1)",
            "NodeMetrics (metrics.k8s.io/v1beta1)",
            "Pod (v1)",
            "Certificate (cert-manager.io/v1)",
        ]
    );
    assert_eq!(
        requirements.constraints[8].failure_message.as_deref(),
        Some("needs both")
    );
    assert!(Requirements::read(&sample::bundle()).0.is_empty());
}

#[test]
fn an_invalid_dependency_is_reported_with_its_path() {
    for (entry, expected) in [
        (
            json!({"type": "olm.gvk", "value": {"version": "v1", "kind": "A"}}),
            ".value.group: API Group is empty",
        ),
        (
            json!({"type": "olm.package", "value": {"packageName": "a"}}),
            ".value.version: Package version is empty",
        ),
        (
            json!({"type": "olm.package", "value": {"packageName": "a", "version": "one"}}),
            ".value.version: Invalid semver format version",
        ),
        (
            json!({"type": "olm.other", "value": {}}),
            ".type: couldn't parse dependency of type olm.other",
        ),
        (
            json!({"type": "olm.constraint", "value": {"cel": {"rule": ""}}}),
            ".value.cel.rule: The CEL expression is missing",
        ),
        (
            json!({"type": "olm.constraint", "value": {"any": {"constraints": [{"gvk": {}, "cel": {}}]}}}),
            ".value.any.constraints[0]: must have exactly one of gvk, package, cel, all, any, not",
        ),
        (
            json!({"type": "olm.constraint", "value": {"not": {}}}),
            ".value.not.constraints: must have at least one constraint",
        ),
    ] {
        let found = problems(&bundle_with(json!([entry]), &json!([])));
        assert_eq!(
            found,
            [format!("metadata/dependencies.yaml: $.dependencies[0]{expected}")]
        );
    }
    let invalid = json!([{"type": "olm.constraint", "value": {"cel": {"rule": "properties.("}}}]);
    let found = problems(&bundle_with(json!([]), &invalid));
    assert!(
        found[0].starts_with(
            "manifests/object.yaml: $.metadata.annotations['olm.properties'][0].value.cel.rule: Invalid CEL expression: "
        ),
        "{found:?}"
    );
}

#[test]
fn expressions_read_properties_and_compare_versions() {
    let properties = [
        json!({"type": "olm.package", "value": {"packageName": "etcd", "version": "3.2.0"}}),
        json!({"type": "olm.gvk", "value": {"group": "g", "version": "v1", "kind": "K"}}),
    ];
    for (rule, expected) in [
        ("true", true),
        ("false", false),
        ("properties.exists(p, p.type == 'olm.gvk')", true),
        (
            "properties.exists(p, p.type == 'olm.gvk' && p.value.kind == 'K')",
            true,
        ),
        ("properties.exists(p, p.type == 'certified')", false),
        (
            "properties.exists(p, p.type == 'olm.package' && p.value.packageName == 'etcd' && \
             semver_compare(p.value.version, '3.10.0') < 0)",
            true,
        ),
    ] {
        assert_eq!(
            CelRule::parse(rule).unwrap().holds(&properties),
            Ok(expected),
            "{rule}"
        );
    }
    for undecided in ["1", "properties[7].type == 'a'", "nothing == 1"] {
        let held = CelRule::parse(undecided).unwrap().holds(&properties);
        assert!(
            matches!(held, Err(CelError::Undecided(_))),
            "{undecided}: {held:?}"
        );
    }
}

#[test]
fn comprehensions_are_nested_at_most_twice() {
    let within = |inner: &str| format!("properties.exists(p, {inner})");
    let twice = within(&within("true"));
    for (text, accepted) in [
        (within("true"), true),
        (twice.clone(), true),
        (within(&twice), false),
        (format!("{twice} && {twice} && {twice}"), true),
        // String literals do not hide comprehensions.
        (within(&format!("')' == '' || {twice}")), false),
        (within(&format!("r'\\' == ')' || {twice}")), false),
        (within("p.type == '((exists('"), true),
        (format!("properties.map (p, {twice}) == []"), false),
    ] {
        assert_eq!(CelRule::parse(&text).is_ok(), accepted, "{text}");
    }
}

#[test]
fn untrusted_expressions_are_bounded() {
    for bomb in [
        "(".repeat(4000),
        "a".repeat(5000),
        "(".repeat(256),
        "(".repeat(128) + "true" + &")".repeat(128),
        "[".repeat(128) + &"]".repeat(128),
        "!".repeat(256) + "true",
        "-".repeat(250) + "1 == 1",
        "a.".repeat(250) + "b",
        "a in ".repeat(400) + "a",
        "true ? true : ".repeat(120) + "true",
    ] {
        // Every expression yields a result or an error.
        let _ = CelRule::parse(&bomb).map(|rule| rule.holds(&[]));
    }
}
