//! Compares the output of Helm for the chart with the manifests. `e2e/chart` builds Helm for this test;
//! without Helm it is skipped.

#![expect(clippy::unwrap_used, reason = "a file that cannot be read fails the test")]

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::{Value, json};
use windlass_object::yaml;

/// Objects by kind, namespace and name.
type Objects = BTreeMap<String, Value>;

/// Returns the program in `WINDLASS_HELM`, or the installed one.
fn helm() -> Option<PathBuf> {
    if let Some(named) = env::var_os("WINDLASS_HELM") {
        return Some(named.into());
    }
    let path = env::var_os("PATH")?;
    let helm = env::split_paths(&path)
        .map(|folder| folder.join("helm"))
        .find(|helm| helm.is_file());
    if helm.is_none() {
        eprintln!("Skipped: Helm is not installed. e2e/chart builds it and runs this");
    }
    helm
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The Kubernetes version for `helm template`, which has no default in a Helm that is built from source.
const KUBE_VERSION: &str = "--kube-version=1.36.0";

fn run(helm: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(helm);
    command.current_dir(root()).args(arguments).output().unwrap()
}

/// Returns the objects that `helm template` prints for a namespace and values.
fn template(helm: &Path, namespace: &str, values: &[&str]) -> Objects {
    let mut arguments = vec![
        "template",
        "any",
        "charts/windlass",
        KUBE_VERSION,
        "--namespace",
        namespace,
    ];
    arguments.extend(values.iter().flat_map(|value| ["--set", value]));
    let output = run(helm, &arguments);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    by_name(yaml::documents(&output.stdout).unwrap())
}

/// Returns the objects in files of `manifests`, without the Namespace, which Helm creates.
fn manifests(names: &[&str]) -> Objects {
    let read = |name| yaml::documents(&fs::read(root().join("manifests").join(name)).unwrap()).unwrap();
    let mut objects = by_name(names.iter().flat_map(read).collect());
    objects.retain(|_, object| object["kind"] != "Namespace");
    objects
}

fn by_name(objects: Vec<Value>) -> Objects {
    let is_hook = |object: &Value| object.pointer("/metadata/annotations/helm.sh~1hook").is_some();
    let objects = objects
        .into_iter()
        .filter(|object| !is_hook(object))
        .collect::<Vec<_>>();
    let count = objects.len();
    let named = objects.into_iter().map(|mut object| {
        if object["kind"] == "CustomResourceDefinition"
            && let Some(metadata) = object["metadata"].as_object_mut()
            && let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut)
        {
            annotations.remove("helm.sh/resource-policy");
            if annotations.is_empty() {
                metadata.remove("annotations");
            }
        }
        (
            format!("{} {}", object["kind"], object["metadata"]["name"]),
            object,
        )
    });
    let named: Objects = named.collect();
    assert_eq!(named.len(), count, "two objects have the same name");
    named
}

/// Fails with the first object that differs.
fn assert_same(made: &Objects, manifests: &Objects) {
    for (name, object) in manifests {
        assert_eq!(made.get(name), Some(object), "{name}");
    }
    let more: Vec<_> = made
        .keys()
        .filter(|name| !manifests.contains_key(*name))
        .collect();
    assert!(more.is_empty(), "only in the chart: {more:?}");
}

