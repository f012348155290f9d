//! The engines of Argo CD and Flux apply objects of Windlass, and objects into which Windlass injects trust
//! bundles.

use std::{collections::HashSet, fs, path::PathBuf};

use anyhow::Context;
use serde_json::{Value, json};
use windlass_object::names;

use super::super::traffic;
use crate::{
    command::argument,
    gitops::Gitops,
    request::text,
    sample::{self, BUNDLE_DEPLOYMENT},
    steps::{self, CRDS, PATIENCE, VALIDATING, check, get, until},
    test_cluster::TestCluster,
};

/// The namespace of objects that are not part of a bundle.
const NAMESPACE: &str = "platform";

/// The annotated Service, whose ServingCertificate has its name.
const ANNOTATED: &str = "annotated";

/// A ServingCertificate in the file, and its Service.
const CERTIFICATE: &str = "hook";

/// How many passes must leave everything unchanged.
const PASSES: usize = 5;

/// An engine, with the settings that change how it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Engine {
    /// Argo CD with client-side apply.
    ArgoCd,
    /// Argo CD with `ServerSideApply=true`.
    ArgoCdServerSide,
    /// Flux' kustomize-controller.
    Flux,
}

impl Engine {
    fn command(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::ArgoCd => ("argo", &["--interval", "2s"]),
            Self::ArgoCdServerSide => ("argo", &["--interval", "2s", "--server-side"]),
            Self::Flux => ("flux", &["--interval", "2s"]),
        }
    }
}

/// An engine and Windlass write the same objects during an install, rotations and an upgrade. Neither reverts
/// the other.
pub(in super::super) async fn reverts_nothing(cluster: &TestCluster, engine: Engine) -> anyhow::Result<()> {
    let client = &cluster.client;
    for bundle in ["sample.v1", "sample.v2"] {
        cluster.bundle(bundle)?;
    }
    let _operator = cluster.operator.start()?;
    let file = write_file(cluster, "sample.v1")?;
    let (command, flags) = engine.command();
    let gitops = Gitops::start(cluster, command, flags, &[argument(&file)?])?;
    wait_for_bundle(cluster, "sample.v1").await?;
    let definition = format!("{CRDS}/things.{NAMESPACE}.example.com");
    steps::has_trust_bundle(client, &format!("{VALIDATING}/{NAMESPACE}")).await?;
    until(
        "the CustomResourceDefinition has a trust bundle",
        PATIENCE,
        async || {
            let bundle = get(client, &definition).await?.unwrap_or_default();
            let bundle = text(&bundle, "/spec/conversion/webhook/clientConfig/caBundle").to_owned();
            Ok(check(!bundle.is_empty(), || "none".to_owned()))
        },
    )
    .await?;
    gitops.wait_for_passes(PASSES).await?;

    let load = traffic::start_with_newest(cluster).await?;
    load.at_least(50).await?;
    // Twice, so that no CA of the install is left in the trust bundle.
    for _ in 0..2 {
        sample::rotate(cluster, "ca").await?;
    }
    gitops.wait_for_passes(1).await?;
    write_file(cluster, "sample.v2")?;
    wait_for_bundle(cluster, "sample.v2").await?;
    gitops.wait_for_passes(PASSES).await?;
    load.at_least(50).await?;
    let report = traffic::finish(load).await?;

    let lines = gitops.stop().await?;
    let summary = lines.last().context("no output")?;
    tracing::info!(
        ?engine,
        %summary,
        requests = report.requests,
        failed = report.failed,
        "Reconciled"
    );
    check_lines(&lines)
}

