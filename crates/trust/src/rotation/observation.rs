//! What was read before a rotation is planned.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use windlass_object::ObjectKey;

use crate::rotation::{
    ca_state::CaState,
    certificate::{CertificateId, Chain, Fingerprint, TrustSet},
    clock::{ClockReading, Mark},
    repair_limiter::Contested,
};

/// Everything that a plan is made from. All of it is read from the cluster; `targets` are complete but for the kinds in
/// `unlisted`, and `endpoints` are complete.
#[derive(Clone, Debug)]
pub struct Observation {
    /// What the clocks said.
    pub clock: ClockReading,
    /// The CA Secret in the operator's namespace; nothing, if there is none. One that makes no sense holds
    /// [`CaState::default`].
    pub authorities: Option<Versioned<CaState>>,
    /// The serving Secret; nothing, if there is none.
    pub serving: Option<Versioned<PublishedSecret>>,
    /// The objects that ask for the trust bundle. A conversion with strategy `None` asks for nothing.
    pub targets: Vec<Target>,
    /// How long the writes of a target have been refused; of several, of the last that began to be.
    pub refused_for: Option<SignedDuration>,
    /// Kinds of targets of which no list was ever seen: any object of them may ask for the trust bundle.
    pub unlisted: Vec<String>,
    /// The Service that is served.
    pub service: ObservedService,
    /// When this process last saw a target, or `ca.crt`, without the next CA that all of them had had. A process that
    /// has just started saw nothing, and its waits begin again with it.
    pub regressed: Option<Mark>,
    /// The endpoints of the Service, ready or not.
    pub endpoints: Vec<ObservedEndpoint>,
    /// Those that keep pods running which may not serve the certificate in the Secret; none with strategy `Never`.
    pub workloads: Vec<ObservedWorkload>,
    /// The value of `windlass.dev/rotate`.
    pub request: Option<String>,
}

/// Something that was read, at the resourceVersion that a write has to find unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versioned<T> {
    /// `metadata.resourceVersion`, which is compared and never ordered.
    pub version: String,
    /// What the object said at that version.
    pub content: T,
}

/// What the serving Secret holds. Whatever is missing or unreadable is nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PublishedSecret {
    /// The first certificate of `tls.crt`, if `tls.key` is its key.
    pub leaf: Option<CertificateId>,
    /// Whether the leaf has the names and the kind of key that the spec asks for.
    pub as_asked: bool,
    /// The second certificate of `tls.crt`.
    pub cross: Option<CertificateId>,
    /// `ca.crt`.
    pub bundle: Option<TrustSet>,
    /// `olmCAKey`: the CA certificate where OLM's operators look for it.
    pub authority: Option<Fingerprint>,
}

/// An object that asks for the trust bundle.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// Names the object.
    pub id: ObjectKey,
    /// What it carries; nothing, if that is absent, or more or less than CA certificates in PEM. An object with
    /// several webhooks carries what all of them do.
    pub bundle: Option<TrustSet>,
    /// What it was given last, whatever became of that.
    pub given: Option<TrustSet>,
    /// Why the last write was refused: forbidden, invalid, its kind not served. Nothing once a write succeeded.
    pub refused: Option<String>,
    /// That somebody else has taken the trust bundle from it.
    pub contested: Option<Contested>,
    /// Whether those who trust by it get it as a file, from the kubelet.
    pub is_file: bool,
}

/// The Service that is served.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObservedService {
    /// Its name, as the spec has it.
    pub name: String,
    /// Whether there is one of that name.
    pub exists: bool,
    /// Pods that it selects and that are not among its endpoints yet: each may serve what was in the Secret when it was
    /// created. Nothing, if pods cannot be listed.
    pub starting: Option<usize>,
}

/// An endpoint of the Service.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObservedEndpoint {
    /// The pod, or the address if there is no pod.
    pub name: String,
    /// Whether requests reach it.
    pub ready: bool,
    /// When its pod was created, if that is known.
    pub created: Option<Timestamp>,
    /// What it presented, on each of its ports that was seen.
    pub chains: Vec<Chain>,
    /// Why a handshake with one of its ports did not come about.
    pub unobservable: Option<String>,
}

/// A Deployment, StatefulSet or DaemonSet that keeps pods of the Service running.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObservedWorkload {
    /// Names it.
    pub id: ObjectKey,
    /// The names of its pods, of those that may not serve the certificate in the Secret.
    pub pods: BTreeSet<String>,
    /// Whether a restart leaves a moment without a ready pod: strategy Recreate, or one replica that cannot surge.
    pub costs_requests: bool,
    /// Whether pods are being replaced.
    pub progressing: bool,
    /// The serving certificate for which it was restarted last, from the annotation of its pod template.
    pub restarted_for: Option<Fingerprint>,
}

// === impl Observation ===

