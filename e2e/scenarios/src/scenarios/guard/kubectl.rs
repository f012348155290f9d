//! The guard's denials as kubectl prints them.

use std::{path::PathBuf, process::Stdio};

use anyhow::Context;
use serde_json::{Value, json};
use tokio::process::Command;

use super::{
    install_sample,
    replicas::{self, Replica},
    writes::{CONVERSION, DELETION, DENIED, OWNER, OWNER_LABEL},
};
use crate::{
    sample::{self, NAMESPACE},
    steps::delete,
    test_cluster::TestCluster,
};

/// The kubectl binary.
const KUBECTL: &str = "kubectl";

/// The editor of `kubectl edit`.
const EDITOR: &str = "sed -i s,/convert,/elsewhere,";

/// kubectl with the kubeconfig of the cluster's admin.
struct Kubectl {
    kubeconfig: PathBuf,
    cache: PathBuf,
}

pub(crate) async fn kubectl_prints_the_denials_of_the_guard(cluster: &TestCluster) -> anyhow::Result<()> {
    let kubectl = Kubectl {
        kubeconfig: cluster.command.kubeconfig.clone(),
        cache: cluster.write("kubectl", "")?.with_extension("cache"),
    };
    if !kubectl.is_installed().await {
        tracing::warn!("kubectl is not installed: skipping the scenario");
        return Ok(());
    }
    replicas::install_guard(cluster).await?;
    let replica = Replica::start(cluster, "one").await?;
    install_sample(cluster).await?;
    replica.join(cluster).await?;

    let live = sample::crd(cluster).await?;
    let file = |name: &str, object: &Value| -> anyhow::Result<String> {
        Ok(cluster.write(name, &object.to_string())?.display().to_string())
    };
    let plain = file("plain.json", &author_manifest(&live, |_| {}))?;
    let elsewhere = file(
        "elsewhere.json",
        &author_manifest(&live, |object| {
            object["spec"]["conversion"] = live["spec"]["conversion"].clone();
            object["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["path"] = json!("/elsewhere");
        }),
    )?;
    let merge = r#"{"spec":{"conversion":{"strategy":"None","webhook":null}}}"#;
    let replace = r#"[{"op":"replace","path":"/spec/conversion/webhook/clientConfig/service/path","value":"/elsewhere"}]"#;
    let crd = ["crd", sample::WIDGETS];
    let refused: &[(&[&str], &[&str])] = &[
        (&["apply", "-f", &elsewhere], &[CONVERSION]),
        (
            &["apply", "--server-side", "--force-conflicts", "-f", &elsewhere],
            &[CONVERSION],
        ),
        (&["replace", "-f", &plain], &[CONVERSION, OWNER_LABEL]),
        (&["replace", "--force", "-f", &plain], &[DELETION]),
        (
            &["patch", crd[0], crd[1], "--type=merge", "-p", merge],
            &[CONVERSION],
        ),
        (
            &["patch", crd[0], crd[1], "--type=json", "-p", replace],
            &[CONVERSION],
        ),
        (&["edit", crd[0], crd[1]], &[CONVERSION]),
        (
            &["label", crd[0], crd[1], "windlass.dev/bundle-deployment-"],
            &[OWNER_LABEL],
        ),
        (
            &[
                "label",
                "--overwrite",
                crd[0],
                crd[1],
                "windlass.dev/bundle-deployment=other",
            ],
            &[OWNER_LABEL],
        ),
        (&["delete", crd[0], crd[1]], &[DELETION]),
        (&["delete", "-f", &plain], &[DELETION]),
        (
            &["delete", "crd", "-l", "windlass.dev/bundle-deployment"],
            &[DELETION],
        ),
    ];
    for (arguments, expected) in refused {
        let (succeeded, said) = kubectl.run(arguments).await?;
        anyhow::ensure!(!succeeded, "kubectl {arguments:?} succeeded: {said}");
        for part in expected.iter().chain([&DENIED]) {
            anyhow::ensure!(
                said.contains(part),
                "kubectl {arguments:?} does not print {part:?}: {said}"
            );
        }
        let now = sample::crd(cluster).await?;
        anyhow::ensure!(
            now["spec"] == live["spec"] && now["metadata"]["uid"] == live["metadata"]["uid"],
            "kubectl {arguments:?} has changed the CRD"
        );
    }
    let passes: &[&[&str]] = &[
        &["annotate", crd[0], crd[1], "example.com/by=kubectl"],
        &["label", crd[0], crd[1], "example.com/by=kubectl"],
        &["apply", "-f", &plain],
        &["apply", "--server-side", "--force-conflicts", "-f", &plain],
    ];
    for arguments in passes {
        let (succeeded, said) = kubectl.run(arguments).await?;
        anyhow::ensure!(succeeded, "kubectl {arguments:?}: {said}");
    }
    delete(&cluster.client, sample::BUNDLE_DEPLOYMENT).await?;
    let (succeeded, said) = kubectl.run(&["delete", crd[0], crd[1]]).await?;
    anyhow::ensure!(
        succeeded,
        "the CRD cannot be deleted without {OWNER} in {NAMESPACE}: {said}"
    );
    Ok(())
}

impl Kubectl {
    async fn is_installed(&self) -> bool {
        let version = Command::new(KUBECTL)
            .args(["version", "--client"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        version.await.is_ok_and(|status| status.success())
    }

    /// Runs a command, and returns whether it succeeded, and its output.
    async fn run(&self, arguments: &[&str]) -> anyhow::Result<(bool, String)> {
        let output = Command::new(KUBECTL)
            .args(arguments)
            .arg("--cache-dir")
            .arg(&self.cache)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("KUBE_EDITOR", EDITOR)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .with_context(|| format!("running kubectl {arguments:?}"))?;
        let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        Ok((output.status.success(), said.concat()))
    }
}

/// The CRD as in its author's manifest, without the fields of the API server and Windlass, after `edit`.
fn author_manifest(live: &Value, edit: impl FnOnce(&mut Value)) -> Value {
    let mut object = json!({
        "apiVersion": live["apiVersion"], "kind": live["kind"],
        "metadata": {"name": sample::WIDGETS}, "spec": live["spec"],
    });
    if let Some(spec) = object["spec"].as_object_mut() {
        spec.remove("conversion");
    }
    edit(&mut object);
    object
}
