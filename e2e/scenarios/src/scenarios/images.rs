//! Bundles in images: pulled once, stored in the revision record, and upgraded when their tag moves.

use std::{collections::BTreeMap, fs};

use anyhow::Context;
use base64::{Engine, engine::general_purpose::STANDARD};
use oci::{ContentDigest, PackedImage, manifest::IMAGE_MANIFEST};
use serde_json::{Value, json};
use test_authority::TestAuthority;
use test_registry::{TestRegistry, response, with_header};

use super::{traffic, upgrade};
use crate::{
    command::argument,
    operator::{self, OperatorProcess},
    request::text,
    sample,
    steps::{BUNDLE_DEPLOYMENTS, PATIENCE, check, conditions, current, get, ready, succeed, until},
    test_cluster::TestCluster,
};

/// The file with the CA of the registry.
pub(super) const AUTHORITIES: &str = "registry-ca.pem";

const PULL_SECRET: &str = "pull";

const USER: &str = "puller";

const PASSWORD: &str = "kept out of every log";

pub(super) async fn a_recorded_bundle_image_needs_no_registry(cluster: &TestCluster) -> anyhow::Result<()> {
    let authority = TestAuthority::new("Registry CA");
    let registry = TestRegistry::start_with(&authority.server(&["127.0.0.1"])).await;
    let older = registry.store("stable", &packed("sample.v1")?);
    require_credentials(&registry);
    let operator = start_with_registry(cluster, &authority)?;
    let running = operator.start()?;
    let stable = registry.image("stable").to_string();
    let object = json!({
        "apiVersion": "windlass.dev/v1alpha1", "kind": "BundleDeployment", "metadata": {"name": "sample"},
        "spec": {"namespace": sample::NAMESPACE, "source": {"image": {"ref": stable, "pullSecret": PULL_SECRET}}},
    });
    succeed(&cluster.client, "POST", BUNDLE_DEPLOYMENTS, Some(&object)).await?;
    upgrade::wait_until_stopped(cluster, "PullSecretMissing", "windlass-system/pull not found").await?;
    add_pull_secret(cluster, &registry).await?;
    let installed = ready(&cluster.client, "sample", PATIENCE).await?;
    check_origin(cluster, &installed, "sample.v1", &registry, &older, 1).await?;

    let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
    load.at_least(50).await?;
    registry.fail(|_, _| Some(response(503, "")));
    running.kill().await?;
    let _running = operator.start()?;
    until(
        "the install continues without the registry",
        PATIENCE,
        async || {
            let object = deployment(cluster).await?;
            let words = conditions(&object);
            let says = words.contains("Accepted=True RegistryUnavailable")
                && words.contains("continuing from the record of revision 1")
                && current(&object, "Ready", "True").is_some();
            Ok(check(says, || words))
        },
    )
    .await?;
    check_origin(
        cluster,
        &deployment(cluster).await?,
        "sample.v1",
        &registry,
        &older,
        1,
    )
    .await?;

    let newer = registry.store("stable", &packed("sample.v2")?);
    require_credentials(&registry);
    until("the new bundle of the tag is installed", PATIENCE, async || {
        let object = deployment(cluster).await?;
        let is_there = text(&object, "/status/installed/name") == "sample.v2"
            && current(&object, "Ready", "True").is_some();
        Ok(check(is_there, || conditions(&object)))
    })
    .await?;
    traffic::finish(load).await?;
    check_origin(
        cluster,
        &deployment(cluster).await?,
        "sample.v2",
        &registry,
        &newer,
        2,
    )
    .await
}

