//! What policies add to the time of a write: against no webhook, and against those that answer at once.
//!
//! The namespaces differ in nothing but who is asked. They are written to in turn, so that whatever else the machine does counts for
//! all. An API server works on what a webhook changes: one that changes the same at once shows how much of the time that is.

mod bare_webhook;

use std::{
    fmt,
    time::{Duration, Instant},
};

use clap::Args;
use serde_json::{Value, json};
use windlass_scenarios::{
    progress::StepPrinter,
    request::send,
    scenarios::policies,
    steps::{PATIENCE, check, succeed, until},
    test_cluster::TestCluster,
};

use self::bare_webhook::BareWebhook;
use super::{measurement::Measurement, table::FiguresTable};

/// How writes are measured. The policies are OverridePolicies with templates, of which some are for the object.
#[derive(Clone, Debug, Args)]
pub struct AdmissionArguments {
    /// Number of policies.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub policies: u32,

    /// Number of policies that are for the object that is written.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(0..=100))]
    pub matching: u32,

    /// Number of writes to each namespace in a round.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(100..))]
    pub requests: u32,

    /// Number of rounds; medians of all are told.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,
}

/// How many ways there are.
const WAYS: usize = 4;

/// The namespaces: nobody is asked, a bare webhook, one that changes as much as the policies, the policies.
const NAMESPACES: [&str; WAYS] = ["unasked", "bare", "changed", "governed"];

/// What the slowest of a hundred writes may take with policies, in those of the webhook that answers at once.
const AT_MOST: f64 = 1.2;

/// What is measured of the writes to a namespace.
#[derive(Clone, Copy, Debug)]
struct WriteTimes {
    median: Duration,
    /// What 99 of 100 take at the most.
    slow: Duration,
}

/// Measures writes.
pub(super) async fn measure(
    arguments: &AdmissionArguments,
    cluster: &TestCluster,
    progress: &StepPrinter,
) -> anyhow::Result<Measurement> {
    let _operator = cluster.operator.start()?;
    policies::install(cluster).await?;
    for namespace in NAMESPACES {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        succeed(&cluster.client, "POST", "/api/v1/namespaces", Some(&object)).await?;
    }
    let _replicas = [
        policies::join(cluster, "policies-one").await?,
        policies::join(cluster, "policies-other").await?,
    ];
    let title = format!("Creating {} policies", arguments.policies);
    progress.step(&title, govern(arguments, cluster)).await?;
    let _bare = BareWebhook::start(cluster, NAMESPACES[1], None).await?;
    let changes = (0..arguments.matching)
        .map(|number| json!({"op": "add", "path": format!("/metadata/annotations/{}", name(number)), "value": "asked"}));
    let _changing = BareWebhook::start(cluster, NAMESPACES[2], Some(changes.collect())).await?;
    progress
        .step("Warming up", round(cluster, arguments.requests.min(300)))
        .await?;
    let mut rounds = Vec::new();
    for number in 1..=arguments.rounds {
        let title = format!(
            "Writing {} times to each namespace: round {number}",
            arguments.requests
        );
        rounds.push(progress.step(&title, round(cluster, arguments.requests)).await?);
    }
    Ok(measurement(arguments, &rounds))
}

fn measurement(arguments: &AdmissionArguments, rounds: &[[WriteTimes; WAYS]]) -> Measurement {
    let all = |read: &dyn Fn(&[WriteTimes; WAYS]) -> f64| middle(rounds.iter().map(read).collect());
    let mut table = FiguresTable::new(["who is asked", "median", "99 of 100", "against the bare webhook"]);
    let mut missed = Vec::new();
    let ways: [&str; WAYS] = [
        "nobody",
        "a webhook that answers at once",
        "one that changes as much at once",
        "policies",
    ];
    for (which, who) in ways.into_iter().enumerate() {
        let median = all(&|round| round[which].median.as_secs_f64());
        let slow = all(&|round| round[which].slow.as_secs_f64());
        let ratio = all(&|round| round[which].slow.as_secs_f64() / round[1].slow.as_secs_f64());
        table.row([
            who.to_owned(),
            milliseconds(median),
            milliseconds(slow),
            format!("{ratio:.2} x"),
        ]);
        if which + 1 == WAYS && ratio > AT_MOST {
            missed.push(format!("99 of 100 take {ratio:.2} times as long, not {AT_MOST}"));
        }
    }
    Measurement {
        tables: table.to_string(),
        failures: Vec::new(),
        missed,
        summary: arguments.to_string(),
    }
}

