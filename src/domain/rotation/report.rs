//! What is to be said about a rotation, and when to look again.

use std::fmt;

use jiff::{SignedDuration, Timestamp};

use crate::domain::rotation::{
    Plan,
    authorities::Trust,
    endpoints,
    observation::{Served, Target, TargetId},
    request::Request,
    situation::{Situation, Urgency},
    step::Step,
};

/// Where a rotation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// The next CA is trusted everywhere and signs nothing yet.
    Stable,
    /// The next CA has signed; endpoints are coming to serve what it signed.
    Signing,
    /// Every endpoint serves what the next CA signed; targets are getting the CA after it.
    Retiring,
    /// Targets are getting a next CA that they did not know.
    Distributing,
}

/// The conditions of a ServingCertificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conditions {
    /// Calls through every target verify what is served.
    pub trusted: Verdict,
    /// Every ready endpoint serves a certificate that is valid and trusted.
    pub served: Verdict,
    /// Both, and nothing is in the way of the next renewal.
    pub ready: Verdict,
}

/// A condition's status, reason and message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether it is met.
    pub status: bool,
    /// Why, in a word.
    pub reason: Reason,
    /// Why, in a sentence.
    pub message: String,
}

/// Why a condition is or is not met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// It is met, and nothing is under way.
    Current,
    /// It is met, and a write is still to arrive everywhere.
    Updating,
    /// A target carries another trust bundle, and is being repaired.
    Untrusted,
    /// A target refuses the trust bundle.
    Blocked,
    /// There is no ready endpoint.
    NoReadyEndpoints,
    /// An endpoint serves a certificate that has ended or is not trusted.
    NotServed,
    /// There is no valid serving certificate.
    NotIssued,
    /// The durations of the spec do not work.
    InvalidDurations,
}

/// Something that stands in the way until someone sees to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// A target refuses the trust bundle. The other targets get it, and what this one trusts stays trusted.
    Target {
        /// Which object.
        target: TargetId,
        /// What the API server said.
        message: String,
    },
    /// An endpoint goes on serving a certificate of before, although its server had its time.
    Endpoint {
        /// The pod or address.
        endpoint: String,
        /// What it serves.
        message: String,
    },
    /// The value of `windlass.dev/rotate` asks for nothing.
    Request(String),
    /// A duration of the spec does not work; nothing new is issued.
    Durations(String),
}

/// So many of so many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// All.
    pub total: usize,
    /// Those that have what they should.
    pub current: usize,
}

/// The plan with these steps.
pub(super) fn report(situation: &Situation<'_>, steps: Vec<Step>) -> Plan {
    let blocked = blocked(situation);
    Plan {
        phase: phase(situation),
        wake_up: wake_up(situation, &steps),
        conditions: conditions(situation, &blocked),
        blocked,
        leaf_renewal: situation.leaf().map(|leaf| situation.timing.leaf_renewal(leaf)),
        authority_renewal: situation.authority_renewal(),
        endpoints: endpoint_tally(situation),
        targets: target_tally(situation),
        steps,
    }
}

fn phase(situation: &Situation<'_>) -> Phase {
    let authorities = &situation.authorities;
    let knows_next = matches!(authorities.trust, Trust::Known(_) | Trust::Repairing);
    let is_pressing = situation.urgency() >= Urgency::Needed;
    let can_hand_over = situation.usable_next().is_some() && situation.next_is_trusted();
    if authorities.current.is_none() || (is_pressing && !can_hand_over) {
        return Phase::Distributing;
    }
    if !authorities.retiring.is_empty() {
        return Phase::Signing;
    }
    match authorities.trust {
        _ if knows_next && authorities.next.is_some() => Phase::Stable,
        Trust::Retiring => Phase::Retiring,
        _ => Phase::Distributing,
    }
}

fn conditions(situation: &Situation<'_>, blocked: &[Blocked]) -> Conditions {
    let trusted = trusted(situation);
    let served = served(situation);
    let ready = ready(situation, &trusted, &served, blocked);
    Conditions {
        trusted,
        served,
        ready,
    }
}

