//! An operator that cannot dial one pod, whose server never reads a renewed certificate.

use std::{
    cell::RefCell,
    fmt,
    time::{Duration, Instant},
};

use anyhow::Context;
use clap::Args;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use serde_json::{Value, json};
use windlass_object::GoDuration;
use windlass_scenarios::{
    load::{Load, Report},
    operator::Running,
    progress::StepPrinter,
    request::text,
    resource::{Expectation, Resource},
    sample::{self, CERTIFICATE, DEPLOYMENT, NAMESPACE, SERVING_CERTIFICATE},
    steps::{
        BUNDLE_DEPLOYMENTS, CRDS, PATIENCE, bundle_deployment, check, conditions, delete, get, list, ready,
        request_rotation, succeed, until,
    },
    test_cluster::TestCluster,
};

use super::{measurement::Measurement, preloaded::PreloadedWorld, table::FiguresTable};

/// How blindness is measured: one more pod serves what it has read at its start and nothing else, and the operator cannot
/// dial it. Certificates are short-lived, and CAs rotate. No request may fail until the certificate of that pod ends, and
/// the operator must raise an alarm in the last sixth of its life.
#[derive(Clone, Debug, Args)]
pub struct BlindArguments {
    /// How long serving certificates are valid. Less than 11 minutes needs a --time-scale, and makes the cluster accept it.
    #[arg(long, value_name = "DURATION", default_value = "11m")]
    pub leaf: GoDuration,

    /// Number of requests to send per second, whether or not the previous ones were answered.
    #[arg(long, value_name = "PER_SECOND", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=5000))]
    pub rate: u32,
}

/// Where requests go to.
const TRAFFIC: &str = "traffic";

/// The pod that never reads a renewed certificate.
const STUBBORN: &str = "/api/v1/namespaces/sample-system/pods/stubborn";

/// Where the API server keeps what must hold of lives.
const RULES: [(&str, &str); 2] = [
    (
        "servingcertificates.windlass.dev",
        "/spec/versions/0/schema/openAPIV3Schema/properties/spec/x-kubernetes-validations",
    ),
    (
        "bundledeployments.windlass.dev",
        "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/certificates/x-kubernetes-validations",
    ),
];

/// The shortest life that the API server takes otherwise.
const SHORTEST: Duration = Duration::from_secs(645);

/// How many serving certificates a CA outlives.
const LEAVES: u32 = 4;

/// How often a CA rotation is asked for in the life of a serving certificate.
const ROTATIONS: u32 = 5;

/// How often the alarm is looked for.
const LOOK: Duration = Duration::from_millis(250);

/// How long requests go on after the end of what the pod serves.
const AFTER: Duration = Duration::from_secs(10);

/// What is known of a certificate that ends at a moment.
#[derive(Clone, Copy, Debug)]
struct LastSixth {
    begins: Timestamp,
    ends: Timestamp,
}

/// When each alarm was seen first.
#[derive(Clone, Debug, Default)]
struct SeenAlarms {
    condition: Option<Timestamp>,
    metric: Option<Timestamp>,
    event: Option<Timestamp>,
    message: String,
    /// The ends of serving certificates that were published meanwhile.
    leaves: Vec<String>,
}

struct BlindRun<'a> {
    client: &'a Client,
    operator: Running,
    seen: RefCell<SeenAlarms>,
}

impl fmt::Display for BlindArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "one pod cannot be dialled and never reloads a certificate that lives for {}; {} requests a second",
            self.leaf, self.rate
        )
    }
}

/// Measures blindness.
pub(super) async fn measure(
    arguments: &BlindArguments,
    cluster: &TestCluster,
    progress: &StepPrinter,
) -> anyhow::Result<Measurement> {
    let client = &cluster.client;
    let leaf = arguments.leaf.0.unsigned_abs();
    if leaf < SHORTEST {
        allow_short_lives(client).await?;
    }
    let world = PreloadedWorld::new(cluster).await?;
    let mut program = cluster.operator.clone();
    program.environment.extend(world.environment());
    let operator = program.start()?;
    progress
        .step("Installing the sample bundle", install(cluster, &arguments.leaf))
        .await?;
    let certificate = progress
        .step("Starting the pod that never reloads", start_stubborn(cluster))
        .await?;
    let last_sixth = LastSixth::of(&certificate, leaf)?;
    let pod = get(client, STUBBORN).await?.unwrap_or_default();
    world.hide(text(&pod, "/status/podIP"))?;
    let namespace = json!({"metadata": {"name": TRAFFIC}});
    succeed(client, "POST", "/api/v1/namespaces", Some(&namespace)).await?;
    let widgets = Resource::widgets(&["v1", "v1beta1"], Expectation::Admitted);
    let mut load = Load::start_at_rate(client, TRAFFIC, &[widgets], arguments.rate);
    let run = BlindRun {
        client,
        operator,
        seen: RefCell::default(),
    };
    let detail = || {
        let report = load.report();
        format!(" ({} requests, {} failed)", report.requests, report.failed)
    };
    let left = until_moment(last_sixth.ends);
    let end = Instant::now() + left;
    let living = run.live(left + AFTER, leaf / ROTATIONS);
    progress
        .watched("Rotating without seeing", detail, living)
        .await?;
    load.end().await;
    let after = generation(client).await?;
    let healed = Instant::now();
    delete(client, STUBBORN).await?;
    progress
        .step(
            "Waiting until all is well without that pod",
            settled(client, leaf),
        )
        .await?;
    let seen = run.seen.into_inner();
    let before = certificate["status"]["ca"]["current"]["generation"].as_i64();
    let rotations = after - before.context("no CA")?;
    Ok(told(
        &load.report(),
        &seen,
        last_sixth,
        end,
        rotations,
        healed.elapsed(),
    ))
}

