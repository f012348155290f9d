//! The CAs of one ServingCertificate, as its CA Secret holds them, and every change that is ever written to it.
//!
//! A Secret that stores [`CaState`] as JSON beside the PEM of each certificate that it names (and the keys of
//! `current` and `next` only) needs no other state. The PEM of a CA that a change takes over from elsewhere comes from
//! where it was found: the serving Secret or a target.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    pki::Validity,
    rotation::{
        certificate::{CertificateId, Fingerprint, KeyId, TrustSet},
        clock::Mark,
    },
};

/// How many serving certificates of one CA are remembered.
const MOST_LEAVES: usize = 8;

/// The CAs of one ServingCertificate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CaState {
    /// Signs; nothing only after its certificate was lost, until the next takes over.
    pub current: Option<Ca>,
    /// Is trusted already, or comes to be, and has signed nothing.
    pub next: Option<Ca>,
    /// Signed before, and stay trusted while an endpoint may serve what they signed. Their keys are gone.
    pub retiring: Vec<CertificateId>,
    /// The certificate of the current CA's key that the CA before signed.
    pub cross: Option<CertificateId>,
    /// How far the next CA is known.
    pub trust: Trust,
    /// The serving Secret that was read back last.
    pub published: Option<Published>,
    /// Serving certificates that were published and may still be served, in the order in which they were.
    pub leaves: Vec<CertificateId>,
    /// The value of `windlass.dev/rotate` that was acted upon last.
    pub request: Option<String>,
    /// Certificates that a request wants replaced. One that is not in use any more was.
    pub replace: BTreeSet<Fingerprint>,
    /// Until when what an adopted CA signed is waited for where it is not seen: its own dates are somebody else's.
    pub adopted: BTreeMap<KeyId, Timestamp>,
    /// Keys that someone else may have.
    pub distrusted: BTreeSet<KeyId>,
    /// The generation of the CA that was made last.
    pub generation: u32,
}

/// A CA that signs, or is to sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ca {
    /// Number of the CA: the CAs of a ServingCertificate are counted from 1.
    pub generation: u32,
    /// Its self-signed certificate.
    pub certificate: CertificateId,
    /// When it became the one that signs.
    pub signs_since: Option<Timestamp>,
    /// Whether its key was read and is the certificate's. Observed, never stored.
    #[serde(skip)]
    pub has_key: bool,
    /// Whether it may sign the names that the spec asks for. Observed, never stored.
    #[serde(skip)]
    pub as_asked: bool,
}

/// How far the next CA is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Trust {
    /// Targets are getting it, and may be needed to have it before anything else goes on.
    #[default]
    Distributing,
    /// Targets are getting it in the same write that takes the CAs of the rotation before from them.
    Retiring,
    /// Every target was read back with it, then.
    Known(Mark),
}

/// A serving Secret that was read back.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Published {
    /// Which certificates it held: servers need their time again once these change, whoever changed them.
    #[serde(alias = "version")]
    pub contents: String,
    /// When. It is read back rather than noted with the write, because a write can be long on its way.
    pub at: Mark,
}

/// What is to be a CA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CaTemplate {
    /// Its generation, part of its common name.
    pub generation: u32,
    /// From when until when it is valid.
    pub validity: Validity,
}

