//! The part of the page about a ServingCertificate.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use windlass_api::{
    Conditions, Generation, ServingCertificate, ServingCertificatePhase, ServingCertificateStatus,
};
use windlass_object::age::{age, until};

use crate::{
    problem::{ProblemSeverity, ReportFinding, ReportedProblem, ReportedStep},
    time_line::TimeLine,
};

/// How long after its due time a renewal counts as overdue.
const OVERDUE: SignedDuration = SignedDuration::from_hours(6);

/// An overdue certificate that expires within this time counts as failing, so that there is time to act.
const SOON: SignedDuration = SignedDuration::from_hours(72);

/// A row of the page.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CertificateRow {
    pub(crate) name: String,
    pub(crate) secret: String,
    pub(crate) state: String,
    pub(crate) is_ready: bool,
    pub(crate) bars: Vec<TimeBar>,
    /// When the certificate is renewed, in percent of the time line.
    pub(crate) renewal: Option<f64>,
    pub(crate) facts: Vec<(&'static str, String)>,
}

/// A bar from now until something expires.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TimeBar {
    pub(crate) class: &'static str,
    /// The end, in percent of the time line.
    pub(crate) end: f64,
}

/// Returns when the certificates of a ServingCertificate expire.
pub(crate) fn ends(certificate: &ServingCertificate) -> impl Iterator<Item = Timestamp> + '_ {
    let status = certificate.status.as_ref();
    let ca = status.and_then(|status| status.ca.as_ref());
    let generations = ca.into_iter().flat_map(|ca| [&ca.current, &ca.next]);
    let generations = generations.flatten().map(|generation| generation.not_after.0);
    let leaf = status
        .and_then(|status| status.not_after.as_ref())
        .map(|time| time.0);
    generations.chain(leaf)
}

/// Returns `namespace/name`, by which annotations refer to the ServingCertificate.
pub(crate) fn name(certificate: &ServingCertificate) -> String {
    let metadata = &certificate.metadata;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    format!("{}/{}", text(&metadata.namespace), text(&metadata.name))
}

impl CertificateRow {
    pub(crate) fn new(certificate: &ServingCertificate, line: &TimeLine, now: Timestamp) -> Self {
        let nothing = ServingCertificateStatus::default();
        let status = certificate.status.as_ref().unwrap_or(&nothing);
        let ca = status.ca.clone().unwrap_or_default();
        let mut bars = Vec::new();
        let mut facts = Vec::new();
        if let Some(Time(end)) = status.not_after {
            bars.push(TimeBar::new("leaf", end, line));
            facts.push(("Certificate until", until(end, now)));
        }
        if let Some(Time(renewal)) = status.renewal_time {
            facts.push(("Renewed", until(renewal, now)));
        }
        for (class, word, generation) in [
            ("ca", "CA until", &ca.current),
            ("next", "Next CA until", &ca.next),
        ] {
            if let Some(Generation {
                generation,
                not_after,
            }) = generation
            {
                facts.push((word, format!("{}, CA {generation}", until(not_after.0, now))));
                bars.push(TimeBar::new(class, not_after.0, line));
            }
        }
        if let Some(Time(renewal)) = ca.renewal_time {
            facts.push(("CA replaced", until(renewal, now)));
        }
        if let Some(targets) = &status.targets {
            facts.push((
                "Trusted by",
                format!("{} of {} targets", targets.current, targets.total),
            ));
        }
        if let Some(endpoints) = &status.endpoints {
            let served = format!("{} of {} endpoints", endpoints.current, endpoints.ready);
            facts.push(("Served by", served));
        }
        // The operator may be down, so the status can be outdated.
        let has_ended = status.not_after.as_ref().is_some_and(|end| end.0 <= now);
        let is_ready = certificate.is_ready() && !has_ended;
        let state = if has_ended {
            "Expired".to_owned()
        } else {
            state(status, is_ready)
        };
        Self {
            name: name(certificate),
            secret: certificate.spec.secret_name.clone(),
            state,
            is_ready,
            bars,
            renewal: status.renewal_time.as_ref().map(|time| line.position(time.0)),
            facts,
        }
    }
}