/// Takes away what keeps lives long enough for waits that are not scaled.
async fn allow_short_lives(client: &Client) -> anyhow::Result<()> {
    for (name, rules) in RULES {
        let patch = json!([{"op": "remove", "path": rules}]);
        succeed(client, "PATCH", &format!("{CRDS}/{name}"), Some(&patch)).await?;
    }
    Ok(())
}

async fn install(cluster: &TestCluster, leaf: &GoDuration) -> anyhow::Result<()> {
    cluster.bundle("sample.v1")?;
    let mut object = bundle_deployment("sample", NAMESPACE, "sample.v1");
    let authority = GoDuration(leaf.0 * i32::try_from(LEAVES)?);
    object["spec"]["certificates"] =
        json!({"duration": leaf.to_string(), "caDuration": authority.to_string()});
    until("short lives are accepted", PATIENCE, async || {
        let created = succeed(&cluster.client, "POST", BUNDLE_DEPLOYMENTS, Some(&object)).await;
        Ok(created.map(drop).map_err(|error| format!("{error:#}")))
    })
    .await?;
    ready(&cluster.client, "sample", PATIENCE).await?;
    sample::settled(cluster).await.map(drop)
}

/// Starts one more pod behind the Service, which nothing can restart, and waits until it is seen to serve the certificate that
/// is published: the ServingCertificate as it is then.
async fn start_stubborn(cluster: &TestCluster) -> anyhow::Result<Value> {
    let client = &cluster.client;
    let deployment = get(client, DEPLOYMENT).await?.context("no Deployment")?;
    let template = &deployment["spec"]["template"];
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "stubborn", "labels": template["metadata"]["labels"], "annotations": template["metadata"]["annotations"]},
        "spec": template["spec"],
    });
    let container = &mut pod["spec"]["containers"][0];
    let mut arguments = container["args"].as_array().cloned().unwrap_or_default();
    arguments.push("--reload=false".into());
    container["args"] = arguments.into();
    let collection = STUBBORN.trim_end_matches("/stubborn");
    succeed(client, "POST", collection, Some(&pod)).await?;
    let count = deployment["spec"]["replicas"].as_i64().unwrap_or(1) + 1;
    until("the pod is seen", PATIENCE, async || {
        let object = get(client, SERVING_CERTIFICATE).await?.unwrap_or_default();
        let endpoints = &object["status"]["endpoints"];
        let is_seen = endpoints["ready"] == count && endpoints["current"] == count;
        Ok(if is_seen && object["status"]["phase"] == "Stable" {
            Ok(object)
        } else {
            Err(object["status"].to_string())
        })
    })
    .await
}

async fn generation(client: &Client) -> anyhow::Result<i64> {
    let object = get(client, SERVING_CERTIFICATE).await?.unwrap_or_default();
    let generation = object["status"]["ca"]["current"]["generation"].as_i64();
    generation.context("no CA")
}

/// Waits until the ServingCertificate is ready, and no alarm is left.
async fn settled(client: &Client, patience: Duration) -> anyhow::Result<()> {
    until(
        "the ServingCertificate is ready",
        patience + PATIENCE,
        async || {
            let object = get(client, SERVING_CERTIFICATE).await?.unwrap_or_default();
            let is_ready = ready_condition(&object).is_some_and(|ready| ready["status"] == "True");
            Ok(check(is_ready, || conditions(&object)))
        },
    )
    .await
}

