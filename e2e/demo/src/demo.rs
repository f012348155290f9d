//! The steps of the demo.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, bail};
use futures::future::LocalBoxFuture;
use serde_json::json;
use windlass_bundle::Bundle;
use windlass_node::Program;
use windlass_scenarios::{
    cluster::BackingCluster,
    command::argument,
    load::{Clients, Load, Report},
    progress::StepPrinter,
    request::text,
    resource::Resource,
    sample,
    steps::{BUNDLE_DEPLOYMENTS, check, get, list, serving_certificates, succeed, until},
    test_cluster::{TestCluster, TestClusterOptions},
};

use crate::{
    arguments::{Arguments, DemoFault},
    traffic,
};

/// The namespace of the objects that requests create.
const TRAFFIC: &str = "demo";

/// Maximum time for the pods to terminate.
const PATIENCE: Duration = Duration::from_secs(120);

/// Concurrent workers that send requests.
const WORKERS: usize = 6;

/// Pause of each worker between two requests.
const PAUSE: Duration = Duration::from_millis(15);

/// Requests between two steps, so that each step happens under load.
const BETWEEN: u64 = 100;

struct Demo {
    cluster: TestCluster,
    progress: StepPrinter,
    name: String,
    namespace: String,
    total: Report,
}

/// Runs the demo; `program` is the executable that starts the operator and the sample operator.
///
/// # Errors
///
/// When a step fails. Failed requests are in the report.
pub fn run(arguments: Arguments, program: PathBuf) -> LocalBoxFuture<'static, anyhow::Result<Report>> {
    // Boxed: the body is compiled here once, not again in every program that runs it.
    Box::pin(async move {
        let bundles = match arguments.bundles.as_slice() {
            [] => vec![sample::bundle("sample.v1"), sample::bundle("sample.v2")],
            given => given.to_vec(),
        };
        let progress = StepPrinter::start();
        println!(
            "This demo installs an operator bundle, rotates its certificates, upgrades and removes it, while clients\n\
             send API requests through its webhooks. It fails if any of these requests fails.\n"
        );
        progress.say(&arguments.cluster_description());
        let parsed = progress.step("Reading the bundles", read(&bundles)).await?;
        let first = parsed.first().context("no bundle given")?;
        let options = options(&arguments, program);
        let cluster = async {
            let backing = match &arguments.access.kubeconfig {
                Some(kubeconfig) => BackingCluster::named(kubeconfig, arguments.access.pods()).await?,
                None => BackingCluster::sandbox().await?,
            };
            TestCluster::on(backing, options).await
        };
        let title = match &arguments.access.kubeconfig {
            Some(_) => "Preparing the cluster: a node, CustomResourceDefinitions, the operator's rights",
            None => "Starting a cluster: API server, controllers, a node",
        };
        let cluster = progress.step(title, cluster).await?;
        let running = cluster.operator.start()?;
        progress.say("Started the operator of Windlass");
        let name = first.package.clone();
        let namespace = format!("{name}-system");
        let mut demo = Demo {
            cluster,
            progress,
            name,
            namespace,
            total: Report::default(),
        };
        let outcome = demo.run_steps(&bundles, &parsed, &arguments).await;
        if let Err(error) = &outcome {
            eprintln!(
                "{error:?}\n\nLast lines of the operator's log:\n{}\n\nLast output of the containers:\n{}\n{}",
                demo.cluster.log_tail(),
                demo.cluster.last_words(),
                arguments.hint().trim_start_matches(". "),
            );
        }
        let stopped = running.stop().await;
        let ended = demo.cluster.stop().await;
        outcome?;
        stopped?;
        ended?;
        Ok(demo.total)
    })
}

/// Returns the settings of the test cluster.
fn options(arguments: &Arguments, program: PathBuf) -> TestClusterOptions {
    let image = |(image, path): &(String, PathBuf)| {
        let program = Program {
            path: path.clone(),
            arguments: Vec::new(),
        };
        (image.clone(), program)
    };
    TestClusterOptions {
        refresh_delay: Duration::ZERO..=Duration::from_secs_f64(arguments.secret_delay.max(0.0)),
        images: arguments.run.iter().map(image).collect(),
        ..TestClusterOptions::new(program)
    }
}