impl TimeBar {
    fn new(class: &'static str, end: Timestamp, line: &TimeLine) -> Self {
        Self {
            class,
            end: line.position(end),
        }
    }
}

/// Returns the phase of the rotation, or why it is not ready.
fn state(status: &ServingCertificateStatus, is_ready: bool) -> String {
    match (status.phase, status.conditions.find("Ready")) {
        (Some(phase), _) if is_ready => format!("{phase:?}"),
        (_, Some(ready)) if !is_ready => ready.reason.clone(),
        _ => "Unseen".to_owned(),
    }
}

/// Returns the problems of a ServingCertificate, and what it is waiting for.
pub(crate) fn findings(certificate: &ServingCertificate, now: Timestamp) -> Vec<ReportFinding> {
    let nothing = ServingCertificateStatus::default();
    let status = certificate.status.as_ref().unwrap_or(&nothing);
    let subject = format!("ServingCertificate {}", name(certificate));
    let mut findings = Vec::new();
    let mut problem = |severity, reason: &str, message: String| {
        findings.push(ReportFinding::Problem(ReportedProblem {
            severity,
            subject: subject.clone(),
            reason: reason.to_owned(),
            message,
        }));
    };

    let end = status.not_after.as_ref().map(|time| time.0);
    match end {
        Some(end) if end <= now => {
            let message = format!(
                "the certificate expired {} ago: calls fail; check that the operator is running",
                age(end, now)
            );
            problem(ProblemSeverity::Failing, "Expired", message);
        }
        Some(end) if end.duration_since(now) < SOON && is_overdue(status, now) => {
            let message = format!(
                "the certificate expires on {} and its renewal is overdue: check that the operator is running",
                until(end, now)
            );
            problem(ProblemSeverity::Failing, "EndsSoon", message);
        }
        Some(_) if is_overdue(status, now) => {
            let message = "renewal is overdue: check that the operator is running".to_owned();
            problem(ProblemSeverity::Waiting, "RenewalOverdue", message);
        }
        _ => {}
    }
    let targets = status.targets.clone().unwrap_or_default();
    for failing in &targets.failing {
        let message = format!("{} {}: {}", failing.kind, failing.name, failing.message);
        problem(ProblemSeverity::Waiting, "TargetFailing", message);
    }
    for contested in &targets.contested {
        let by = contested
            .field_manager
            .as_deref()
            .unwrap_or("an unknown field manager");
        let repaired = match contested.repairs {
            1 => "once".to_owned(),
            repairs => format!("{repairs} times"),
        };
        let message = format!(
            "{by} has overwritten the caBundle of {} {} (repaired {repaired}): configure it to ignore the field",
            contested.kind, contested.name
        );
        problem(ProblemSeverity::Waiting, "TargetContested", message);
    }
    if let Some(clock) = status.conditions.find("ClockSynchronized")
        && clock.status == "False"
    {
        problem(ProblemSeverity::Waiting, &clock.reason, clock.message.clone());
    }
    let ready = status.conditions.find("Ready");
    let rotates = status
        .phase
        .is_some_and(|phase| phase != ServingCertificatePhase::Stable);
    let waits = |what: String, message: String, since: Option<String>| {
        ReportFinding::ReportedStep(ReportedStep {
            subject: subject.clone(),
            what,
            message,
            since,
        })
    };
    match ready {
        _ if status.observed_generation != certificate.metadata.generation => {
            let message = "waiting for the operator to process it".to_owned();
            findings.push(waits("Unseen".to_owned(), message, None));
        }
        Some(ready) if ready.status != "True" && !rotates && targets.failing.is_empty() => {
            problem(ProblemSeverity::Waiting, &ready.reason, ready.message.clone());
        }
        Some(ready) if rotates => {
            let phase = status.phase.map(|phase| format!("{phase:?}"));
            let since = ready.last_transition_time.0;
            let since = (ready.status != "True").then(|| age(since, now));
            findings.push(waits(phase.unwrap_or_default(), ready.message.clone(), since));
        }
        _ => {}
    }
    findings
}

fn is_overdue(status: &ServingCertificateStatus, now: Timestamp) -> bool {
    let renewal = status.renewal_time.as_ref().map(|time| time.0);
    renewal.is_some_and(|renewal| now.duration_since(renewal) > OVERDUE)
}
