//! The conditions of a ServingCertificate. They speak of what works, and counts of how far a change has come.

use std::fmt;

use crate::rotation::{
    blocked::Blocked,
    certificate::Chain,
    endpoint_counts::EndpointCounts,
    endpoints,
    observation::{ObservedEndpoint, Target},
    situation::Situation,
};

/// The conditions of a ServingCertificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assessments {
    /// Calls through every target verify what is served.
    pub trusted: Assessment,
    /// Every ready endpoint serves a certificate that is valid and trusted.
    pub served: Assessment,
    /// Both, and nothing is in the way of the next renewal.
    pub ready: Assessment,
}

/// A condition's status, reason and message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assessment {
    /// Whether it is met.
    pub status: ConditionStatus,
    /// Why, in a word.
    pub reason: Reason,
    /// Why, in a sentence.
    pub message: String,
}

/// What a condition's status says (Kubernetes API conventions, "typical status properties").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConditionStatus {
    /// It is met.
    True,
    /// It is not met.
    False,
    /// Nobody could look.
    Unknown,
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
    /// It is met, and somebody else keeps taking the trust bundle from a target.
    Contested,
    /// It is met as far as can be seen: a kind of targets cannot be listed.
    TargetsUnlisted,
    /// A target refuses the trust bundle.
    Blocked,
    /// There is no Service.
    NoService,
    /// There is no ready endpoint.
    NoReadyEndpoints,
    /// An endpoint serves a certificate that has ended or is not trusted.
    NotServed,
    /// An endpoint serves a certificate of before, or may, and that ends soon. Of several reasons this is the first.
    NotReloaded,
    /// It could not be seen what an endpoint serves.
    Unobservable,
    /// There is no valid serving certificate.
    NotIssued,
    /// The durations of the spec do not work.
    InvalidDurations,
}

/// The conditions, beside what stands in the way.
pub(super) fn conditions(situation: &Situation<'_>, blocked: &[Blocked]) -> Assessments {
    let trusted = trusted(situation);
    let served = served(situation);
    let ready = ready(situation, &trusted, &served, blocked);
    Assessments {
        trusted,
        served,
        ready,
    }
}

fn trusted(situation: &Situation<'_>) -> Assessment {
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
        return Assessment::no(
            Reason::Blocked,
            format!("{} refuses the trust bundle: {message}", target.id),
        );
    }
    if let Some(target) = situation.open_targets().find(fails) {
        let mut message = format!(
            "{} does not trust the served certificate; updating its caBundle",
            target.id
        );
        if let Some(contested) = &target.contested {
            message = format!("{message}; {contested}");
        }
        return Assessment::no(Reason::Untrusted, message);
    }
    let EndpointCounts { total, current } = EndpointCounts::of_targets(situation);
    if current < total {
        return Assessment::yes(
            Reason::Updating,
            format!(
                "{current} of {total} targets carry the trust bundle; the others trust the served certificate"
            ),
        );
    }
    if !situation.knows_all_targets() {
        let kinds = situation.observation.unlisted.join(", ");
        let message = format!("all {total} known targets carry the trust bundle; {kinds} cannot be listed");
        return Assessment::yes(Reason::TargetsUnlisted, message);
    }
    Assessment::yes(
        Reason::Current,
        format!("all {total} targets carry the trust bundle"),
    )
}

fn served(situation: &Situation<'_>) -> Assessment {
    let now = situation.now();
    let ready = || situation.observation.ready_endpoints();
    let service = &situation.observation.service;
    if !service.exists {
        let message = format!(
            "Service {} not found: create it, or correct spec.serviceName",
            service.name
        );
        return Assessment::no(Reason::NoService, message);
    }
    if ready().next().is_none() {
        let message = match (service.starting, situation.observation.endpoints.len()) {
            (None | Some(0), 0) => format!(
                "Service {} has no endpoints: check that its selector matches running pods",
                service.name
            ),
            (None | Some(0), others) => format!(
                "Service {} has no ready endpoints, and {others} that are not ready: check their pods",
                service.name
            ),
            (Some(starting), _) => format!(
                "Service {} has no ready endpoints: waiting for {starting} of its pods to start",
                service.name
            ),
        };
        return Assessment::no(Reason::NoReadyEndpoints, message);
    }
    let works = |chain: &Chain| chain.leaf.is_valid_at(now) && situation.bundle.verifies(chain, now);
    let fails = ready().find(|endpoint| !endpoint.chains.iter().all(works));
    if let Some(endpoint) = fails {
        return Assessment::no(
            Reason::NotServed,
            format!(
                "{} serves a certificate that has expired or is not trusted",
                endpoint.name
            ),
        );
    }
    let EndpointCounts { total, current } = EndpointCounts::of_endpoints(situation);
    if current < total {
        let seen =
            format!("{current} of {total} ready endpoints are known to serve the certificate in the Secret");
        return match ready().find_map(ObservedEndpoint::why_unseen) {
            Some(unseen) => Assessment::unknown(Reason::Unobservable, format!("{seen}; {unseen}")),
            None => Assessment::yes(Reason::Updating, seen),
        };
    }
    Assessment::yes(
        Reason::Current,
        format!("all {total} ready endpoints serve the certificate in the Secret"),
    )
}