impl Observation {
    /// Of a ServingCertificate for that Service, before anything else was looked at: neither Secrets nor targets, and no
    /// Service either.
    pub fn new(clock: ClockReading, service: &str) -> Self {
        Self {
            clock,
            authorities: None,
            serving: None,
            targets: Vec::new(),
            refused_for: None,
            unlisted: Vec::new(),
            service: ObservedService {
                name: service.to_owned(),
                exists: false,
                starting: Some(0),
            },
            regressed: None,
            endpoints: Vec::new(),
            workloads: Vec::new(),
            request: None,
        }
    }

    /// Whether something may be served that was not seen: by an endpoint that could not be dialled, by a pod that starts,
    /// or, where there is no endpoint at all, by whatever is called instead.
    pub(super) fn is_blind(&self) -> bool {
        self.service.starting != Some(0)
            || self.endpoints.is_empty()
            || self
                .endpoints
                .iter()
                .any(|endpoint| endpoint.unobservable.is_some())
    }

    /// What [is not seen](Self::is_blind), in words.
    pub(super) fn unseen(&self) -> String {
        let name = &self.service.name;
        let endpoint = self.ready_endpoints().find_map(ObservedEndpoint::why_unseen);
        match (endpoint, self.service.starting) {
            (Some(why), _) => format!("cannot see what an endpoint serves: {why}"),
            (None, None) => format!("cannot list the pods of Service {name}"),
            (None, Some(_)) => match self.starting_pods() {
                0 => format!("Service {name} has no endpoints"),
                starting => format!(
                    "waiting for {} of Service {name} to become ready",
                    counted(starting, "pod")
                ),
            },
        }
    }

    /// Whether what is not seen will be, once pods have started.
    pub(super) fn is_only_starting(&self) -> bool {
        self.service.starting.is_some()
            && self.starting_pods() > 0
            && self
                .ready_endpoints()
                .all(|endpoint| endpoint.unobservable.is_none())
    }

    /// How many pods are not ready: not among the endpoints yet, or among them and not dialled.
    fn starting_pods(&self) -> usize {
        let endpoints = self.endpoints.iter();
        let unready = endpoints.filter(|endpoint| !endpoint.ready && endpoint.unobservable.is_some());
        self.service.starting.unwrap_or_default() + unready.count()
    }

    /// The endpoints that requests reach.
    pub(super) fn ready_endpoints(&self) -> impl Iterator<Item = &ObservedEndpoint> {
        self.endpoints.iter().filter(|endpoint| endpoint.ready)
    }
}

/// Whether a rotation waits for a target: not for one in a namespace, where tenants could take the trust bundle from as many as they
/// like, for ever.
pub fn is_waited_for(target: &ObjectKey) -> bool {
    target.namespace.is_none()
}

// === impl Target ===

impl Target {
    /// Whether it may be written now.
    pub(super) fn is_due(&self) -> bool {
        self.contested
            .as_ref()
            .is_none_or(|contested| contested.wait.is_none())
    }

    /// Whether somebody else takes the trust bundle from it as often as it is given.
    pub(super) fn is_contested(&self) -> bool {
        self.contested
            .as_ref()
            .is_some_and(|contested| contested.repairs > 1)
    }

    /// Whether it carries that CA or, where somebody else does not leave it that, was given it: more cannot be done.
    pub(super) fn was_given(&self, authority: &CertificateId) -> bool {
        let given = self.given.as_ref().filter(|_| self.is_contested());
        self.trusts(authority) || given.is_some_and(|given| given.contains(authority))
    }

    /// Whether it carries that CA.
    pub fn trusts(&self, authority: &CertificateId) -> bool {
        self.bundle
            .as_ref()
            .is_some_and(|bundle| bundle.contains(authority))
    }
}

// === impl PublishedSecret ===

impl PublishedSecret {
    /// Which certificates servers come to send, in words that are compared.
    pub(super) fn contents(&self) -> String {
        let chain = self.leaf.iter().chain(&self.cross);
        let fingerprints: Vec<_> = chain
            .map(|certificate| certificate.fingerprint.to_string())
            .collect();
        fingerprints.join(",")
    }

    /// What servers come to send.
    pub fn chain(&self) -> Option<Chain> {
        self.leaf.map(|leaf| Chain {
            leaf,
            cross: self.cross,
        })
    }
}

// === impl ObservedEndpoint ===

impl ObservedEndpoint {
    /// Why it is not known what it serves, in words.
    pub(super) fn why_unseen(&self) -> Option<String> {
        let why = self.unobservable.as_ref()?;
        Some(format!("{}: {why}", self.name))
    }

    /// Whether it was seen, on every port, to serve just that.
    pub fn serves(&self, leaf: Option<&CertificateId>) -> bool {
        let is_it = |chain: &Chain| Some(chain.leaf.fingerprint) == leaf.map(|leaf| leaf.fingerprint);
        self.unobservable.is_none() && !self.chains.is_empty() && self.chains.iter().all(is_it)
    }
}

/// A number of things, in words; `one` is what a single one is called.
fn counted(number: usize, one: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {one}s"),
    }
}