pub(super) async fn an_image_that_cannot_be_pulled_keeps_the_installed_bundle(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let authority = TestAuthority::new("Registry CA");
    let registry = TestRegistry::start_with(&authority.server(&["127.0.0.1"])).await;
    let installed_digest = registry.store("v1", &packed("sample.v1")?);
    let newer = packed("sample.v2")?;
    let claimed = ContentDigest::compute(b"something else");
    registry.store("v2", &newer);
    registry.store_manifest(claimed.as_str(), IMAGE_MANIFEST, newer.manifest().clone());
    let _running = start_with_registry(cluster, &authority)?.start()?;
    let image = registry.image("v1");
    let mut object = json!({
        "apiVersion": "windlass.dev/v1alpha1", "kind": "BundleDeployment", "metadata": {"name": "sample"},
        "spec": {"namespace": sample::NAMESPACE},
    });
    object["spec"]["source"] =
        json!({"image": {"ref": image.with_digest(installed_digest.clone()).to_string()}});
    succeed(&cluster.client, "POST", BUNDLE_DEPLOYMENTS, Some(&object)).await?;
    ready(&cluster.client, "sample", PATIENCE).await?;
    let serving = upgrade::serving_state(cluster).await?;
    let cases = [
        (registry.image("missing").to_string(), "ImageNotFound"),
        (image.with_digest(claimed).to_string(), "ImageDigestMismatch"),
        ("registry:port/app".to_owned(), "SourceInvalid"),
    ];
    for (reference, reason) in cases {
        let source = json!({"spec": {"source": {"image": {"ref": reference}}}});
        succeed(&cluster.client, "PATCH", sample::BUNDLE_DEPLOYMENT, Some(&source)).await?;
        let words = if reason == "SourceInvalid" {
            "spec.source.image.ref"
        } else {
            "correct"
        };
        let object = upgrade::wait_until_stopped(cluster, reason, words).await?;
        anyhow::ensure!(
            text(&object, "/status/installed/name") == "sample.v1"
                && object["status"]["installed"]["healthy"] == true
                && upgrade::serving_state(cluster).await? == serving,
            "{reason}: the installed bundle was changed: {}",
            object["status"]
        );
    }
    let source = json!({"spec": {"source": {"image": {"ref": registry.image("v2").to_string()}}}});
    succeed(&cluster.client, "PATCH", sample::BUNDLE_DEPLOYMENT, Some(&source)).await?;
    ready(&cluster.client, "sample", PATIENCE).await?;
    Ok(())
}

pub(super) async fn the_command_installs_from_an_image_and_from_a_folder(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let authority = TestAuthority::new("Registry CA");
    let registry = TestRegistry::start_with(&authority.server(&["127.0.0.1"])).await;
    let digest = registry.store("v1", &packed("sample.v1")?);
    let operator = start_with_registry(cluster, &authority)?;
    let authorities = cluster.operator.bundle_dir.join(AUTHORITIES);
    let (image, missing) = (registry.image("v1"), registry.image("missing").to_string());
    let reference = image.to_string();
    let preview = [
        "install",
        &reference,
        "--namespace",
        sample::NAMESPACE,
        "--dry-run",
        "--registry-ca",
    ];
    let preview = [&preview[..], &[argument(&authorities)?]].concat();
    let said = cluster.command.succeed(&preview).await?;
    anyhow::ensure!(said.contains("CustomResourceDefinition"), "{said}");
    anyhow::ensure!(
        get(&cluster.client, sample::BUNDLE_DEPLOYMENT).await?.is_none(),
        "the dry run has created the BundleDeployment"
    );

    let _running = operator.start()?;
    let install = async |bundle: &str| {
        let arguments = [
            "install",
            bundle,
            "--namespace",
            sample::NAMESPACE,
            "--name",
            "sample",
        ];
        cluster.command.run(&arguments, |_| {}).await
    };
    let refused = install(&missing).await?;
    anyhow::ensure!(
        !refused.succeeded
            && refused
                .stderr
                .contains("the install was refused: Accepted: cannot pull")
            && refused.stderr.contains("(ImageNotFound)"),
        "{}",
        refused.stderr
    );
    let installed = install(&reference).await?;
    anyhow::ensure!(
        installed
            .stdout
            .starts_with("sample.v1 is installed in sample-system;"),
        "{}{}",
        installed.stdout,
        installed.stderr
    );
    let object = deployment(cluster).await?;
    anyhow::ensure!(
        text(&object, "/status/installed/image") == image.with_digest(digest).to_string(),
        "{}",
        object["status"]
    );

    let upgraded = install(argument(&sample::bundle("sample.v2"))?).await?;
    anyhow::ensure!(
        upgraded
            .stdout
            .starts_with("sample.v2 is installed in sample-system;"),
        "{}{}",
        upgraded.stdout,
        upgraded.stderr
    );
    let source = &deployment(cluster).await?["spec"]["source"];
    anyhow::ensure!(
        source["configMaps"].is_array() && source.get("image").is_none(),
        "{source}"
    );
    Ok(())
}

