//! The observed state that a rotation is planned from.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use windlass_object::ObjectKey;

use crate::rotation::{
    ca_state::CaState,
    certificate::{CertificateId, Chain, Fingerprint, TrustSet},
    clock::{ClockReading, Mark},
    repair_limiter::Contested,
};

/// The input of a plan, all read from the cluster. `targets` are complete except for kinds in `unlisted`;
/// `endpoints` are complete.
#[derive(Clone, Debug)]
pub struct Observation {
    /// The time by both clocks.
    pub clock: ClockReading,
    /// The CA Secret in the operator's namespace, if it exists. If it is unreadable, it holds
    /// [`CaState::default`].
    pub authorities: Option<Versioned<CaState>>,
    /// The serving Secret, if it exists.
    pub serving: Option<Versioned<PublishedSecret>>,
    /// The objects that request the trust bundle. A conversion with strategy `None` does not.
    pub targets: Vec<Target>,
    /// How long writes of a target have been rejected; the shortest time if there are several targets.
    pub refused_for: Option<SignedDuration>,
    /// Kinds of targets that were never listed: any object of them may request the trust bundle.
    pub unlisted: Vec<String>,
    /// The Service of the ServingCertificate, with its pods.
    pub service: ObservedService,
    /// When this process last saw that a target, or `ca.crt`, lost the next CA after all had it. A new
    /// process starts without this, and restarts its waits.
    pub regressed: Option<Mark>,
    /// The endpoints of the Service, ready or not.
    pub endpoints: Vec<ObservedEndpoint>,
    /// Workloads whose pods may not serve the certificate in the Secret; none with strategy `Never`.
    pub workloads: Vec<ObservedWorkload>,
    /// The value of `windlass.dev/rotate`.
    pub request: Option<String>,
}

/// An object at a resourceVersion that must be unchanged on a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versioned<T> {
    /// `metadata.resourceVersion`, which is compared but never ordered.
    pub version: String,
    /// The contents at that version.
    pub content: T,
}

/// The contents of the serving Secret. Missing and unreadable parts are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PublishedSecret {
    /// The first certificate of `tls.crt`, if `tls.key` is its key.
    pub leaf: Option<CertificateId>,
    /// Whether the leaf has the names and the key algorithm in the spec.
    pub matches_spec: bool,
    /// The second certificate of `tls.crt`.
    pub cross: Option<CertificateId>,
    /// `ca.crt`.
    pub bundle: Option<TrustSet>,
    /// `olmCAKey`: the CA certificate under the key that OLM uses.
    pub authority: Option<Fingerprint>,
}

/// An object that requests the trust bundle.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// Kind, namespace and name of the target.
    pub id: ObjectKey,
    /// The trust bundle in it; `None` if it is absent or is not exactly CA certificates in PEM. For several
    /// webhooks, the certificates that all of them have.
    pub bundle: Option<TrustSet>,
    /// The trust bundle that Windlass last wrote to it, whether the write succeeded or not.
    pub last_written: Option<TrustSet>,
    /// Why the last write was rejected: forbidden, invalid, kind not served. `None` after a successful write.
    pub refused: Option<String>,
    /// Set if another controller removed the trust bundle from it.
    pub contested: Option<Contested>,
    /// Whether clients read it from a file that the kubelet updates.
    pub is_file: bool,
}

/// The Service of the ServingCertificate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObservedService {
    /// Name of the Service in the spec.
    pub name: String,
    /// Whether the Service exists.
    pub exists: bool,
    /// How many selected pods are not endpoints yet. Each may serve the contents of the Secret from when it
    /// was created. `None` if pods cannot be listed.
    pub starting: Option<usize>,
}

/// An endpoint of the Service.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObservedEndpoint {
    /// The pod, or the address if there is no pod.
    pub name: String,
    /// Whether the endpoint is ready, and so receives requests.
    pub ready: bool,
    /// When the pod was created, if known.
    pub created: Option<Timestamp>,
    /// The chains that it presented on its observed ports.
    pub chains: Vec<Chain>,
    /// Why a TLS handshake with one of its ports failed.
    pub unobservable: Option<String>,
}

/// A Deployment, StatefulSet or DaemonSet that runs pods of the Service.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObservedWorkload {
    /// Kind, namespace and name of the workload.
    pub id: ObjectKey,
    /// The names of the workload's pods that may not serve the certificate in the Secret.
    pub pods: BTreeSet<String>,
    /// Whether a restart may leave no pod ready: strategy Recreate, or one replica that cannot surge.
    pub costs_requests: bool,
    /// Whether pods are being replaced.
    pub progressing: bool,
    /// The serving certificate of its last restart, from the annotation of its pod template.
    pub restarted_for: Option<Fingerprint>,
}

