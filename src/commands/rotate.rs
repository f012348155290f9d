//! `windlass rotate`: rotates a certificate or a CA immediately.

use std::process::ExitCode;

use anyhow::bail;
use clap::ValueEnum;
use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_api::{self, ServingCertificate};
use windlass_cluster::kinds;
use windlass_object::{GoDuration, ObjectKey, names, object, text::is_hostile};

use super::{
    annotation_request::annotate,
    arguments::namespaced,
    cluster::ClusterArgs,
    wait::{Judgement, condition, wait_for_object},
};
use crate::terminal::{Progress, ProgressFormat};

const AFTER_HELP: &str = "Targets trust the next CA in advance, so no preparation is needed.

Examples:
  windlass rotate widgets/widgets-webhook-service --wait
  windlass rotate widgets/widgets-webhook-service --ca --reason \"key moved\" --wait";

/// Rotates a serving certificate or its CA immediately, without a failed request.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    /// ServingCertificate, as listed by `windlass certs`.
    #[arg(value_name = "NAMESPACE/NAME", value_parser = namespaced)]
    certificate: (String, String),

    /// Rotate the CA, and with it the certificates that it signed.
    #[arg(long)]
    ca: bool,

    /// The CA's key is compromised: also stop trusting it soon; =all: and the next CA.
    #[arg(
        long,
        value_enum,
        value_name = "WHICH",
        num_args = 0..=1,
        require_equals = true,
        hide_possible_values = true,
        default_missing_value = "current"
    )]
    compromised: Option<Compromised>,

    /// The reason, recorded in the ServingCertificate.
    #[arg(long, value_name = "TEXT", default_value = "requested", value_parser = reason)]
    reason: String,

    /// Wait until all endpoints and targets are rotated.
    #[arg(long)]
    wait: bool,

    /// Maximum time to wait.
    #[arg(long, default_value = "15m", value_name = "DURATION")]
    timeout: GoDuration,

    /// Output format.
    #[arg(long, short, value_enum, default_value_t)]
    output: ProgressFormat,

    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Which keys the user declares as compromised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Compromised {
    /// The key of the CA that signs.
    Current,
    /// The key of the next CA too.
    All,
}

/// The prefix of a reason by which the operator recognizes an emergency.
const EMERGENCY: &str = "compromised";

impl Args {
    /// Requests the rotation.
    ///
    /// # Errors
    ///
    /// When the ServingCertificate does not exist, or the rotation takes too long.
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let cluster = self.cluster.connect().await?;
        let (namespace, name) = &self.certificate;
        let key = kinds::SERVING_CERTIFICATE.object(Some(namespace), name);
        let request = self.request(Timestamp::now())?;
        annotate(&cluster, &key, "windlass certs", |_| {
            Ok(json!({ names::ROTATE: request }))
        })
        .await?;
        if !self.wait {
            eprintln!("Requested rotation of {key}: {request:?}; to see its progress, run windlass certs");
            return Ok(ExitCode::SUCCESS);
        }
        let mut progress = Progress::new(self.output);
        let judge = |object: Option<&Value>, _| judge(object, &request);
        let rotated =
            wait_for_object::<ServingCertificate, _>(&cluster, &key, self.timeout, &mut progress, judge)
                .await?;
        progress.finish(&summary(&key, &rotated), json!({ "object": rotated }));
        Ok(ExitCode::SUCCESS)
    }

    /// Returns the value of the annotation. Each value is executed once, so it contains the time.
    ///
    /// # Errors
    ///
    /// When the reason alone would declare an emergency.
    fn request(&self, now: Timestamp) -> anyhow::Result<String> {
        let reason = &self.reason;
        let what = match self.compromised {
            Some(Compromised::All) => format!("ca:{EMERGENCY}-all: {reason}"),
            Some(Compromised::Current) => format!("ca:{EMERGENCY}: {reason}"),
            None if self.ca && reason.starts_with(EMERGENCY) => bail!(
                "--reason begins with {EMERGENCY:?}: add --compromised if the key of the CA is compromised, else use another reason"
            ),
            None if self.ca => format!("ca:{reason}"),
            None => format!("leaf:{reason}"),
        };
        Ok(format!("{what} at {}", now.strftime("%Y-%m-%dT%H:%M:%S%.3fZ")))
    }
}

/// Parses a reason of one line.
fn reason(text: &str) -> Result<String, String> {
    if text.is_empty() || text.len() > 200 || text.chars().any(is_hostile) {
        return Err("must be a single line of at most 200 bytes".to_owned());
    }
    Ok(text.to_owned())
}