/// Starts an operator that trusts the registry and checks tags frequently.
pub(super) fn start_with_registry(
    cluster: &TestCluster,
    authority: &TestAuthority,
) -> anyhow::Result<OperatorProcess> {
    let file = cluster.operator.bundle_dir.join(AUTHORITIES);
    fs::write(&file, authority.pem())?;
    let mut operator = cluster.operator.clone();
    operator.arguments.extend([
        format!("--registry-ca={}", file.display()),
        "--image-interval=1s".to_owned(),
    ]);
    operator
        .environment
        .push(("NO_PROXY".to_owned(), "127.0.0.1".to_owned()));
    Ok(operator)
}

/// A sample bundle as an image.
pub(super) fn packed(bundle: &str) -> anyhow::Result<PackedImage> {
    let files = windlass_bundle::sources::load(&sample::bundle(bundle))?;
    Ok(PackedImage::new(&files, &BTreeMap::new())?)
}

fn authorization() -> String {
    format!("Basic {}", STANDARD.encode(format!("{USER}:{PASSWORD}")))
}

/// Makes the registry reject requests without credentials.
fn require_credentials(registry: &TestRegistry) {
    registry.fail(|head, _| {
        let shown = head.headers.get("authorization");
        if shown.is_some_and(|shown| shown.as_bytes() == authorization().as_bytes()) {
            return None;
        }
        let refused = response(401, r#"{"errors":[{"code":"UNAUTHORIZED"}]}"#);
        Some(with_header(refused, "www-authenticate", r#"Basic realm="test""#))
    });
}

async fn add_pull_secret(cluster: &TestCluster, registry: &TestRegistry) -> anyhow::Result<()> {
    let auths = json!({"auths": {registry.host(): {"username": USER, "password": PASSWORD}}}).to_string();
    let secret = json!({
        "metadata": {"name": PULL_SECRET}, "type": "kubernetes.io/dockerconfigjson",
        "data": {".dockerconfigjson": STANDARD.encode(auths)},
    });
    let path = format!("/api/v1/namespaces/{}/secrets", operator::NAMESPACE);
    succeed(&cluster.client, "POST", &path, Some(&secret)).await?;
    Ok(())
}

async fn deployment(cluster: &TestCluster) -> anyhow::Result<Value> {
    let object = get(&cluster.client, sample::BUNDLE_DEPLOYMENT).await?;
    object.context("no BundleDeployment")
}

/// Checks that the status and the record contain the digest of the installed image.
async fn check_origin(
    cluster: &TestCluster,
    object: &Value,
    bundle: &str,
    registry: &TestRegistry,
    digest: &ContentDigest,
    revision: i64,
) -> anyhow::Result<()> {
    let image = registry.image("stable").with_digest(digest.clone()).to_string();
    let installed = &object["status"]["installed"];
    anyhow::ensure!(
        installed["name"] == bundle && installed["image"] == image && installed["revision"] == revision,
        "expected {bundle} of {image}: {}",
        object["status"]
    );
    let path = format!(
        "/api/v1/namespaces/{}/configmaps/sample-revision-{revision}",
        operator::NAMESPACE
    );
    let record = get(&cluster.client, &path).await?.context("no record")?;
    let recorded: Value = serde_json::from_str(text(&record, "/data/revision.json"))?;
    anyhow::ensure!(recorded["image"] == image, "{recorded}");
    Ok(())
}