fn trusted(situation: &Situation<'_>) -> Verdict {
    let now = situation.now();
    let fails = |target: &&Target| {
        let bundle = target.bundle.clone().unwrap_or_default();
        situation.bundle.is_empty()
            || bundle.is_empty()
            || situation
                .served_chains()
                .any(|chain| !bundle.verifies(&chain, now) && situation.bundle.verifies(&chain, now))
    };
    if let Some(target) = situation.refusing_targets().find(fails) {
        let message = target.refused.clone().unwrap_or_default();
        return Verdict::no(
            Reason::Blocked,
            format!("{} refuses the trust bundle: {message}", target.id),
        );
    }
    if let Some(target) = situation.open_targets().find(fails) {
        return Verdict::no(
            Reason::Untrusted,
            format!(
                "{} does not trust what is served, and is being given the trust bundle",
                target.id
            ),
        );
    }
    let Tally { total, current } = target_tally(situation);
    if current < total {
        return Verdict::yes(
            Reason::Updating,
            format!("{current} of {total} targets carry the trust bundle; the others trust what is served"),
        );
    }
    Verdict::yes(
        Reason::Current,
        format!("all of {total} targets carry the trust bundle"),
    )
}

fn served(situation: &Situation<'_>) -> Verdict {
    let now = situation.now();
    let ready = || {
        situation
            .observation
            .endpoints
            .iter()
            .filter(|endpoint| endpoint.ready)
    };
    if ready().next().is_none() {
        return Verdict::no(
            Reason::NoReadyEndpoints,
            "the Service has no ready endpoint".to_owned(),
        );
    }
    let fails = ready().find(|endpoint| {
        endpoint
            .chain()
            .is_some_and(|chain| !chain.leaf.is_valid_at(now) || !situation.bundle.verifies(chain, now))
    });
    if let Some(endpoint) = fails {
        return Verdict::no(
            Reason::NotServed,
            format!(
                "{} serves a certificate that has ended or is not trusted",
                endpoint.name
            ),
        );
    }
    let Tally { total, current } = endpoint_tally(situation);
    if current < total {
        return Verdict::yes(
            Reason::Updating,
            format!("{current} of {total} ready endpoints were seen serving the certificate in the Secret"),
        );
    }
    Verdict::yes(
        Reason::Current,
        format!("all of {total} ready endpoints serve the certificate in the Secret"),
    )
}

fn ready(situation: &Situation<'_>, trusted: &Verdict, served: &Verdict, blocked: &[Blocked]) -> Verdict {
    for problem in blocked {
        match problem {
            Blocked::Durations(message) => return Verdict::no(Reason::InvalidDurations, message.clone()),
            Blocked::Target { .. } => return Verdict::no(Reason::Blocked, problem.to_string()),
            Blocked::Endpoint { .. } | Blocked::Request(_) => {}
        }
    }
    if !situation
        .leaf()
        .is_some_and(|leaf| leaf.is_valid_at(situation.now()))
    {
        return Verdict::no(
            Reason::NotIssued,
            "there is no valid serving certificate yet".to_owned(),
        );
    }
    for verdict in [trusted, served] {
        if !verdict.status {
            return verdict.clone();
        }
    }
    let message = blocked.first().map_or_else(
        || "the serving certificate is served, and trusted by every target".to_owned(),
        Blocked::to_string,
    );
    let is_updating = [trusted, served]
        .iter()
        .any(|verdict| verdict.reason == Reason::Updating);
    let reason = if is_updating {
        Reason::Updating
    } else {
        Reason::Current
    };
    Verdict::yes(reason, message)
}