/// Judges the progress of the rotation: `Done` is the rotated ServingCertificate.
fn judge(object: Option<&Value>, request: &str) -> anyhow::Result<Judgement<Value>> {
    let Some(object) = object else {
        bail!("the ServingCertificate was deleted while waiting");
    };
    if object::text(object, "/status/rotated") == Some(request) {
        return Ok(Judgement::Done(object.clone()));
    }
    if object::annotation(object, names::ROTATE) != Some(request) {
        bail!("another rotation was requested while waiting");
    }
    let phase = object::text(object, "/status/phase").unwrap_or("unknown");
    let of = |field: &str, total: &str| {
        let count = |name: &str| object["status"][field][name].as_u64().unwrap_or_default();
        format!("{} of {} {field}", count("current"), count(total))
    };
    let ready = condition(object, "Ready");
    let why = ready.map(|ready| format!("; {} ({})", ready.message, ready.reason));
    let message = format!(
        "phase {phase}: {} and {} are current{}",
        of("endpoints", "ready"),
        of("targets", "total"),
        why.unwrap_or_default()
    );
    Ok(Judgement::Wait(message.into()))
}

fn summary(key: &ObjectKey, rotated: &Value) -> String {
    let text = |pointer| object::text(rotated, pointer).unwrap_or("?");
    let generation = &rotated["status"]["ca"]["current"]["generation"];
    let endpoints = |count: &str| rotated["status"]["endpoints"][count].as_u64().unwrap_or_default();
    let unseen = match endpoints("ready").saturating_sub(endpoints("current")) {
        0 => String::new(),
        unseen => format!(
            "; the certificates of {unseen} of {} endpoints are unknown",
            endpoints("ready")
        ),
    };
    format!(
        "{key} rotated: valid until {}, signed by CA #{generation}, which expires {}{unseen}",
        text("/status/notAfter"),
        text("/status/ca/current/notAfter"),
    )
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use windlass_trust::rotation::ManualRotation;

    use super::*;

    #[derive(Parser)]
    struct Rotate {
        #[command(flatten)]
        args: Args,
    }

    fn request(flags: &[&str], now: Timestamp) -> anyhow::Result<String> {
        Rotate::parse_from([&["rotate", "ns/name"], flags].concat())
            .args
            .request(now)
    }

    #[test]
    fn each_rotation_request_is_unique() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let (one, two) = (at("2026-11-21T12:00:00.001Z"), at("2026-11-21T12:00:00.002Z"));
        assert_eq!(
            request(&[], one).unwrap(),
            "leaf:requested at 2026-11-21T12:00:00.001Z"
        );
        assert_ne!(request(&[], one).unwrap(), request(&[], two).unwrap());
        for (flags, expected) in [
            (&["--reason", "compromised"][..], ManualRotation::Leaf),
            (&["--ca"], ManualRotation::Authority),
            (
                &["--ca", "--reason", "an old laptop was compromised"],
                ManualRotation::Authority,
            ),
            (&["--compromised"], ManualRotation::Compromised),
            (
                &["--ca", "--compromised", "--reason", "laptop"],
                ManualRotation::Compromised,
            ),
            (&["--compromised=all"], ManualRotation::AllCompromised),
            (
                &["--compromised=all", "--reason", "compromised"],
                ManualRotation::AllCompromised,
            ),
        ] {
            assert_eq!(request(flags, one).unwrap().parse(), Ok(expected), "{flags:?}");
        }
    }

    #[test]
    fn a_reason_cannot_declare_an_emergency() {
        let error = request(&["--ca", "--reason", "compromised laptop"], Timestamp::UNIX_EPOCH).unwrap_err();
        assert!(error.to_string().contains("add --compromised"), "{error}");
    }

    #[test]
    fn a_rotation_is_done_when_the_status_reports_its_request() {
        let object = |rotated: &str| {
            json!({
                "metadata": {"generation": 1, "annotations": {"windlass.dev/rotate": "ca:x"}},
                "status": {"observedGeneration": 1, "phase": "Signing", "rotated": rotated,
                    "endpoints": {"ready": 2, "current": 1}, "targets": {"total": 3, "current": 3}},
            })
        };
        let waiting = judge(Some(&object("ca:w")), "ca:x").unwrap();
        assert_eq!(
            waiting,
            Judgement::Wait(
                "phase Signing: 1 of 2 endpoints and 3 of 3 targets are current"
                    .to_owned()
                    .into()
            )
        );
        let done = object("ca:x");
        assert_eq!(judge(Some(&done), "ca:x").unwrap(), Judgement::Done(done.clone()));
        assert!(judge(Some(&object("ca:w")), "ca:y").is_err());
        assert!(judge(None, "ca:x").is_err());
    }

    #[test]
    fn a_reason_is_one_line() {
        assert!(reason("key leaked").is_ok());
        for text in ["", "a\nb", "\u{1b}[2J", &"a".repeat(201)] {
            assert!(reason(text).is_err(), "{text:?}");
        }
    }
}