/// A server that has not read its certificate again, and has not much time left.
fn not_reloaded(situation: &Situation<'_>) -> Option<Assessment> {
    let late = endpoints::not_reloaded(situation);
    let (endpoint, leaf) = late.min_by_key(|(_, leaf)| leaf.validity.not_after)?;
    let (name, end) = (&endpoint.name, leaf.validity.not_after);
    let message = match &endpoint.unobservable {
        None => format!(
            "{name} has not reloaded the serving certificate, and calls to it fail from {end} on: restart it"
        ),
        Some(why) => format!(
            "cannot see whether {name} has reloaded the serving certificate ({why}): if it has not, calls to it fail from {end} on; restart it, or let the operator connect to it"
        ),
    };
    Some(Assessment::no(Reason::NotReloaded, message))
}

/// What ends soon comes first, because calls fail then, whatever else is wrong; that is named after it.
fn ready(
    situation: &Situation<'_>,
    trusted: &Assessment,
    served: &Assessment,
    blocked: &[Blocked],
) -> Assessment {
    let otherwise = ready_but_for_reloads(situation, trusted, served, blocked);
    match not_reloaded(situation) {
        None => otherwise,
        Some(late) if otherwise.status != ConditionStatus::False => late,
        Some(late) => Assessment::no(late.reason, format!("{}; {}", late.message, otherwise.message)),
    }
}

fn ready_but_for_reloads(
    situation: &Situation<'_>,
    trusted: &Assessment,
    served: &Assessment,
    blocked: &[Blocked],
) -> Assessment {
    for problem in blocked {
        match problem {
            Blocked::Durations(message) => return Assessment::no(Reason::InvalidDurations, message.clone()),
            Blocked::Target { .. } => return Assessment::no(Reason::Blocked, problem.to_string()),
            Blocked::Contested { .. }
            | Blocked::Endpoint { .. }
            | Blocked::Unobservable { .. }
            | Blocked::Unlisted(_)
            | Blocked::Request(_) => {}
        }
    }
    if !situation
        .leaf()
        .is_some_and(|leaf| leaf.is_valid_at(situation.now()))
    {
        return Assessment::no(
            Reason::NotIssued,
            "waiting for a valid serving certificate".to_owned(),
        );
    }
    for verdict in [trusted, served] {
        if verdict.status == ConditionStatus::False {
            return verdict.clone();
        }
    }
    let mut partial = [served, trusted].into_iter();
    let partial = partial.find(|verdict| verdict.reason != Reason::Current);
    let message = blocked.first().map(Blocked::to_string);
    let message = message
        .or_else(|| partial.map(|verdict| verdict.message.clone()))
        .unwrap_or_else(|| "the certificate is served and trusted by every target".to_owned());
    let is_updating = [trusted, served]
        .iter()
        .any(|verdict| verdict.reason == Reason::Updating);
    let is_contested =
        |problem: &Blocked| matches!(problem, Blocked::Contested { contested, .. } if contested.repairs > 1);
    let reason = if blocked.iter().any(is_contested) {
        Reason::Contested
    } else if !situation.knows_all_targets() {
        Reason::TargetsUnlisted
    } else if served.status == ConditionStatus::Unknown {
        Reason::Unobservable
    } else if is_updating {
        Reason::Updating
    } else {
        Reason::Current
    };
    Assessment::yes(reason, message)
}

// === impl ConditionStatus ===

impl fmt::Display for ConditionStatus {
    /// As a condition's status is spelled.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

// === impl Assessment ===

impl Assessment {
    fn yes(reason: Reason, message: String) -> Self {
        Self {
            status: ConditionStatus::True,
            reason,
            message,
        }
    }

    fn unknown(reason: Reason, message: String) -> Self {
        Self {
            status: ConditionStatus::Unknown,
            reason,
            message,
        }
    }

    fn no(reason: Reason, message: String) -> Self {
        Self {
            status: ConditionStatus::False,
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