fn ready_condition(object: &Value) -> Option<&Value> {
    let conditions = object["status"]["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == "Ready")
}

fn until_moment(moment: Timestamp) -> Duration {
    Timestamp::now()
        .duration_until(moment)
        .try_into()
        .unwrap_or_default()
}

impl LastSixth {
    /// Of the certificate that a ServingCertificate has published, which lives for `leaf` from when it was issued, and begins a
    /// sixth of that earlier, for clocks that are wrong.
    fn of(certificate: &Value, leaf: Duration) -> anyhow::Result<Self> {
        let ends: Timestamp = text(certificate, "/status/notAfter").parse()?;
        let life = SignedDuration::try_from(leaf)?;
        Ok(Self {
            begins: ends - (life + life / 6) / 6,
            ends,
        })
    }
}

impl BlindRun<'_> {
    /// Asks for CA rotations and looks for alarms, for so long.
    async fn live(&self, duration: Duration, pause: Duration) -> anyhow::Result<()> {
        let rotating = async || -> anyhow::Result<()> {
            loop {
                tokio::time::sleep(pause).await;
                request_rotation(self.client, NAMESPACE, CERTIFICATE, "ca").await?;
            }
        };
        let looking = async || -> anyhow::Result<()> {
            loop {
                tokio::time::sleep(LOOK).await;
                self.look().await?;
            }
        };
        let both = async { tokio::try_join!(rotating(), looking()).map(drop) };
        match tokio::time::timeout(duration, both).await {
            Ok(ended) => ended,
            Err(_) => Ok(()),
        }
    }

    async fn look(&self) -> anyhow::Result<()> {
        let object = get(self.client, SERVING_CERTIFICATE).await?.unwrap_or_default();
        let metrics = self.operator.ask("/metrics").await?;
        let events = format!("/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events");
        let events = list(self.client, &events).await?;
        let mut seen = self.seen.borrow_mut();
        let now = Some(Timestamp::now());
        let alarm = ready_condition(&object).filter(|ready| ready["reason"] == "NotReloaded");
        if let Some(alarm) = alarm
            && seen.condition.is_none()
        {
            seen.condition = now;
            text(alarm, "/message").clone_into(&mut seen.message);
        }
        let is_alarm = |line: &str| {
            line.starts_with("windlass_serving_certificate_not_reloaded{") && line.ends_with(" 1")
        };
        if metrics.lines().any(is_alarm) {
            seen.metric = seen.metric.or(now);
        }
        if events.iter().any(|event| event["reason"] == "NotReloaded") {
            seen.event = seen.event.or(now);
        }
        let ends = text(&object, "/status/notAfter");
        if seen.leaves.last().is_none_or(|last| last != ends) {
            seen.leaves.push(ends.to_owned());
        }
        Ok(())
    }
}

/// What it comes to; at `end` the certificate ends that is served by the pod.
fn told(
    report: &Report,
    seen: &SeenAlarms,
    last_sixth: LastSixth,
    end: Instant,
    rotations: i64,
    healed: Duration,
) -> Measurement {
    let early = report.failures.iter().filter(|failure| failure.answered < end);
    let early: Vec<_> = early.map(|failure| failure.text.clone()).collect();
    let mut table = FiguresTable::new(["alarm", "after the last sixth began", "before the end"]);
    let mut missed = Vec::new();
    for (title, moment) in [
        ("Ready=False", seen.condition),
        ("metric", seen.metric),
        ("event", seen.event),
    ] {
        let Some(moment) = moment.filter(|moment| *moment < last_sixth.ends) else {
            missed.push(format!("{title}: no alarm before the end"));
            continue;
        };
        let seconds =
            |from: Timestamp, to: Timestamp| format!("{:.1} s", from.duration_until(to).as_secs_f64());
        let (began, left) = (
            seconds(last_sixth.begins, moment),
            seconds(moment, last_sixth.ends),
        );
        table.row([title.to_owned(), began, left]);
    }
    Measurement {
        tables: format!("{table}\n{}\n", seen.message),
        summary: format!(
            "{} leaf renewals and {rotations} CA rotations with a pod that cannot be dialled and never reloads: {} of {} requests failed before its certificate ended, {} after; ready again {:.1} s after the pod was deleted",
            seen.leaves.len().saturating_sub(1),
            early.len(),
            report.requests,
            report.failures.len() - early.len(),
            healed.as_secs_f64(),
        ),
        failures: early,
        missed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_sixth_is_that_of_the_whole_validity() -> anyhow::Result<()> {
        let certificate = json!({"status": {"notAfter": "2026-11-23T12:36:00Z"}});
        let last_sixth = LastSixth::of(&certificate, Duration::from_secs(36 * 60))?;
        assert_eq!(last_sixth.begins, "2026-11-23T12:29:00Z".parse()?);
        Ok(())
    }
}
