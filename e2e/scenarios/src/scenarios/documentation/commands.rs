//! The commands in the documentation, run as they are documented.

use anyhow::Context;
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::json;
use test_authority::TestAuthority;
use test_registry::TestRegistry;
use tokio::sync::oneshot;

use super::{
    super::{discovery, images},
    files::CommandFolder,
    table::{DocumentedCommand, RUN, SERVER, missing_rows},
};
use crate::{
    command::Command, documentation::words, operator, sample, steps::succeed, test_cluster::TestCluster,
};

const EXTENSION_CONFIGS: &str = "/apis/runtime.cluster.x-k8s.io/v1beta2/extensionconfigs";

/// The output of `hooks serve` before its address.
const SERVING: &str = "Serving 1 handlers on ";

pub(in super::super) async fn every_documented_command_runs(cluster: &TestCluster) -> anyhow::Result<()> {
    let missing_rows = missing_rows()?;
    anyhow::ensure!(missing_rows.is_empty(), "{}", missing_rows.join("\n"));
    let authority = TestAuthority::new("Registry CA");
    let registry = TestRegistry::start_with(&authority.server(&["127.0.0.1"])).await;
    let desk = CommandFolder::new(&authority, &registry)?;
    let command = Command {
        program: std::path::absolute(&cluster.command.program)?,
        folder: desk.folder().to_owned(),
        ..cluster.command.clone()
    };
    let _operator = images::start_with_registry(cluster, &authority)?.start()?;
    discovery::define(cluster).await?;
    add_pull_secret(cluster, &registry).await?;

    let (address, heard) = oneshot::channel();
    let mut address = Some(address);
    let arguments = arguments(&SERVER, &registry);
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let serving = command.run(&arguments, |line| {
        if let (Some(said), Some(address)) = (line.strip_prefix(SERVING), address.take()) {
            let _ = address.send(said.to_owned());
        }
    });
    let typing = async {
        let address = heard.await.context("the server of hooks has terminated")?;
        register(cluster, &authority, &address).await?;
        run_all(&command, &registry).await
    };
    tokio::select! {
        ended = serving => anyhow::bail!("{}: {:?}", SERVER.line, ended?),
        typed = typing => typed?,
    }
    for written in [
        "windlass.html",
        "man/windlass.1",
        "copy/metadata/annotations.yaml",
    ] {
        anyhow::ensure!(desk.path(written).exists(), "{written} was not written");
    }
    Ok(())
}

async fn run_all(command: &Command, registry: &TestRegistry) -> anyhow::Result<()> {
    for typed in &RUN {
        let arguments = arguments(typed, registry);
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let output = command.run(&arguments, |_| {}).await?;
        tracing::info!(
            command = typed.line,
            succeeded = output.succeeded,
            "Ran a command"
        );
        anyhow::ensure!(
            output.succeeded,
            "{} failed:\n{}{}",
            typed.line,
            output.stdout,
            output.stderr
        );
    }
    Ok(())
}

/// Returns the arguments after `windlass`, with the names in this cluster in place of those in the
/// documentation.
fn arguments(typed: &DocumentedCommand, registry: &TestRegistry) -> Vec<String> {
    let image = registry.image("v1").to_string();
    let line = [
        ("registry.example.com/team/my-operator-bundle:v1", &*image),
        ("quay.io/operatorhubio/catalog:latest", "./catalog"),
        ("my-operator-service", sample::CERTIFICATE),
        ("/usr/local/share/man/man1", "man"),
    ]
    .iter()
    .fold(typed.line.to_owned(), |line, (shown, here)| {
        line.replace(shown, here)
    });
    let extra_arguments = typed.extra_arguments.iter().map(|word| (*word).to_owned());
    words(&line).into_iter().skip(1).chain(extra_arguments).collect()
}

async fn add_pull_secret(cluster: &TestCluster, registry: &TestRegistry) -> anyhow::Result<()> {
    let auths = json!({"auths": {registry.host(): {"username": "puller", "password": "secret"}}}).to_string();
    let secret = json!({
        "metadata": {"name": "registry-example"}, "type": "kubernetes.io/dockerconfigjson",
        "data": {".dockerconfigjson": STANDARD.encode(auths)},
    });
    let path = format!("/api/v1/namespaces/{}/secrets", operator::NAMESPACE);
    succeed(&cluster.client, "POST", &path, Some(&secret)).await?;
    Ok(())
}

/// Registers the server of hooks, and waits until it is discovered.
async fn register(cluster: &TestCluster, authority: &TestAuthority, address: &str) -> anyhow::Result<()> {
    let config = json!({
        "apiVersion": "runtime.cluster.x-k8s.io/v1beta2", "kind": "ExtensionConfig", "metadata": {"name": "quota"},
        "spec": {"clientConfig": {"url": format!("https://{address}"), "caBundle": STANDARD.encode(authority.pem())}},
    });
    succeed(&cluster.client, "POST", EXTENSION_CONFIGS, Some(&config)).await?;
    discovery::wait_for_discovery(cluster, "quota", None, 1).await
}