/// Returns the files that the kustomization applies.
fn default_files() -> Vec<String> {
    let kustomization = fs::read(root().join("manifests/kustomization.yaml")).unwrap();
    let kustomization = yaml::documents(&kustomization).unwrap();
    let files = kustomization[0]["resources"].as_array().unwrap().iter();
    files.map(|file| file.as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_default_chart_equals_the_kustomization() {
    let Some(helm) = helm() else { return };
    let files = default_files();
    let files: Vec<_> = files.iter().map(String::as_str).collect();
    assert_same(&template(&helm, "windlass-system", &[]), &manifests(&files));
}

#[test]
fn the_chart_with_all_options_includes_the_optional_manifests() {
    let Some(helm) = helm() else { return };
    let files = default_files();
    let files = files.iter().map(String::as_str);
    let files: Vec<_> = files
        .chain(["policies.yaml", "ui.yaml", "monitoring.yaml", "dashboard.yaml"])
        .collect();
    let on = [
        "policies.enabled=true",
        "ui.enabled=true",
        "monitoring.enabled=true",
    ];
    assert_same(&template(&helm, "windlass-system", &on), &manifests(&files));
}

#[test]
fn a_certificates_only_chart_has_no_bundle_kinds_guard_or_escalation_rights() {
    let Some(helm) = helm() else { return };
    let objects = template(&helm, "windlass-system", &["bundles.enabled=false"]);
    let files = [
        "namespace.yaml",
        "custom-resource-definitions.yaml",
        "certificates.yaml",
        "user-facing-roles.yaml",
    ];
    assert_same(&objects, &manifests(&files));
}

#[test]
fn definitions_are_upgraded_and_kept() {
    let Some(helm) = helm() else { return };
    let output = run(
        &helm,
        &[
            "template",
            "any",
            "charts/windlass",
            KUBE_VERSION,
            "--set",
            "policies.enabled=true",
        ],
    );
    let mut definitions = yaml::documents(&output.stdout).unwrap();
    definitions.retain(|object| object["kind"] == "CustomResourceDefinition");
    assert!(definitions.len() > 5, "{}", definitions.len());
    for definition in definitions {
        let kept = &definition["metadata"]["annotations"]["helm.sh/resource-policy"];
        assert_eq!(kept, "keep", "{}", definition["metadata"]["name"]);
    }
}

#[test]
fn every_value_sets_its_field() {
    let Some(helm) = helm() else { return };
    // A namespace that YAML parses as a number if it is not quoted.
    let objects = template(
        &helm,
        "123",
        &[
            "image.repository=registry.example.com/w",
            "image.digest=sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
            "image.pullPolicy=Always",
            "imagePullSecrets[0].name=login",
            "replicas=3",
            "resources.limits.memory=1Gi",
            "nodeSelector.role=infra",
            "tolerations[0].key=infra",
            "affinity.nodeAffinity.a=b",
            "bundles.extraArgs={--bundle-dir,/bundles}",
            "bundles.volumes[0].name=bundles",
            "bundles.volumeMounts[0].name=bundles",
            "policies.enabled=true",
            "ui.enabled=true",
            "ui.volumes[0].name=more",
            "monitoring.enabled=true",
        ],
    );
    for (name, object) in &objects {
        assert!(!object.to_string().contains("windlass-system"), "{name}");
        assert!(!object.to_string().contains("windlass-slot"), "{name}");
        let namespace = &object["metadata"]["namespace"];
        assert!(namespace.is_null() || namespace == "123", "{name}: {namespace}");
    }
    for name in ["windlass", "windlass-certificates", "windlass-policies"] {
        let spec = &objects[&format!("\"Deployment\" \"{name}\"")]["spec"];
        let pod = &spec["template"]["spec"];
        let container = &pod["containers"][0];
        assert_eq!(spec["replicas"], 3);
        assert_eq!(
            container["image"],
            "registry.example.com/w@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
        );
        assert_eq!(container["imagePullPolicy"], "Always");
        assert_eq!(container["resources"]["limits"]["memory"], "1Gi");
        assert_eq!(pod["imagePullSecrets"], json!([{ "name": "login" }]));
        assert_eq!(pod["nodeSelector"], json!({ "role": "infra" }));
        assert_eq!(pod["tolerations"], json!([{ "key": "infra" }]));
        assert_eq!(pod["affinity"], json!({ "nodeAffinity": { "a": "b" } }));
        let arguments = container["args"].as_array().unwrap();
        let is_given = arguments.ends_with(&["--bundle-dir".into(), "/bundles".into()]);
        assert_eq!(is_given, name == "windlass", "{arguments:?}");
        assert_eq!(pod["volumes"].is_array(), name == "windlass");
        assert_eq!(container["volumeMounts"].is_array(), name == "windlass");
    }
}

#[test]
fn an_invalid_value_is_rejected_by_name() {
    let Some(helm) = helm() else { return };
    for (value, named) in [
        ("replicas=0", "replicas"),
        ("replicas=many", "replicas"),
        ("image.tags=v1", "tags"),
        ("image.digest=latest", "digest"),
        ("policies=true", "policies"),
        ("certificates.extraArgs=--a", "extraArgs"),
    ] {
        let output = run(
            &helm,
            &["template", "any", "charts/windlass", KUBE_VERSION, "--set", value],
        );
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "{value}");
        assert!(
            said.contains("values don't meet the specifications"),
            "{value}: {said}"
        );
        assert!(said.contains(named), "{value}: {said}");
    }
}

#[test]
fn lint_finds_nothing() {
    let Some(helm) = helm() else { return };
    let output = run(&helm, &["lint", "--strict", "charts/windlass"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(!said.contains("[WARNING]"), "{said}");
}
