//! Problems that block a rotation.

use std::fmt;

use jiff::Timestamp;
use windlass_object::ObjectKey;

use crate::rotation::{
    endpoints::{self, Hold},
    repair_limiter::Contested,
    request::ManualRotation,
    situation::Situation,
};

/// A problem that persists until a user fixes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// A target rejects the trust bundle. Other targets are still updated, and what this one trusts stays
    /// trusted.
    Target {
        /// Key of the target.
        target: ObjectKey,
        /// The error from the API server.
        message: String,
    },
    /// Another controller removes the trust bundle from a target. Windlass restores it each time.
    Contested {
        /// Key of the target.
        target: ObjectKey,
        /// The other controller, and how often it removes the trust bundle.
        contested: Contested,
    },
    /// An endpoint still serves a replaced certificate although its server had time to reload.
    Endpoint {
        /// The pod or address.
        endpoint: String,
        /// What the endpoint serves, as a predicate.
        message: String,
    },
    /// Servers that could not be observed may serve old certificates, so the CA that signed these stays
    /// trusted.
    Unobservable {
        /// What cannot be observed, and why.
        message: String,
        /// When the last old certificate expires.
        until: Timestamp,
    },
    /// A kind of targets was never listed. Known targets are still updated, but the signing and trusted CAs
    /// stay the same.
    Unlisted(String),
    /// The value of `windlass.dev/rotate` is invalid.
    Request(String),
    /// A duration in the spec is invalid; no new certificate is issued.
    Durations(String),
}

/// Returns all problems that block the rotation.
pub(super) fn blocked(situation: &Situation<'_>) -> Vec<Blocked> {
    let problems = situation.timing.problems().into_iter();
    let durations = problems.map(|problem| Blocked::Durations(problem.to_string()));

    let unlisted = situation
        .observation
        .unlisted
        .iter()
        .cloned()
        .map(Blocked::Unlisted);

    let refusing = situation
        .refusing_targets()
        .filter(|target| !situation.is_current(target));
    let targets = refusing.map(|target| Blocked::Target {
        target: target.id.clone(),
        message: target.refused.clone().unwrap_or_default(),
    });

    let contested = situation.observation.targets.iter().filter_map(|target| {
        Some(Blocked::Contested {
            target: target.id.clone(),
            contested: target.contested.clone()?,
        })
    });

    let is_late = situation
        .published_at()
        .is_some_and(|published| situation.wait_left(&published, situation.timing.reload).is_none());
    let behind = endpoints::outdated_endpoints(situation).filter(|_| is_late);
    let behind = behind.map(|(endpoint, leaf)| Blocked::Endpoint {
        endpoint: endpoint.name.clone(),
        message: format!(
            "still serves the certificate expiring {}; it has not reloaded the Secret",
            leaf.validity.not_after
        ),
    });

    let held = situation.authorities.retiring.iter().filter_map(|authority| {
        match endpoints::hold(situation, authority)? {
            Hold::Unobserved(until) => Some(until),
            Hold::Wait(_) | Hold::Served => None,
        }
    });
    let unobservable = held.max().map(|until| Blocked::Unobservable {
        message: situation.observation.unobserved_reason(),
        until,
    });

    let request = situation.observation.request.as_deref();
    let request = request.and_then(|value| value.parse::<ManualRotation>().err());
    let request = request.map(|error| Blocked::Request(error.to_string()));
    durations
        .chain(targets)
        .chain(unlisted)
        .chain(contested)
        .chain(behind)
        .chain(unobservable)
        .chain(request)
        .collect()
}

impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Target { target, message } => write!(f, "{target} refuses the trust bundle: {message}"),
            Self::Contested { target, contested } => write!(f, "{target}: {contested}"),
            Self::Endpoint { endpoint, message } => write!(f, "{endpoint} {message}"),
            Self::Unobservable { message, until } => {
                write!(
                    f,
                    "{message}; certificates of the previous CA stay trusted until {until}"
                )
            }
            Self::Unlisted(kind) => write!(
                f,
                "{kind} cannot be listed, so its objects that request this trust bundle are unknown: no CA is replaced until it can be listed; check why the API server does not list it"
            ),
            Self::Request(message) | Self::Durations(message) => f.write_str(message),
        }
    }
}