/// Creates the policies, and waits until they are asked.
async fn govern(arguments: &AdmissionArguments, cluster: &TestCluster) -> anyhow::Result<()> {
    let namespace = NAMESPACES[WAYS - 1];
    let folder = format!("namespaces/{namespace}/overridepolicies");
    for number in 0..arguments.policies {
        let is_matching = number < arguments.matching;
        let app = if is_matching {
            "measured".to_owned()
        } else {
            format!("other-{number}")
        };
        let policy = json!({
            "apiVersion": "policy.kcloudlabs.io/v1alpha1", "kind": "OverridePolicy",
            "metadata": {"name": name(number)},
            "spec": {
                "resourceSelectors": [{
                    "apiVersion": "apps/v1", "kind": "Deployment", "labelSelector": {"matchLabels": {"app": app}},
                }],
                "overrideRules": [{"overriders": {"template": {
                    "type": "annotations", "operation": "add", "path": name(number), "value": {"string": "asked"},
                }}}],
            },
        });
        let last = number + 1 == arguments.policies;
        if last {
            policies::create_policy(cluster, &folder, &policy).await?;
        } else {
            let path = format!("/apis/policy.kcloudlabs.io/v1alpha1/{folder}");
            succeed(&cluster.client, "POST", &path, Some(&policy)).await?;
        }
    }
    until("all policies are asked", PATIENCE, async || {
        let answer = send(&cluster.client, "POST", &path(namespace), Some(&deployment())).await?;
        let annotations = answer
            .body
            .pointer("/metadata/annotations")
            .and_then(Value::as_object);
        let count = annotations.map_or(0, |annotations| {
            annotations
                .keys()
                .filter(|name| name.starts_with("policy-"))
                .count()
        });
        let is_all = answer.code == 201 && u32::try_from(count) == Ok(arguments.matching);
        Ok(check(is_all, || answer.to_string()))
    })
    .await
}

/// Writes to the namespaces in turn.
async fn round(cluster: &TestCluster, requests: u32) -> anyhow::Result<[WriteTimes; WAYS]> {
    let object = deployment();
    let paths = NAMESPACES.map(path);
    let mut times: [Vec<Duration>; WAYS] = Default::default();
    for number in 0..requests as usize {
        // Each comes first as often as the others.
        for which in (0..WAYS).map(|which| (which + number) % WAYS) {
            let began = Instant::now();
            succeed(&cluster.client, "POST", &paths[which], Some(&object)).await?;
            times[which].push(began.elapsed());
        }
    }
    Ok(times.map(WriteTimes::of))
}

/// The name of a policy, and of the annotation that it adds.
fn name(number: u32) -> String {
    format!("policy-{number:03}")
}

fn path(namespace: &str) -> String {
    format!("/apis/apps/v1/namespaces/{namespace}/deployments?dryRun=All")
}

/// A Deployment of 2.5 kB.
fn deployment() -> Value {
    let container = |name: &str| {
        json!({
            "name": name,
            "image": format!("registry.example.com/team/{name}:1.2.3"),
            "args": ["--leader-elect", "--health-probe-bind-address=:8081", "--metrics-bind-address=127.0.0.1:8080"],
            "env": (0..12).map(|number| json!({"name": format!("SETTING_{number}"), "value": "a value of some length"})).collect::<Vec<_>>(),
            "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
            "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m", "memory": "128Mi"}},
            "securityContext": {"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]}},
        })
    };
    let labels = json!({"app": "measured"});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "measured", "labels": labels, "annotations": {"example.com/owner": "team"}},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [container("server"), container("proxy")], "serviceAccountName": "default"},
            },
        },
    })
}

fn milliseconds(seconds: f64) -> String {
    format!("{:.2} ms", seconds * 1000.0)
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

impl WriteTimes {
    fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |hundredths: usize| {
            times
                .get(times.len() * hundredths / 100)
                .copied()
                .unwrap_or_default()
        };
        Self {
            median: at(50),
            slow: at(99),
        }
    }
}

impl fmt::Display for AdmissionArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} rounds of {} writes beside {} policies, {} of which are for the object",
            self.rounds, self.requests, self.policies, self.matching
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_as_long_as_it_is_said() {
        let length = deployment().to_string().len();
        assert!((2400..2600).contains(&length), "{length}");
    }

    #[test]
    fn the_slowest_of_a_hundred_is_found_among_any_number() {
        for count in [100_u64, 1000] {
            let times = WriteTimes::of((0..count).rev().map(Duration::from_millis).collect());
            assert_eq!(times.median, Duration::from_millis(count / 2));
            assert_eq!(times.slow, Duration::from_millis(count / 100 * 99));
        }
    }
}
