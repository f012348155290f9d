//! What stands in the way.

use std::fmt;

use jiff::Timestamp;
use windlass_object::ObjectKey;

use crate::rotation::{
    endpoints::{self, Hold},
    repair_limiter::Contested,
    request::ManualRotation,
    situation::Situation,
};

/// Something that stands in the way until someone sees to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// A target refuses the trust bundle. The other targets get it, and what this one trusts stays trusted.
    Target {
        /// The target.
        target: ObjectKey,
        /// What the API server said.
        message: String,
    },
    /// Somebody else takes the trust bundle from a target. It is given back each time.
    Contested {
        /// The target.
        target: ObjectKey,
        /// By whom, and how often.
        contested: Contested,
    },
    /// An endpoint goes on serving a certificate of before, although its server had its time.
    Endpoint {
        /// The pod or address.
        endpoint: String,
        /// What it serves in place of the certificate in the Secret, in words.
        message: String,
    },
    /// What was not seen may serve certificates of before, so that the CA that signed them stays trusted.
    Unobservable {
        /// What is not seen, and why.
        message: String,
        /// Until when.
        until: Timestamp,
    },
    /// No list of a kind of targets was ever seen. Those that are known are cared for; which CAs sign and are trusted
    /// does not change.
    Unlisted(String),
    /// The value of `windlass.dev/rotate` asks for nothing.
    Request(String),
    /// A duration of the spec does not work; nothing new is issued.
    Durations(String),
}

/// Everything that stands in the way, by name.
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
    let behind = endpoints::behind(situation).filter(|_| is_late);
    let behind = behind.map(|(endpoint, leaf)| Blocked::Endpoint {
        endpoint: endpoint.name.clone(),
        message: format!(
            "still serves the certificate expiring {}; it has not reloaded the Secret",
            leaf.validity.not_after
        ),
    });

    let held = situation.authorities.retiring.iter().filter_map(|authority| {
        match endpoints::hold(situation, authority)? {
            Hold::Blind(until) => Some(until),
            Hold::Wait(_) | Hold::Served => None,
        }
    });
    let unobservable = held.max().map(|until| Blocked::Unobservable {
        message: situation.observation.unseen(),
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

// === impl Blocked ===

impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Target { target, message } => write!(f, "{target} refuses the trust bundle: {message}"),
            Self::Contested { target, contested } => write!(f, "{target}: {contested}"),
            Self::Endpoint { endpoint, message } => write!(f, "{endpoint} {message}"),
            Self::Unobservable { message, until } => {
                write!(
                    f,
                    "{message}; what the previous CA signed stays trusted until {until}"
                )
            }
            Self::Unlisted(kind) => write!(
                f,
                "{kind} cannot be listed, so it is not known which of its objects request this trust bundle: no CA is replaced until it can be; see what keeps the API server from listing it"
            ),
            Self::Request(message) | Self::Durations(message) => f.write_str(message),
        }
    }
}
