//! The CAs of one ServingCertificate, as stored in its CA Secret, and all changes of that Secret.
//!
//! The Secret stores [`CaState`] as JSON, the PEM of each certificate in it, and the keys of `current` and
//! `next`. There is no other state. The PEM of an adopted CA comes from the serving Secret or from a target.

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

/// How many serving certificates per CA are remembered.
const MAX_LEAVES: usize = 8;

/// The CAs of one ServingCertificate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CaState {
    /// The CA that signs. `None` only after its certificate was lost, until the next CA takes over.
    pub current: Option<Ca>,
    /// The CA that signs next. It is trusted already or being distributed, and has signed nothing.
    pub next: Option<Ca>,
    /// Former CAs that stay trusted while an endpoint may serve their certificates. Their keys are deleted.
    pub retiring: Vec<CertificateId>,
    /// The certificate of the current CA's key, signed by the previous CA.
    pub cross: Option<CertificateId>,
    /// How far the next CA is distributed.
    pub trust: Trust,
    /// The serving Secret that was read back last.
    pub published: Option<Published>,
    /// Published serving certificates that may still be served, in order of publication.
    pub leaves: Vec<CertificateId>,
    /// The last executed value of `windlass.dev/rotate`.
    pub request: Option<String>,
    /// Certificates to replace by request. Those that are no longer in use are done.
    pub replace: BTreeSet<Fingerprint>,
    /// Until when an adopted CA is kept for servers that cannot be observed. Its own validity is not trusted.
    pub adopted: BTreeMap<KeyId, Timestamp>,
    /// Compromised keys.
    pub distrusted: BTreeSet<KeyId>,
    /// The generation of the newest CA.
    pub generation: u32,
}

/// A CA that signs now or next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ca {
    /// The generation: the CAs of a ServingCertificate are numbered from 1.
    pub generation: u32,
    /// Self-signed certificate of the CA.
    pub certificate: CertificateId,
    /// When the CA started to sign.
    pub signs_since: Option<Timestamp>,
    /// Whether the matching key was read. Observed, never stored.
    #[serde(skip)]
    pub has_key: bool,
    /// Whether the CA may sign the names in the spec. Observed, never stored.
    #[serde(skip)]
    pub matches_spec: bool,
}

/// How far the next CA is distributed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Trust {
    /// Targets are being updated; other steps may depend on it.
    #[default]
    Distributing,
    /// Targets are being updated in the same write that removes the retired CAs.
    Retiring,
    /// Every target was read back with the next CA, at that time.
    Known(Mark),
}

/// A serving Secret that was read back.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Published {
    /// The certificates in it. Servers get time to reload whenever these change, regardless of who changed
    /// them.
    #[serde(alias = "version")]
    pub contents: String,
    /// When it was read back. Not the time of the write, because a write may be delayed.
    pub at: Mark,
}

/// A CA to create.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CaTemplate {
    /// Generation of the CA, which is part of its common name.
    pub generation: u32,
    /// When the CA is valid.
    pub validity: Validity,
}

/// One write to the CA Secret: a compare-and-swap of the whole Secret.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CaChange {
    /// Create the first CAs. Without `current`, the CAs in `retiring` are previous ones whose keys are lost.
    Create {
        /// The CA that signs immediately, because there is nothing to replace.
        current: Option<(CaTemplate, Timestamp)>,
        /// The next CA: trusted immediately, signs later.
        next: CaTemplate,
        /// CAs that signed served certificates.
        retiring: Vec<CertificateId>,
        /// A request that this also fulfills, because all certificates are new.
        request: Option<String>,
    },
    /// Keep trusting CAs that signed served certificates although the Secret does not contain them.
    Adopt {
        /// The CAs to keep.
        certificates: Vec<CertificateId>,
        /// Until when the CAs are kept for servers that cannot be observed.
        until: Timestamp,
    },
    /// Record a request. From then on it is executed even if the annotation is removed.
    StartRotation {
        /// The value of the annotation.
        request: String,
        /// The certificates to replace.
        replace: BTreeSet<Fingerprint>,
        /// The compromised keys.
        distrusted: BTreeSet<KeyId>,
    },
    /// Create a next CA that replaces an unusable one.
    IssueNext(CaTemplate),
    /// Record that the serving Secret was read back.
    RecordPublished {
        /// The certificates in the Secret, and when they were read back.
        published: Published,
        /// The serving certificate in the Secret.
        leaf: CertificateId,
    },
    /// Record that all endpoints serve the certificate in the Secret, so earlier ones are no longer served.
    RecordServed(Fingerprint),
    /// Record that every target was read back with the next CA.
    RecordTrust(Trust),
    /// Make the next CA the current one and delete the key of the previous one.
    Promote {
        /// When the next CA starts to sign.
        at: Timestamp,
        /// Validity of the cross certificate, which is the last signature of the previous CA. `None` if that
        /// CA is distrusted or its key is lost.
        cross: Option<Validity>,
    },
    /// Stop trusting CAs whose certificates no endpoint serves.
    Retire {
        /// The keys of these CAs.
        key_ids: BTreeSet<KeyId>,
        /// Create a next CA in the same write, so that targets are written once.
        next: Option<CaTemplate>,
    },
}

