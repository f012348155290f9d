//! What the operator does while nothing happens.

use std::{fmt, time::Duration};

use clap::Args;
use serde_json::json;
use windlass_object::GoDuration;
use windlass_scenarios::{
    progress::StepPrinter,
    steps::{VALIDATING, check, list, serving_certificates, succeed, until},
    test_cluster::TestCluster,
};

use super::{
    figures::{mebibytes, requests, since},
    measurement::Measurement,
    objects::{certificate, service, target},
    started::Started,
    target_crowd::{CrowdKind, CrowdSource, TargetCrowd},
};

/// How idleness is measured: all ServingCertificates settle, then the operator's requests are counted while nothing happens.
/// It is to write nothing, and none is to fail.
#[derive(Clone, Debug, Args)]
pub struct IdleArguments {
    /// Duration.
    #[arg(long = "for", value_name = "DURATION", default_value = "10m")]
    pub duration: GoDuration,

    /// Number of ServingCertificates.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub certificates: u32,

    /// Number of CustomResourceDefinitions that ask for the trust bundle of one more ServingCertificate. With them, the
    /// operator's memory is told, also after a restart.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub targets: u32,
}

/// Where the ServingCertificates are, beside the sample bundle's.
const NAMESPACE: &str = "idle";

/// How long no write may come before all counts as settled.
const QUIET: Duration = Duration::from_secs(10);

/// How long settling may take.
const PATIENCE: Duration = Duration::from_secs(300);

/// How long injecting into many targets may take.
const INJECTED: Duration = Duration::from_secs(900);

/// The ServingCertificate of the targets, and its Service.
const CROWDED: &str = "crowded";

/// The operator's memory in bytes.
struct IdleMemory {
    /// At the end of the idle time, which came after injecting.
    idle: u64,
    /// Of another process that had nothing to inject, as soon as it was quiet.
    restarted: u64,
    /// Of a process that looks after certificates only, as they are shipped.
    certificates: u64,
}

/// Measures idleness.
pub(super) async fn measure(
    arguments: &IdleArguments,
    cluster: &TestCluster,
    progress: &StepPrinter,
) -> anyhow::Result<Measurement> {
    let bundle = cluster.bundle("sample.v1")?;
    let started = Started::new(cluster, &bundle, progress).await?;
    let title = format!(
        "Waiting for {} stable ServingCertificates",
        arguments.certificates
    );
    progress
        .step(&title, settle(arguments.certificates, cluster, &started))
        .await?;
    let crowd = (arguments.targets > 0).then_some(TargetCrowd {
        namespace: NAMESPACE,
        certificate: CROWDED,
        source: CrowdSource::Certificate,
        applied: false,
        kind: CrowdKind::Definitions,
        targets: arguments.targets,
    });
    if let Some(crowd) = &crowd {
        let title = format!("Injecting into {} CustomResourceDefinitions", crowd.targets);
        progress.step(&title, inject(crowd, cluster, &started)).await?;
    }
    let (writes, before) = (started.proxy.writes(), started.proxy.requests());
    let failed = started.proxy.failures();
    let idle = arguments.duration.0.unsigned_abs();
    let sent = || since(&before, started.proxy.requests());
    let detail = || format!(" ({} operator requests)", sent().values().sum::<u64>());
    let pause = async {
        tokio::time::sleep(idle).await;
        Ok(())
    };
    progress.watched("Idle", detail, pause).await?;
    let sent = sent();
    let written = started.proxy.writes() - writes;
    let failed = since(&failed, started.proxy.failures());
    let minutes = usize::try_from(idle.as_secs() / 60).unwrap_or(usize::MAX).max(1);
    let mut missed = Vec::new();
    if written > 0 {
        let log = started.proxy.log();
        let first = usize::try_from(writes).unwrap_or(usize::MAX);
        missed.push(format!("written while idle: {}", log[first..].join(", ")));
    }
    for (request, count) in &failed {
        missed.push(format!("failed while idle, {count} times: {request}"));
    }
    let mut tables = requests(&sent, "a minute", minutes).to_string();
    if let Some(crowd) = &crowd {
        let memory = progress
            .step("Restarting the operator", restarted(cluster, started))
            .await?;
        tables += &format!(
            "\nMemory of the operator beside {} targets: {} after injecting and idling, {} after a restart; {} of its half that looks after certificates.\n",
            crowd.targets,
            mebibytes(memory.idle),
            mebibytes(memory.restarted),
            mebibytes(memory.certificates)
        );
        progress
            .step("Removing the targets", crowd.remove(&cluster.client))
            .await?;
    }
    Ok(Measurement {
        tables,
        failures: Vec::new(),
        missed,
        summary: format!(
            "{arguments}: {written} writes, {} requests, {} of them failed",
            sent.values().sum::<u64>(),
            failed.values().sum::<u64>()
        ),
    })
}

