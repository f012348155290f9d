//! What was read before a rotation is planned.

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
    /// Kinds of targets of which no list was ever seen: any object of them may ask for the trust bundle.
    pub unlisted: Vec<String>,
    /// The Service that is served.
    pub service: ObservedService,
    /// When this process last saw a target, or `ca.crt`, without the next CA that all of them had had. A process that
    /// has just started saw nothing, and its waits begin again with it.
    pub regressed: Option<Mark>,
    /// The endpoints of the Service, ready or not.
    pub endpoints: Vec<ObservedEndpoint>,
    /// The Deployment that may be restarted; nothing with strategy `Never`, or if there is none.
    pub rollout: Option<ObservedDeployment>,
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
    /// Why the last write was refused: forbidden, invalid, its kind not served. Nothing once a write succeeded.
    pub refused: Option<String>,
    /// That somebody else has taken the trust bundle from it.
    pub contested: Option<Contested>,
}

/// The Service that is served.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObservedService {
    /// Its name, as the spec has it.
    pub name: String,
    /// Whether there is one of that name.
    pub exists: bool,
}

/// An endpoint of the Service.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObservedEndpoint {
    /// The pod, or the address if there is no pod.
    pub name: String,
    /// Whether requests reach it.
    pub ready: bool,
    /// What a handshake with it showed.
    pub served: Handshake,
}

/// What a handshake with an endpoint showed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Handshake {
    /// The server presented these certificates.
    Chain(Chain),
    /// Nothing: no handshake came about, for this reason.
    Unobservable(String),
}

/// The Deployment behind the Service.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObservedDeployment {
    /// Its name, in the namespace of the Service.
    pub deployment: String,
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
            unlisted: Vec::new(),
            service: ObservedService {
                name: service.to_owned(),
                exists: false,
            },
            regressed: None,
            endpoints: Vec::new(),
            rollout: None,
            request: None,
        }
    }

    /// The endpoints that requests reach.
    pub(super) fn ready_endpoints(&self) -> impl Iterator<Item = &ObservedEndpoint> {
        self.endpoints.iter().filter(|endpoint| endpoint.ready)
    }
}

// === impl Target ===

impl Target {
    /// Whether it may be written now.
    pub(super) fn is_due(&self) -> bool {
        self.contested
            .as_ref()
            .is_none_or(|contested| contested.wait.is_none())
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
    /// What it serves, if that could be seen.
    pub fn chain(&self) -> Option<&Chain> {
        match &self.served {
            Handshake::Chain(chain) => Some(chain),
            Handshake::Unobservable(_) => None,
        }
    }
}