/// Creates certificates: [`pki`](crate::pki) with new keys, or a fake in tests.
pub trait Issuer {
    /// Why a certificate could not be created.
    type Error;

    /// Creates a self-signed CA with a new key.
    ///
    /// # Errors
    /// If it cannot be created.
    fn authority(&mut self, template: &CaTemplate) -> Result<CertificateId, Self::Error>;

    /// Creates a certificate of `subject`'s key, signed by `issuer`.
    ///
    /// # Errors
    /// If it cannot be created.
    fn cross(
        &mut self,
        subject: &CertificateId,
        issuer: &CertificateId,
        validity: Validity,
    ) -> Result<CertificateId, Self::Error>;
}

impl CaState {
    /// Reports whether there is no CA.
    pub fn is_empty(&self) -> bool {
        self.certificates().next().is_none()
    }

    /// Returns all trusted CAs: current, next, retiring.
    pub fn certificates(&self) -> impl Iterator<Item = &CertificateId> {
        let signing = self.current.iter().chain(&self.next);
        signing
            .map(|authority| &authority.certificate)
            .chain(&self.retiring)
    }

    /// Reports whether a trusted CA has that key.
    pub fn knows(&self, key_id: KeyId) -> bool {
        self.certificates().any(|authority| authority.key_id == key_id)
    }

    /// Returns the desired trust bundle: the current, next and retiring CAs that have not expired.
    pub fn trust_bundle(&self, now: Timestamp) -> TrustSet {
        self.certificates()
            .filter(|authority| !authority.has_ended_at(now))
            .copied()
            .collect()
    }

    /// Reports whether the key of `authority` is compromised.
    pub fn distrusts(&self, authority: &CertificateId) -> bool {
        self.distrusted.contains(&authority.key_id)
    }

    /// Returns when the last published certificate of this CA expires, or when the CA itself does if none is
    /// known. For an adopted CA, the recorded time is an upper limit.
    pub fn signatures_end(&self, authority: &CertificateId) -> Timestamp {
        let signed = self.leaves.iter().filter(|leaf| leaf.is_signed_by(authority));
        let last = signed.map(|leaf| leaf.validity.not_after).max();
        let adopted = self.adopted.get(&authority.key_id).copied();
        let ends = last.into_iter().chain(adopted);
        ends.fold(authority.validity.not_after, Timestamp::min)
    }

    /// Remembers a serving certificate. Of many by one CA, keeps the first, the latest ones, and the one that
    /// expires last: they show when a server that never reloads fails, and when the CA may be retired.
    fn record_leaf(&mut self, leaf: CertificateId) {
        self.leaves.retain(|known| known.fingerprint != leaf.fingerprint);
        self.leaves.push(leaf);
        let is_sibling = |known: &CertificateId| known.issuer_key_id == leaf.issuer_key_id;
        let siblings = self.leaves.iter().enumerate();
        let siblings: Vec<_> = siblings.filter(|(_, known)| is_sibling(known)).collect();
        if siblings.len() <= MAX_LEAVES {
            return;
        }
        let last = siblings.iter().map(|(_, known)| known.validity.not_after).max();
        let dispensable = siblings.iter().skip(1);
        let mut dispensable = dispensable.filter(|(_, known)| Some(known.validity.not_after) != last);
        if let Some((index, _)) = dispensable.next().copied() {
            self.leaves.remove(index);
        }
    }

    /// Forgets serving certificates of removed CAs: they are not served, unless a compromised CA signed them.
    fn forget_leaves(&mut self) {
        let mut leaves = std::mem::take(&mut self.leaves);
        leaves.retain(|leaf| self.knows(leaf.issuer_key_id) || self.distrusted.contains(&leaf.issuer_key_id));
        self.leaves = leaves;
    }

    /// Forgets the recorded times of removed CAs.
    fn forget_adopted(&mut self) {
        let mut adopted = std::mem::take(&mut self.adopted);
        adopted.retain(|key_id, _| self.knows(*key_id));
        self.adopted = adopted;
    }

    /// Returns the contents of the CA Secret after a change.
    ///
    /// # Errors
    /// If a certificate cannot be created.
    pub fn with_change<I: Issuer>(&self, change: &CaChange, issuer: &mut I) -> Result<Self, I::Error> {
        let mut authorities = self.clone();
        match change {
            CaChange::Create {
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
            matches_spec: true,
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