/// One write to the CA Secret: a compare-and-swap of the whole.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CaChange {
    /// Begin. Without `current`, the CAs in `retiring` are those of before whose keys are lost.
    Found {
        /// Signs at once, because there is nothing to replace.
        current: Option<(CaTemplate, Timestamp)>,
        /// The next CA: trusted from now on, signs later.
        next: CaTemplate,
        /// CAs that signed what is served.
        retiring: Vec<CertificateId>,
        /// A request that this answers, as everything is new.
        request: Option<String>,
    },
    /// Keep trusting CAs that signed what is served, although the Secret did not name them.
    Adopt {
        /// The CAs.
        certificates: Vec<CertificateId>,
        /// When their last signatures end, as far as is waited for what is not seen.
        until: Timestamp,
    },
    /// Note what a request wants. From here on it is done, whatever becomes of the annotation.
    StartRotation {
        /// The annotation's value.
        request: String,
        /// What is to be replaced.
        replace: BTreeSet<Fingerprint>,
        /// Whose keys someone else may have.
        distrusted: BTreeSet<KeyId>,
    },
    /// Make a next CA, in the place of one that cannot do its work.
    IssueNext(CaTemplate),
    /// Note which serving Secret was read back, and when.
    RecordPublished {
        /// What was read back.
        published: Published,
        /// The serving certificate in it.
        leaf: CertificateId,
    },
    /// Note that everything was seen on the serving certificate in the Secret: those before it are served no more.
    RecordServed(Fingerprint),
    /// Note that every target was read back with the next CA.
    RecordTrust(Trust),
    /// The next CA becomes the one that signs; the key of the one before is forgotten.
    Promote {
        /// The moment of its first signature.
        at: Timestamp,
        /// When the cross certificate holds that the CA before signs with its last signature; without one, it is
        /// distrusted, or its key is lost.
        cross: Option<Validity>,
    },
    /// Stop trusting CAs whose signatures no endpoint serves.
    Retire {
        /// The keys of the CAs that go.
        key_ids: BTreeSet<KeyId>,
        /// Make a next CA in the same write, so that targets are written once.
        next: Option<CaTemplate>,
    },
}

/// Makes certificates: [`pki`](crate::pki) with fresh keys, or a test.
pub trait Issuer {
    /// Why a certificate could not be made.
    type Error;

    /// A self-signed CA with a key of its own.
    ///
    /// # Errors
    /// If it cannot be made.
    fn authority(&mut self, template: &CaTemplate) -> Result<CertificateId, Self::Error>;

    /// The certificate of `subject`'s key, signed by `issuer`.
    ///
    /// # Errors
    /// If it cannot be made.
    fn cross(
        &mut self,
        subject: &CertificateId,
        issuer: &CertificateId,
        validity: Validity,
    ) -> Result<CertificateId, Self::Error>;
}

// === impl CaState ===

impl CaState {
    /// Whether there is not a CA in it.
    pub fn is_empty(&self) -> bool {
        self.certificates().next().is_none()
    }

    /// All CAs that are trusted: current, next, retiring.
    pub fn certificates(&self) -> impl Iterator<Item = &CertificateId> {
        let signing = self.current.iter().chain(&self.next);
        signing
            .map(|authority| &authority.certificate)
            .chain(&self.retiring)
    }

    /// Whether a CA with that key is one of them.
    pub fn knows(&self, key_id: KeyId) -> bool {
        self.certificates().any(|authority| authority.key_id == key_id)
    }

    /// What targets are to carry: all CAs that have not ended.
    pub fn trust_bundle(&self, now: Timestamp) -> TrustSet {
        self.certificates()
            .filter(|authority| !authority.has_ended_at(now))
            .copied()
            .collect()
    }

    /// Whether someone else may have that CA's key.
    pub fn distrusts(&self, authority: &CertificateId) -> bool {
        self.distrusted.contains(&authority.key_id)
    }

    /// When the last serving certificate ends that this CA signed and that was published; when the CA itself ends, if
    /// none is known. Of an adopted CA that is no later than noted then.
    pub fn signatures_end(&self, authority: &CertificateId) -> Timestamp {
        let signed = self.leaves.iter().filter(|leaf| leaf.is_signed_by(authority));
        let last = signed.map(|leaf| leaf.validity.not_after).max();
        let adopted = self.adopted.get(&authority.key_id).copied();
        let ends = last.into_iter().chain(adopted);
        ends.fold(authority.validity.not_after, Timestamp::min)
    }

    /// Remembers a serving certificate. Of many by one CA, the first, the last ones, and the one that ends last do: they
    /// tell when somebody fails who never read another, and when the CA may go.
    fn record_leaf(&mut self, leaf: CertificateId) {
        self.leaves.retain(|known| known.fingerprint != leaf.fingerprint);
        self.leaves.push(leaf);
        let is_sibling = |known: &CertificateId| known.issuer_key_id == leaf.issuer_key_id;
        let siblings = self.leaves.iter().enumerate();
        let siblings: Vec<_> = siblings.filter(|(_, known)| is_sibling(known)).collect();
        if siblings.len() <= MOST_LEAVES {
            return;
        }
        let last = siblings.iter().map(|(_, known)| known.validity.not_after).max();
        let dispensable = siblings.iter().skip(1);
        let mut dispensable = dispensable.filter(|(_, known)| Some(known.validity.not_after) != last);
        if let Some((index, _)) = dispensable.next().copied() {
            self.leaves.remove(index);
        }
    }