fn blocked(situation: &Situation<'_>) -> Vec<Blocked> {
    let problems = situation.timing.problems().into_iter();
    let durations = problems.map(|problem| Blocked::Durations(problem.to_string()));

    let refusing = situation
        .refusing_targets()
        .filter(|target| !situation.is_current(target));
    let targets = refusing.map(|target| Blocked::Target {
        target: target.id.clone(),
        message: target.refused.clone().unwrap_or_default(),
    });

    let is_late = situation
        .published_at()
        .is_some_and(|published| situation.wait_left(&published, situation.timing.reload).is_none());
    let behind = endpoints::behind(situation).filter(|_| is_late);
    let behind = behind.map(|(endpoint, leaf)| Blocked::Endpoint {
        endpoint: endpoint.name.clone(),
        message: format!(
            "serves a certificate that is valid until {}, not the one in the Secret",
            leaf.validity.not_after
        ),
    });

    let request = situation.observation.request.as_deref();
    let request = request.and_then(|value| value.parse::<Request>().err());
    let request = request.map(|error| Blocked::Request(error.to_string()));
    durations.chain(targets).chain(behind).chain(request).collect()
}

/// The earliest moment at which the plan may be another although nothing else changed.
fn wake_up(situation: &Situation<'_>, steps: &[Step]) -> SignedDuration {
    let timing = situation.timing;
    if steps
        .iter()
        .any(|step| matches!(step, Step::ChangeAuthorities { .. }))
    {
        return SignedDuration::ZERO;
    }
    let now = situation.now();
    let until = |moment: Timestamp| now.duration_until(moment);
    let leaf = situation.leaf();
    let moments = leaf
        .map(|leaf| timing.leaf_renewal(leaf))
        .into_iter()
        .chain(leaf.map(|leaf| timing.last_call(leaf)))
        .chain(situation.authority_renewal())
        .map(until);

    let trust = match &situation.authorities.trust {
        Trust::Known(mark) => situation.wait_left(mark, timing.trust),
        Trust::Distributing | Trust::Retiring | Trust::Repairing => None,
    };
    let retiring = situation.authorities.retiring.iter();
    let holds = retiring.filter_map(|authority| endpoints::hold_left(situation, authority));
    let rollout = situation.observation.rollout.as_ref();
    let restart = rollout.and_then(|rollout| endpoints::restart_wait(situation, rollout));
    let behind = endpoints::behind(situation).next().map(|_| timing.poll);
    let refusing = situation.refusing_targets().next().map(|_| timing.retry);
    let written = (!steps.is_empty() && refusing.is_none()).then_some(timing.poll);
    moments
        .chain(trust)
        .chain(holds)
        .chain(restart)
        .chain(behind)
        .chain(refusing)
        .chain(written)
        .filter(|wait| wait.is_positive())
        .fold(timing.longest_sleep, SignedDuration::min)
}

fn endpoint_tally(situation: &Situation<'_>) -> Tally {
    let published = situation.leaf().map(|leaf| leaf.fingerprint);
    let ready = || {
        situation
            .observation
            .endpoints
            .iter()
            .filter(|endpoint| endpoint.ready)
    };
    let serves = |served: &Served| match served {
        Served::Chain(chain) => Some(chain.leaf.fingerprint) == published,
        Served::Unobservable(_) => false,
    };
    Tally {
        total: ready().count(),
        current: ready().filter(|endpoint| serves(&endpoint.served)).count(),
    }
}

fn target_tally(situation: &Situation<'_>) -> Tally {
    let targets = &situation.observation.targets;
    Tally {
        total: targets.len(),
        current: targets
            .iter()
            .filter(|target| situation.is_current(target))
            .count(),
    }
}

// === impl Verdict ===

impl Verdict {
    fn yes(reason: Reason, message: String) -> Self {
        Self {
            status: true,
            reason,
            message,
        }
    }

    fn no(reason: Reason, message: String) -> Self {
        Self {
            status: false,
            reason,
            message,
        }
    }
}

// === impl Reason ===

impl fmt::Display for Reason {
    /// As a condition's reason is spelled.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

// === impl Blocked ===

impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Target { target, message } => write!(f, "{target} refuses the trust bundle: {message}"),
            Self::Endpoint { endpoint, message } => write!(f, "{endpoint} {message}"),
            Self::Request(message) | Self::Durations(message) => f.write_str(message),
        }
    }
}
