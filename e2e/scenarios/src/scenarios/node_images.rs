//! Images of bundles that the kubelet pulls by digest, from a registry that requires a password.

use std::{collections::BTreeMap, path::PathBuf};

use anyhow::Context;
use base64::{Engine, engine::general_purpose::STANDARD};
use oci::RegistryCredentials;
use serde_json::{Value, json};
use windlass_node::Program;

use super::{traffic, upgrade};
use crate::{
    program_images, programs,
    sample::{self, NAMESPACE},
    steps::{PATIENCE, ready, succeed},
    test_cluster::TestCluster,
};

/// The variable with the registry's address. Its user is `puller`, with the password `secret`.
const REGISTRY: &str = "E2E_PRIVATE_REGISTRY";

/// The host in the names of its images.
const HOST: &str = "private.example.com";

/// The name of the pull secret in the bundles.
const PULL_SECRET: &str = "puller";

pub(super) async fn images_are_pulled_by_digest_with_a_pull_secret(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let image = push_image().await?;
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
    load.at_least(50).await?;

    let secrets = format!("/api/v1/namespaces/{NAMESPACE}/secrets");
    succeed(&cluster.client, "POST", &secrets, Some(&pull_secret("wrong"))).await?;
    add_release(cluster, "private", &image)?;
    sample::set_source(cluster, "private").await?;
    upgrade::wait_until_stopped(cluster, "CanaryWaiting", "ImagePull").await?;
    load.at_least(50).await?;
    let secret = format!("{secrets}/{PULL_SECRET}");
    succeed(&cluster.client, "PATCH", &secret, Some(&pull_secret("secret"))).await?;
    ready(&cluster.client, "sample", PATIENCE).await?;
    load.at_least(50).await?;

    let (name, digest) = image.split_once("@sha256:").context("no digest")?;
    let unknown = format!("{name}@sha256:{}", digest.chars().rev().collect::<String>());
    add_release(cluster, "unknown", &unknown)?;
    sample::set_source(cluster, "unknown").await?;
    upgrade::wait_until_stopped(cluster, "CanaryWaiting", "ImagePull").await?;
    load.at_least(50).await?;
    sample::set_source(cluster, "private").await?;
    ready(&cluster.client, "sample", PATIENCE).await?;
    load.at_least(50).await?;
    traffic::finish(load).await.map(drop)
}

/// Pushes the sample operator to the private registry, and returns the image with its digest.
async fn push_image() -> anyhow::Result<String> {
    let registry = std::env::var(REGISTRY).with_context(|| format!("{REGISTRY} is not set"))?;
    let mut credentials = RegistryCredentials::default();
    credentials.add("the test", login(&registry, "secret").to_string().as_bytes())?;
    let program = Program {
        path: std::env::current_exe()?,
        arguments: [programs::SAMPLE_OPERATOR, "--versions", "v1beta1,v1"]
            .map(str::to_owned)
            .into(),
    };
    let images = BTreeMap::from([(format!("{HOST}/sample-operator:v1"), program)]);
    let pushed = program_images::push_with(&registry, &credentials, &images).await?;
    let image = pushed.first().context("no image was pushed")?;
    let digest = image.digest.as_ref().context("the image has no digest")?;
    Ok(format!("{HOST}/{}@{digest}", image.repository))
}

/// The content of a Docker configuration with the password of the registry's user.
fn login(registry: &str, password: &str) -> Value {
    json!({"auths": {registry: {"auth": STANDARD.encode(format!("puller:{password}"))}}})
}

fn pull_secret(password: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson",
        "metadata": {"name": PULL_SECRET},
        "data": {".dockerconfigjson": STANDARD.encode(login(HOST, password).to_string())},
    })
}

/// Adds the bundle `sample.v1` with another image and a pull secret.
fn add_release(cluster: &TestCluster, name: &str, image: &str) -> anyhow::Result<PathBuf> {
    let folder = cluster.add_bundle(&sample::bundle("sample.v1"), name)?;
    for (from, to) in [
        (
            format!("image: {}:v1\n", sample::IMAGE),
            format!("image: {image}\n"),
        ),
        (
            "              serviceAccountName: sample-operator\n".to_owned(),
            format!(
                "              serviceAccountName: sample-operator\n              imagePullSecrets: [{{name: {PULL_SECRET}}}]\n"
            ),
        ),
    ] {
        cluster.edit(&folder, &from, &to)?;
    }
    Ok(folder)
}
