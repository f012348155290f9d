//! The input files of documented commands.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;
use oci::PackedImage;
use serde_json::{Value, json};
use tempfile::TempDir;
use test_authority::TestAuthority;
use test_registry::TestRegistry;

use crate::{documentation, sample, test_cluster::copy};

/// A folder in which commands run.
pub(super) struct CommandFolder {
    folder: TempDir,
}

const CUSTOMIZATION: &str = "
apiVersion: config.karmada.io/v1alpha1
kind: ResourceInterpreterCustomization
metadata: {name: deployments}
spec:
  target: {apiVersion: apps/v1, kind: Deployment}
  customizations:
    healthInterpretation:
      luaScript: |
        function InterpretHealth(observedObj)
          return observedObj.status.readyReplicas == observedObj.spec.replicas
        end
";

const OBSERVED: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: a, namespace: n}
spec: {replicas: 2}
status: {readyReplicas: 2}
";

const POLICY: &str = "
apiVersion: policy.kcloudlabs.io/v1alpha1
kind: ClusterOverridePolicy
metadata: {name: mirror}
spec:
  resourceSelectors: [{apiVersion: v1, kind: Pod, namespace: n}]
  overrideRules:
  - overriders:
      plaintext:
      - {op: replace, path: /spec/containers/0/image, value: mirror.example.com/nginx}
";

const POD: &str = "
apiVersion: v1
kind: Pod
metadata: {name: a, namespace: n}
spec: {containers: [{name: c, image: nginx}]}
";

const REQUEST: &str = "
cluster: {apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {name: a, namespace: default}}
";

impl CommandFolder {
    /// Creates the folder with all files that the documentation mentions.
    pub(super) fn new(authority: &TestAuthority, registry: &TestRegistry) -> anyhow::Result<Self> {
        let desk = Self {
            folder: TempDir::with_prefix("windlass-documented-")?,
        };
        for (file, content) in [
            ("customization.yaml", CUSTOMIZATION),
            ("observed.yaml", OBSERVED),
            ("mirror.yaml", POLICY),
            ("pod.yaml", POD),
            ("policies/mirror.yaml", POLICY),
            ("policies/cases.yaml", &cases()?),
            ("request.yaml", REQUEST),
            (
                "answers/quota.BeforeClusterCreate.json",
                r#"{"status": "Success", "retryAfterSeconds": 5}"#,
            ),
            ("registry-ca.pem", &authority.pem()),
            ("catalog/catalog.json", &catalog(registry)?),
        ] {
            desk.write(file, content)?;
        }
        for (name, bundle) in [
            ("my-operator", "sample.v1"),
            ("argocd-operator.v0.10.1", "sample.v1"),
            ("later", "sample.v2"),
        ] {
            copy(&sample::bundle(bundle), &desk.path(name))?;
        }
        let customizations = "crates/interpreter/customizations";
        copy(
            &documentation::root().join(customizations).join("argoproj.io"),
            &desk.path(customizations).join("argoproj.io"),
        )?;
        fs::create_dir(desk.path("certs"))?;
        authority.server(&["127.0.0.1"]).write(&desk.path("certs"));
        Ok(desk)
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the path of a file.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, content: &str) -> anyhow::Result<()> {
        let path = self.path(name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&path, content).with_context(|| path.display().to_string())
    }
}

/// Returns the cases in docs/policy-command.md.
fn cases() -> anyhow::Result<String> {
    let blocks = documentation::code_blocks()?;
    let shown = blocks.into_iter().find(|block| {
        block.page.ends_with("policy-command.md") && block.language == "yaml" && block.text.contains("cases:")
    });
    Ok(shown.context("docs/policy-command.md shows no cases")?.text)
}

/// Writes a catalog with bundles of the sample as package `widgets`, and another package.
fn catalog(registry: &TestRegistry) -> anyhow::Result<String> {
    let package = |name: &str, description: &str| {
        json!({
            "schema": "olm.package", "name": name, "defaultChannel": "stable", "description": description,
        })
    };
    let bundle = |package: &str, name: &str, version: &str, image: &str| {
        json!({
            "schema": "olm.bundle", "package": package, "name": name, "image": image,
            "properties": [{"type": "olm.package", "value": {"packageName": package, "version": version}}],
        })
    };
    let channel = |package: &str, entries: Value| json!({"schema": "olm.channel", "package": package, "name": "stable", "entries": entries});
    let mut blobs = vec![
        package("widgets", "Widgets"),
        package("cert-manager", "Issues certificates"),
        channel("cert-manager", json!([{"name": "cert-manager.v1.0.0"}])),
        bundle(
            "cert-manager",
            "cert-manager.v1.0.0",
            "1.0.0",
            "quay.io/cert-manager/bundle:v1",
        ),
        channel(
            "widgets",
            json!([{"name": "sample.v1"}, {"name": "sample.v2", "replaces": "sample.v1"}]),
        ),
    ];
    for (name, version) in [("sample.v1", "1.0.0"), ("sample.v2", "2.0.0")] {
        let image = registry
            .image(name)
            .with_digest(registry.store(name, &widgets_bundle(name)?));
        blobs.push(bundle("widgets", name, version, &image.to_string()));
    }
    let blobs: Vec<_> = blobs.iter().map(ToString::to_string).collect();
    Ok(blobs.join("\n"))
}

/// Returns a bundle of the sample as part of the package `widgets`.
fn widgets_bundle(bundle: &str) -> anyhow::Result<PackedImage> {
    let mut files = windlass_bundle::sources::load(&sample::bundle(bundle))?;
    let annotations = files
        .get_mut("metadata/annotations.yaml")
        .context("the sample has no annotations")?;
    let text = String::from_utf8(std::mem::take(annotations))?;
    let (own, other) = ("bundle.package.v1: sample", "bundle.package.v1: widgets");
    anyhow::ensure!(text.contains(own), "{own} is not in the sample");
    *annotations = text.replace(own, other).into_bytes();
    Ok(PackedImage::new(&files, &BTreeMap::new())?)
}