    /// Forgets the serving certificates of CAs that are gone: nothing serves them, unless a compromised one signed them.
    fn forget_leaves(&mut self) {
        let mut leaves = std::mem::take(&mut self.leaves);
        leaves.retain(|leaf| self.knows(leaf.issuer_key_id) || self.distrusted.contains(&leaf.issuer_key_id));
        self.leaves = leaves;
    }

    /// Forgets until when CAs were waited for that are gone.
    fn forget_adopted(&mut self) {
        let mut adopted = std::mem::take(&mut self.adopted);
        adopted.retain(|key_id, _| self.knows(*key_id));
        self.adopted = adopted;
    }

    /// What the CA Secret holds after a change.
    ///
    /// # Errors
    /// If a certificate that the change needs cannot be made.
    pub fn after<I: Issuer>(&self, change: &CaChange, issuer: &mut I) -> Result<Self, I::Error> {
        let mut authorities = self.clone();
        match change {
            CaChange::Found {
                current,
                next,
                retiring,
                request,
            } => {
                if let Some((template, at)) = current {
                    authorities.current = Some(authorities.issue(template, Some(*at), issuer)?);
                }
                authorities.next = Some(authorities.issue(next, None, issuer)?);
                authorities.retiring.clone_from(retiring);
                authorities.request.clone_from(request);
                authorities.trust = Trust::Distributing;
            }
            CaChange::Adopt { certificates, until } => {
                let key_ids = certificates.iter().map(|authority| authority.key_id);
                authorities.adopted.extend(key_ids.map(|key_id| (key_id, *until)));
                authorities.retiring.extend(certificates);
            }
            CaChange::StartRotation {
                request,
                replace,
                distrusted,
            } => {
                authorities.request = Some(request.clone());
                authorities.replace.clone_from(replace);
                authorities.distrusted.clone_from(distrusted);
            }
            CaChange::IssueNext(template) => {
                authorities.next = Some(authorities.issue(template, None, issuer)?);
                authorities.trust = Trust::Distributing;
            }
            CaChange::RecordPublished { published, leaf } => {
                authorities.published = Some(published.clone());
                authorities.record_leaf(*leaf);
            }
            CaChange::RecordServed(served) => {
                let Self { leaves, retiring, .. } = &mut authorities;
                let is_held =
                    |leaf: &CertificateId| retiring.iter().any(|authority| leaf.is_signed_by(authority));
                leaves.retain(|leaf| leaf.fingerprint == *served || is_held(leaf));
            }
            CaChange::RecordTrust(trust) => authorities.trust = *trust,
            CaChange::Promote { at, cross } => authorities.promote(*at, *cross, issuer)?,
            CaChange::Retire { key_ids, next } => {
                authorities
                    .retiring
                    .retain(|authority| !key_ids.contains(&authority.key_id));
                authorities.forget_leaves();
                authorities.forget_adopted();
                if let Some(template) = next {
                    authorities.next = Some(authorities.issue(template, None, issuer)?);
                    authorities.trust = Trust::Retiring;
                }
            }
        }
        Ok(authorities)
    }

    fn issue<I: Issuer>(
        &mut self,
        template: &CaTemplate,
        signs_since: Option<Timestamp>,
        issuer: &mut I,
    ) -> Result<Ca, I::Error> {
        let certificate = issuer.authority(template)?;
        self.generation = template.generation;
        Ok(Ca {
            generation: template.generation,
            certificate,
            signs_since,
            has_key: true,
            as_asked: true,
        })
    }

    fn promote<I: Issuer>(
        &mut self,
        at: Timestamp,
        cross: Option<Validity>,
        issuer: &mut I,
    ) -> Result<(), I::Error> {
        let Some(next) = self.next.take() else {
            return Ok(());
        };
        let before = self.current.take();
        self.cross = match (before, cross) {
            (Some(before), Some(validity)) => {
                Some(issuer.cross(&next.certificate, &before.certificate, validity)?)
            }
            _ => None,
        };
        self.retiring
            .extend(before.map(|authority| authority.certificate));
        self.current = Some(Ca {
            signs_since: Some(at),
            ..next
        });
        self.trust = Trust::Distributing;
        Ok(())
    }
}