/// Reads and checks every bundle.
async fn read(folders: &[PathBuf]) -> anyhow::Result<Vec<Bundle>> {
    let mut bundles = Vec::new();
    for folder in folders {
        let files = windlass_bundle::sources::directory::load(folder)?;
        let bundle =
            windlass_bundle::check::parse(&files).map_err(|problems| invalid_bundle(folder, &problems))?;
        bundles.push(bundle);
    }
    Ok(bundles)
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn invalid_bundle(folder: &Path, problems: &[windlass_object::Problem]) -> anyhow::Error {
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    anyhow::anyhow!(
        "{} is not a valid bundle:\n  {}",
        folder.display(),
        lines.join("\n  ")
    )
}

impl Demo {
    async fn run_steps(
        &mut self,
        folders: &[PathBuf],
        bundles: &[Bundle],
        arguments: &Arguments,
    ) -> anyhow::Result<()> {
        let client = self.cluster.client.clone();
        succeed(
            &client,
            "POST",
            "/api/v1/namespaces",
            Some(&json!({"metadata": {"name": TRAFFIC}})),
        )
        .await?;
        for (index, (folder, bundle)) in folders.iter().zip(bundles).enumerate() {
            let resources = traffic::resources(bundle);
            if index == 0 {
                self.progress.heading(
                    "Install the bundle. The API server calls a webhook only after Windlass has verified the certificate of \
                     each of its servers",
                );
                self.install(folder, None).await?;
            } else {
                self.progress.heading(
                    "Upgrade the bundle under load. A canary pod must serve the new webhooks first; the old pods serve until \
                     the new ones are ready",
                );
                self.upgrade(folder, &traffic::common(&bundles[index - 1], bundle))
                    .await?;
            }
            self.armed().await?;
            if index == 0 {
                self.rotations(&resources, arguments).await?;
                if arguments.fault.is_some() {
                    // The next steps would wait for servers that no longer run; the summary lists the
                    // failures.
                    return Ok(());
                }
            } else {
                self.keep_sending(&resources, BETWEEN).await?;
            }
            if index + 1 == folders.len() {
                let missing = arguments.requests.saturating_sub(self.total.requests);
                if missing > 0 {
                    self.keep_sending(&resources, missing).await?;
                }
            }
        }
        self.remove().await
    }

    async fn install(&self, folder: &Path, load: Option<&Load>) -> anyhow::Result<()> {
        let arguments = [
            "install",
            argument(folder)?,
            "--namespace",
            &self.namespace,
            "--name",
            &self.name,
        ];
        self.progress
            .command(&self.cluster.command, &arguments, load)
            .await
    }

    /// Upgrades while requests are sent at the versions that both bundles serve.
    async fn upgrade(&mut self, folder: &Path, resources: &[Resource]) -> anyhow::Result<()> {
        let load = self.load(resources);
        self.install(folder, Some(&load)).await?;
        load.at_least(BETWEEN).await?;
        self.total.add(load.stop().await);
        Ok(())
    }

    /// Fails unless the status reports every webhook and conversion as armed.
    async fn armed(&self) -> anyhow::Result<()> {
        let path = format!("{BUNDLE_DEPLOYMENTS}/{}", self.name);
        let deployed = get(&self.cluster.client, &path)
            .await?
            .context("the BundleDeployment no longer exists")?;
        let count = |field: &str| -> anyhow::Result<usize> {
            let entries = deployed["status"][field].as_array().cloned().unwrap_or_default();
            match entries.iter().find(|entry| entry["state"] != "Armed") {
                Some(entry) => bail!("ready, but not armed: {entry}"),
                None => Ok(entries.len()),
            }
        };
        let (conversions, webhooks) = (count("conversions")?, count("webhooks")?);
        self.progress.say(&format!(
            "Armed: {}, {}. From now on, API requests depend on the bundle's servers",
            counted(conversions, "conversion"),
            counted(webhooks, "webhook configuration"),
        ));
        Ok(())
    }

    /// Rotates the certificate and the CA of every ServingCertificate while requests are sent.
    async fn rotations(&mut self, resources: &[Resource], arguments: &Arguments) -> anyhow::Result<()> {
        self.progress.heading(&format!(
            "Send requests from {WORKERS} clients at a time. Each one goes through the webhooks, and its response is checked"
        ));
        let load = self.load(resources);
        self.progress
            .under_load("Sending requests", &load, load.at_least(BETWEEN))
            .await?;
        let certificates = list(&self.cluster.client, &serving_certificates(&self.namespace)).await?;
        for what in [None, Some("--ca")] {
            self.progress.heading(match what {
                None => "Rotate the certificate under load. Servers load the new one whenever its Secret reaches their pods",
                Some(_) => {
                    "Rotate the CA under load. All caBundles contain the next CA already, so both certificates are trusted"
                }
            });
            for certificate in &certificates {
                let name = format!("{}/{}", self.namespace, text(certificate, "/metadata/name"));
                let mut rotate = vec!["rotate", &name, "--wait"];
                rotate.extend(what);
                self.progress
                    .command(&self.cluster.command, &rotate, Some(&load))
                    .await?;
            }
        }
        if arguments.fault == Some(DemoFault::Outage) {
            self.cluster.stop_node().await;
            self.progress
                .heading("Break something, as requested by --fault: requests must fail now");
            self.progress.say("Stopped the node with all webhook servers");
        }
        self.progress
            .under_load("Sending requests", &load, load.at_least(BETWEEN))
            .await?;
        self.total.add(load.stop().await);
        Ok(())
    }

    async fn keep_sending(&mut self, resources: &[Resource], requests: u64) -> anyhow::Result<()> {
        let load = self.load(resources);
        let title = format!("Sending at least {requests} more requests");
        self.progress
            .under_load(&title, &load, load.at_least(requests))
            .await?;
        self.total.add(load.stop().await);
        Ok(())
    }

    async fn remove(&self) -> anyhow::Result<()> {
        self.progress.heading(
            "Remove the bundle: first its webhooks, then their servers. Its CRDs, with their objects, and its namespace are kept",
        );
        self.progress
            .command(&self.cluster.command, &["uninstall", &self.name], None)
            .await?;
        let path = format!("/api/v1/namespaces/{}/pods", self.namespace);
        let gone = until("the pods have terminated", PATIENCE, async || {
            let pods = list(&self.cluster.client, &path).await?;
            Ok(check(pods.is_empty(), || format!("{} pods", pods.len())))
        });
        self.progress
            .step("Waiting for the last pod to terminate", gone)
            .await
    }

    fn load(&self, resources: &[Resource]) -> Load {
        Load::start(
            &self.cluster.client,
            TRAFFIC,
            resources,
            WORKERS,
            PAUSE,
            Clients::Strict,
        )
    }
}
