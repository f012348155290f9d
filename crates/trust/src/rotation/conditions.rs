//! The conditions of a ServingCertificate: what works, and how far a change has progressed.

use crate::rotation::{
    assessment::{Assessment, Assessments, ConditionStatus, Reason},
    blocked::Blocked,
    certificate::Chain,
    endpoint_counts::EndpointCounts,
    endpoints,
    observation::{Observation, ObservedEndpoint, Target},
    situation::Situation,
};

/// The message of Ready if nothing is in progress.
pub(super) const ALL_WELL: &str = "the certificate is served and trusted by every target";

/// Computes the conditions; `blocked` are the current problems.
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
        return Assessment::not_met(
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
        return Assessment::not_met(Reason::Untrusted, message);
    }
    let EndpointCounts { total, current } = EndpointCounts::from_targets(situation);
    if current < total {
        return Assessment::met(
            Reason::Updating,
            format!(
                "{current} of {total} targets carry the trust bundle; the others trust the served certificate"
            ),
        );
    }
    if !situation.knows_all_targets() {
        let kinds = situation.observation.unlisted.join(", ");
        let message = match total {
            0 => format!("no known target requests the trust bundle; {kinds} cannot be listed"),
            1 => format!("the only known target carries the trust bundle; {kinds} cannot be listed"),
            _ => format!("all {total} known targets carry the trust bundle; {kinds} cannot be listed"),
        };
        return Assessment::met(Reason::TargetsUnlisted, message);
    }
    let message = match total {
        0 => "no target requests the trust bundle".to_owned(),
        1 => "the only target carries the trust bundle".to_owned(),
        _ => format!("all {total} targets carry the trust bundle"),
    };
    Assessment::met(Reason::Current, message)
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
        return Assessment::not_met(Reason::NoService, message);
    }
    if ready().next().is_none() {
        return Assessment::not_met(Reason::NoReadyEndpoints, no_ready_endpoints(situation));
    }
    let works = |chain: &Chain| chain.leaf.is_valid_at(now) && situation.bundle.verifies(chain, now);
    let fails = ready().find(|endpoint| !endpoint.chains.iter().all(works));
    if let Some(endpoint) = fails {
        return Assessment::not_met(
            Reason::NotServed,
            format!(
                "{} serves a certificate that has expired or is not trusted",
                endpoint.name
            ),
        );
    }
    let EndpointCounts { total, current } = EndpointCounts::from_endpoints(situation);
    if current < total {
        let seen =
            format!("{current} of {total} ready endpoints are known to serve the certificate in the Secret");
        return match ready().find_map(ObservedEndpoint::unobserved_reason) {
            Some(unseen) => Assessment::unknown(Reason::Unobservable, format!("{seen}; {unseen}")),
            None => Assessment::met(Reason::Updating, seen),
        };
    }
    let message = match total {
        1 => "the only ready endpoint serves the certificate in the Secret".to_owned(),
        _ => format!("all {total} ready endpoints serve the certificate in the Secret"),
    };
    Assessment::met(Reason::Current, message)
}

/// Advises the user only after pods had time to start, because the certificate is created before the pods
/// that mount it.
fn no_ready_endpoints(situation: &Situation<'_>) -> String {
    let Observation {
        service, endpoints, ..
    } = situation.observation;
    let name = &service.name;
    let is_late = endpoints::reload_left(situation).is_none();
    let starting = service.starting.unwrap_or_default() + endpoints.len();
    if starting == 0 {
        return match is_late {
            false => format!("Service {name} has no endpoints: waiting for its pods"),
            true => {
                format!("Service {name} has no endpoints: check that its selector matches running pods")
            }
        };
    }
    let waiting =
        format!("Service {name} has no ready endpoints: waiting for {starting} of its pods to become ready");
    let is_old = |endpoint: &&ObservedEndpoint| {
        let age = |created| situation.now().duration_since(created);
        endpoint
            .created
            .is_none_or(|created| age(created) > situation.timing.reload)
    };
    match endpoints.iter().find(is_old).filter(|_| is_late) {
        None => waiting,
        Some(endpoint) => format!("{waiting}; check why {} is not", endpoint.name),
    }
}

/// A server that has not reloaded its certificate and has little time left.
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
    Some(Assessment::not_met(Reason::NotReloaded, message))
}

/// A certificate that expires soon comes first, because calls will fail then. Other problems follow in the
/// message.
fn ready(
    situation: &Situation<'_>,
    trusted: &Assessment,
    served: &Assessment,
    blocked: &[Blocked],
) -> Assessment {
    let otherwise = ready_apart_from_reloads(situation, trusted, served, blocked);
    match not_reloaded(situation) {
        None => otherwise,
        Some(late) if otherwise.status != ConditionStatus::False => late,
        Some(late) => Assessment::not_met(late.reason, format!("{}; {}", late.message, otherwise.message)),
    }
}

fn ready_apart_from_reloads(
    situation: &Situation<'_>,
    trusted: &Assessment,
    served: &Assessment,
    blocked: &[Blocked],
) -> Assessment {
    let why = |problem: &Blocked| Some((reason(situation, problem)?, problem.to_string()));
    let is_fatal = |problem: &&Blocked| matches!(problem, Blocked::Durations(_) | Blocked::Target { .. });
    if let Some((reason, message)) = blocked.iter().find(is_fatal).and_then(why) {
        return Assessment::not_met(reason, message);
    }
    if !situation
        .leaf()
        .is_some_and(|leaf| leaf.is_valid_at(situation.now()))
    {
        return Assessment::not_met(
            Reason::NotIssued,
            "waiting for a valid serving certificate".to_owned(),
        );
    }
    for verdict in [trusted, served] {
        if verdict.status == ConditionStatus::False {
            return verdict.clone();
        }
    }
    // The reason must belong to the problem in the message.
    let partial = [served, trusted]
        .into_iter()
        .find(|verdict| verdict.reason != Reason::Current)
        .map(|verdict| (verdict.reason, verdict.message.clone()));
    let (reason, message) = blocked
        .iter()
        .find_map(why)
        .or(partial)
        .unwrap_or_else(|| (Reason::Current, ALL_WELL.to_owned()));
    Assessment::met(reason, message)
}

/// Returns the reason of Ready for a problem; `None` if the problem is over.
fn reason(situation: &Situation<'_>, problem: &Blocked) -> Option<Reason> {
    Some(match problem {
        Blocked::Durations(_) => Reason::InvalidDurations,
        Blocked::Target { .. } => Reason::Blocked,
        // A single overwrite was a mistake that is repaired already.
        Blocked::Contested { contested, .. } if contested.repairs < 2 => return None,
        Blocked::Contested { .. } => Reason::Contested,
        Blocked::Unlisted(_) => Reason::TargetsUnlisted,
        Blocked::Endpoint { .. } => Reason::Updating,
        Blocked::Unobservable { .. } if situation.observation.is_only_starting() => Reason::Updating,
        Blocked::Unobservable { .. } => Reason::Unobservable,
        Blocked::Request(_) => Reason::InvalidRequest,
    })
}