impl fmt::Display for IdleArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ServingCertificates, ", self.certificates)?;
        if self.targets > 0 {
            write!(f, "{} CustomResourceDefinitions as targets, ", self.targets)?;
        }
        write!(f, "idle for {}", self.duration)
    }
}

/// Makes so many ServingCertificates, the sample bundle's included, and waits until the operator is done with them.
async fn settle(count: u32, cluster: &TestCluster, started: &Started) -> anyhow::Result<()> {
    let client = &cluster.client;
    succeed(
        client,
        "POST",
        "/api/v1/namespaces",
        Some(&json!({"metadata": {"name": NAMESPACE}})),
    )
    .await?;
    let services = format!("/api/v1/namespaces/{NAMESPACE}/services");
    for number in 1..count {
        let name = format!("webhook-{number}");
        succeed(client, "POST", &services, Some(&service(&name))).await?;
        succeed(
            client,
            "POST",
            &serving_certificates(NAMESPACE),
            Some(&certificate(&name)),
        )
        .await?;
        succeed(client, "POST", VALIDATING, Some(&target(NAMESPACE, &name, &name))).await?;
    }
    until("every ServingCertificate is stable", PATIENCE, async || {
        let certificates = list(client, &serving_certificates(NAMESPACE)).await?;
        let stable = certificates.iter().filter(|certificate| {
            let status = &certificate["status"];
            status["phase"] == "Stable" && status["targets"]["current"] == 1
        });
        let stable = u32::try_from(stable.count()).unwrap_or(u32::MAX);
        Ok(if stable + 1 == count {
            Ok(())
        } else {
            let first = certificates
                .iter()
                .find(|certificate| certificate["status"]["phase"] != "Stable");
            let status = first
                .map(|certificate| certificate["status"].to_string())
                .unwrap_or_default();
            Err(format!("{stable} of {}: {status}", count - 1))
        })
    })
    .await?;
    quiet(started).await
}

/// Creates targets, and waits until the operator is done with them.
async fn inject(crowd: &TargetCrowd, cluster: &TestCluster, started: &Started) -> anyhow::Result<()> {
    crowd.create(&cluster.client).await?;
    crowd.injected(&cluster.client, INJECTED).await?;
    quiet(started).await
}

/// Waits until the operator writes no more.
async fn quiet(started: &Started) -> anyhow::Result<()> {
    until("the operator stops writing", PATIENCE, async || {
        let before = started.proxy.writes();
        tokio::time::sleep(QUIET).await;
        Ok(check(started.proxy.writes() == before, || {
            "it is still writing".to_owned()
        }))
    })
    .await
}

/// The operator's memory, and that of the next process, which begins with what is there.
async fn restarted(cluster: &TestCluster, started: Started) -> anyhow::Result<IdleMemory> {
    let idle = started.operator.memory()?;
    let started = started.restart().await?;
    started.operator.ready().await?;
    quiet(&started).await?;
    let restarted = started.operator.memory()?;
    started.operator.kill().await?;
    let half = cluster.certificates_half().await?.start()?;
    until(
        "the half that looks after certificates leads",
        PATIENCE,
        async || Ok(check(half.leads().await?, || "it stands by".to_owned())),
    )
    .await?;
    tokio::time::sleep(QUIET).await;
    Ok(IdleMemory {
        idle,
        restarted,
        certificates: half.memory()?,
    })
}