impl Observation {
    /// Creates an empty observation: no Secrets, targets or Service.
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

    /// Reports whether certificates may be served that were not observed: by an endpoint that could not be
    /// reached, by a starting pod, or, without endpoints, by whatever is called instead.
    pub(super) fn has_unobserved_servers(&self) -> bool {
        self.service.starting != Some(0)
            || self.endpoints.is_empty()
            || self
                .endpoints
                .iter()
                .any(|endpoint| endpoint.unobservable.is_some())
    }

    /// Describes [what was not observed](Self::has_unobserved_servers).
    pub(super) fn unobserved_reason(&self) -> String {
        let name = &self.service.name;
        let endpoint = self
            .ready_endpoints()
            .find_map(ObservedEndpoint::unobserved_reason);
        match (endpoint, self.service.starting) {
            (Some(why), _) => format!("cannot see what an endpoint serves: {why}"),
            (None, None) => format!("cannot list the pods of Service {name}"),
            (None, Some(_)) => match self.starting_pods() {
                0 => format!("Service {name} has no endpoints"),
                starting => format!(
                    "waiting for {} of Service {name} to become ready",
                    with_noun(starting, "pod")
                ),
            },
        }
    }

    /// Reports whether all unobserved servers are pods that are starting.
    pub(super) fn is_only_starting(&self) -> bool {
        self.service.starting.is_some()
            && self.starting_pods() > 0
            && self
                .ready_endpoints()
                .all(|endpoint| endpoint.unobservable.is_none())
    }

    /// Counts pods that are not ready: not endpoints yet, or endpoints that could not be reached.
    fn starting_pods(&self) -> usize {
        let endpoints = self.endpoints.iter();
        let unready = endpoints.filter(|endpoint| !endpoint.ready && endpoint.unobservable.is_some());
        self.service.starting.unwrap_or_default() + unready.count()
    }

    /// Returns the endpoints that receive requests.
    pub(super) fn ready_endpoints(&self) -> impl Iterator<Item = &ObservedEndpoint> {
        self.endpoints.iter().filter(|endpoint| endpoint.ready)
    }
}

/// Reports whether a rotation waits for a target. It does not for namespaced ones: a tenant could remove the
/// trust bundle from any number of them forever.
pub fn blocks_rotation(target: &ObjectKey) -> bool {
    target.namespace.is_none()
}

impl Target {
    /// Reports whether the target may be written now.
    pub(super) fn is_due(&self) -> bool {
        self.contested
            .as_ref()
            .is_none_or(|contested| contested.wait.is_none())
    }

    /// Reports whether another controller removes the trust bundle from it after each write.
    pub(super) fn is_contested(&self) -> bool {
        self.contested
            .as_ref()
            .is_some_and(|contested| contested.repairs > 1)
    }

    /// Reports whether the target's CA bundle contains `authority`, or, if another controller overwrites the
    /// bundle, whether Windlass last wrote it with `authority`.
    pub(super) fn trusts_or_was_given(&self, authority: &CertificateId) -> bool {
        let given = self.last_written.as_ref().filter(|_| self.is_contested());
        self.trusts(authority) || given.is_some_and(|given| given.contains(authority))
    }

    /// Reports whether the target carries that CA.
    pub fn trusts(&self, authority: &CertificateId) -> bool {
        self.bundle
            .as_ref()
            .is_some_and(|bundle| bundle.contains(authority))
    }
}

impl PublishedSecret {
    /// Lists the fingerprints of the certificates that servers load.
    pub(super) fn contents(&self) -> String {
        let chain = self.leaf.iter().chain(&self.cross);
        let fingerprints: Vec<_> = chain
            .map(|certificate| certificate.fingerprint.to_string())
            .collect();
        fingerprints.join(",")
    }

    /// Returns the chain that servers load.
    pub fn chain(&self) -> Option<Chain> {
        self.leaf.map(|leaf| Chain {
            leaf,
            cross: self.cross,
        })
    }
}

impl ObservedEndpoint {
    /// Describes why its certificate is unknown; `None` if it was observed.
    pub(super) fn unobserved_reason(&self) -> Option<String> {
        let why = self.unobservable.as_ref()?;
        Some(format!("{}: {why}", self.name))
    }

    /// Reports whether the endpoint serves exactly `leaf` on every port.
    pub fn serves(&self, leaf: Option<&CertificateId>) -> bool {
        let is_it = |chain: &Chain| Some(chain.leaf.fingerprint) == leaf.map(|leaf| leaf.fingerprint);
        self.unobservable.is_none() && !self.chains.is_empty() && self.chains.iter().all(is_it)
    }
}

/// Formats a count with its noun.
fn with_noun(number: usize, one: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {one}s"),
    }
}