/// Fails if the engine has reverted a field, reported an error, created an object twice, or seen drift of another
/// object than the edited BundleDeployment.
fn check_lines(lines: &[Value]) -> anyhow::Result<()> {
    let summary = lines.last().context("no output")?;
    let of_event = |event: &'static str| lines.iter().filter(move |line| line["event"] == event);
    let errors: Vec<_> = of_event("error").map(ToString::to_string).collect();
    anyhow::ensure!(
        summary["event"] == "summary" && summary["fights"] == 0 && summary["errors"] == 0,
        "{summary}; {}",
        errors.join("\n")
    );
    // Without fields, only the status differs: Windlass wrote it between two reads of the engine.
    let has_fields = |line: &&Value| line["fields"].as_array().is_some_and(|fields| !fields.is_empty());
    let drifts: Vec<_> = of_event("drift").filter(has_fields).collect();
    let is_edited = |line: &&Value| line["kind"] == "BundleDeployment";
    anyhow::ensure!(
        drifts.len() == 1 && drifts.iter().all(is_edited),
        "expected drift only of the edited BundleDeployment: {drifts:?}"
    );
    let id =
        |line: &Value| ["kind", "namespace", "name"].map(|field| text(line, &format!("/{field}")).to_owned());
    let mut created = HashSet::new();
    for line in of_event("applied").filter(|line| line["before"] == "") {
        anyhow::ensure!(created.insert(id(line)), "it was created twice: {line}");
    }
    Ok(())
}

/// Waits until a bundle of the sample is installed and ready.
async fn wait_for_bundle(cluster: &TestCluster, bundle: &str) -> anyhow::Result<()> {
    until(&format!("{bundle} is ready"), PATIENCE, async || {
        let Some(deployment) = get(&cluster.client, BUNDLE_DEPLOYMENT).await? else {
            return Ok(Err("not found".to_owned()));
        };
        let is_wanted = text(&deployment, "/spec/source/directory/path") == bundle;
        let is_ready = steps::current(&deployment, "Ready", "True").is_some();
        Ok(check(is_wanted && is_ready, || steps::conditions(&deployment)))
    })
    .await
}

/// Writes the file that the engine applies. An engine that reads it at the same time sees the old or the new
/// one.
fn write_file(cluster: &TestCluster, bundle: &str) -> anyhow::Result<PathBuf> {
    let documents: String = objects(bundle)
        .iter()
        .map(|object| format!("---\n{object}\n"))
        .collect();
    let written = cluster.write("objects.yaml.new", &documents)?;
    let file = cluster.path("objects.yaml");
    fs::rename(written, &file)?;
    Ok(file)
}

fn objects(bundle: &str) -> Vec<Value> {
    let service = |name: &str, annotations: Value| {
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"namespace": NAMESPACE, "name": name, "annotations": annotations},
            "spec": {"selector": {"app": name}, "ports": [{"name": "https", "port": 443}]},
        })
    };
    let requests = |namespace: &str, certificate: &str| json!({names::INJECT_CA_FROM: format!("{namespace}/{certificate}")});
    let called = |namespace: &str, service: &str, path: &str| json!({"service": {"namespace": namespace, "name": service, "path": path}});
    let group = format!("{NAMESPACE}.example.com");
    vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
        service(
            ANNOTATED,
            json!({names::SERVING_CERT_SECRET: format!("{ANNOTATED}-cert")}),
        ),
        service(CERTIFICATE, json!({})),
        json!({
            "apiVersion": "windlass.dev/v1alpha1", "kind": "ServingCertificate",
            "metadata": {"namespace": NAMESPACE, "name": CERTIFICATE},
            "spec": {"serviceName": CERTIFICATE, "secretName": "hook-cert"},
        }),
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": NAMESPACE, "annotations": requests(sample::NAMESPACE, sample::CERTIFICATE)},
            "webhooks": [{
                "name": "platform.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
                "clientConfig": called(sample::NAMESPACE, sample::CERTIFICATE, "/validate"),
                "rules": [{
                    "apiGroups": [sample::GROUP], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"],
                    "resources": ["widgets"],
                }],
            }],
        }),
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("things.{group}"), "annotations": requests(NAMESPACE, ANNOTATED)},
            "spec": {
                "group": group, "scope": "Namespaced",
                "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                }],
                "conversion": {"strategy": "Webhook", "webhook": {
                    "clientConfig": called(NAMESPACE, ANNOTATED, "/convert"), "conversionReviewVersions": ["v1"],
                }},
            },
        }),
        steps::bundle_deployment("sample", sample::NAMESPACE, bundle),
    ]
}
