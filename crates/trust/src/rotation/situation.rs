//! Facts derived from an observation.

use std::{borrow::Cow, collections::BTreeSet};

use jiff::{SignedDuration, Timestamp};

use crate::rotation::{
    ca_state::{Ca, CaState, Trust},
    certificate::{CertificateId, Chain, TrustSet},
    clock::Mark,
    observation::{Observation, PublishedSecret, Target, blocks_rotation},
    step::Step,
    timing::Timing,
};

/// An observation and facts derived from it.
pub(super) struct Situation<'a> {
    pub(super) observation: &'a Observation,
    pub(super) timing: &'a Timing,
    pub(super) authorities: Cow<'a, CaState>,
    /// The desired trust bundle of targets and `ca.crt`.
    pub(super) bundle: TrustSet,
    /// Whether nothing may be issued because the durations are invalid.
    pub(super) refused: bool,
}

/// How urgently the next CA must take over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Urgency {
    /// No rotation is due.
    NotDue,
    /// A rotation is due; one in progress finishes first.
    Due,
    /// The current CA cannot sign the names in the spec.
    Needed,
    /// The current CA's key is compromised.
    Emergency,
}

impl<'a> Situation<'a> {
    pub(super) fn new(observation: &'a Observation, timing: &'a Timing) -> Self {
        let authorities = observation
            .authorities
            .as_ref()
            .map_or_else(Cow::default, |secret| Cow::Borrowed(&secret.content));
        let bundle = authorities.trust_bundle(observation.clock.now);
        Self {
            observation,
            timing,
            authorities,
            bundle,
            refused: !timing.problems().is_empty(),
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.observation.clock.now
    }

    pub(super) fn serving(&self) -> Option<&'a PublishedSecret> {
        self.observation.serving.as_ref().map(|secret| &secret.content)
    }

    pub(super) fn leaf(&self) -> Option<&'a CertificateId> {
        self.serving()?.leaf.as_ref()
    }

    /// Returns the CA that can sign a serving certificate. If the wall clock is before the CA's notBefore,
    /// the clock is wrong rather than the CA.
    pub(super) fn signer(&self) -> Option<&Ca> {
        let current = self.authorities.current.as_ref()?;
        let signs = current.has_key && !current.certificate.has_ended_at(self.now());
        signs.then_some(current)
    }

    /// Returns the next CA, if it can take over once it is known.
    pub(super) fn usable_next(&self) -> Option<&Ca> {
        let next = self.authorities.next.as_ref()?;
        let usable = next.has_key
            && next.matches_spec
            && !self.authorities.distrusts(&next.certificate)
            && self.timing.is_usable_next(&next.certificate, self.now())
            && (next.certificate.is_valid_at(self.now()) || self.urgency() < Urgency::Needed);
        usable.then_some(next)
    }

    /// Returns how urgently the next CA must take over.
    pub(super) fn urgency(&self) -> Urgency {
        let Some(current) = &self.authorities.current else {
            return Urgency::Needed;
        };
        if self.authorities.distrusts(&current.certificate) {
            return Urgency::Emergency;
        }
        if self.signer().is_none() || !current.matches_spec {
            return Urgency::Needed;
        }
        let is_asked = self
            .authorities
            .replace
            .contains(&current.certificate.fingerprint);
        if is_asked || self.authority_renewal().is_some_and(|due| due <= self.now()) {
            return Urgency::Due;
        }
        Urgency::NotDue
    }

    /// Returns when the next CA takes over if nothing else changes.
    pub(super) fn authority_renewal(&self) -> Option<Timestamp> {
        let current = self.authorities.current.as_ref()?;
        let since = current
            .signs_since
            .unwrap_or(current.certificate.validity.not_before);
        Some(self.timing.authority_renewal(&current.certificate, since))
    }

    /// Reports whether the serving certificate expires so soon that no wait is acceptable.
    pub(super) fn is_in_last_sixth(&self) -> bool {
        self.leaf()
            .is_none_or(|leaf| self.timing.last_sixth(leaf) <= self.now())
    }

    /// Reports whether the next CA was read back from every target and all API servers had time to see it.
    pub(super) fn next_is_trusted(&self) -> bool {
        matches!(self.authorities.trust, Trust::Known(_))
            && self.next_is_everywhere()
            && self.trust_wait().is_none()
    }

    /// Returns how long clients of targets may still need to read the trust bundle.
    pub(super) fn trust_wait(&self) -> Option<SignedDuration> {
        let Trust::Known(known) = &self.authorities.trust else {
            return None;
        };
        let marks = [Some(known), self.observation.regressed.as_ref()];
        let waits = marks.into_iter().flatten();
        waits
            .filter_map(|mark| self.wait_left(mark, self.trust_delay()))
            .max()
    }

    /// Returns how long after the read-back of a target its clients trust the new CA. Files take as long as
    /// serving certificates.
    fn trust_delay(&self) -> SignedDuration {
        let Timing { trust, reload, .. } = self.timing;
        match self.open_targets().any(|target| target.is_file) {
            true => *trust.max(reload),
            false => *trust,
        }
    }

    /// Reports whether all objects that request the trust bundle are known. If not, a CA is promoted only in
    /// an emergency or at the last chance, and only compromised CAs retire.
    pub(super) fn knows_all_targets(&self) -> bool {
        self.observation.unlisted.is_empty()
    }

    /// Reports whether all writable targets and `ca.crt` contain the next CA. Targets that another controller
    /// overwrites after each write do not count, nor do namespaced ones.
    pub(super) fn next_is_everywhere(&self) -> bool {
        let Some(next) = &self.authorities.next else {
            return false;
        };
        // `ca.crt` is only published together with a serving certificate.
        let published = self.serving().filter(|serving| serving.leaf.is_some());
        let is_copied = published.is_none_or(|serving| {
            let bundle = serving.bundle.as_ref();
            bundle.is_some_and(|bundle| bundle.contains(&next.certificate))
        });
        is_copied
            && self
                .open_targets()
                .filter(|target| blocks_rotation(&target.id))
                .all(|target| target.trusts_or_was_given(&next.certificate))
    }

    /// Returns when the serving Secret was read back with its present contents.
    pub(super) fn published_at(&self) -> Option<Mark> {
        let published = self.authorities.published.as_ref()?;
        let serving = self.observation.serving.as_ref()?;
        (serving.content.contents() == published.contents).then_some(published.at)
    }

    /// Returns what is left of a wait.
    pub(super) fn wait_left(&self, since: &Mark, wait: SignedDuration) -> Option<SignedDuration> {
        self.observation.clock.remaining(since, wait)
    }

    /// Returns the targets that accept writes.
    pub(super) fn open_targets(&self) -> impl Iterator<Item = &'a Target> {
        self.observation
            .targets
            .iter()
            .filter(|target| target.refused.is_none())
    }

    /// Returns the targets that reject writes.
    pub(super) fn refusing_targets(&self) -> impl Iterator<Item = &'a Target> {
        self.observation
            .targets
            .iter()
            .filter(|target| target.refused.is_some())
    }

    /// Reports whether a target carries the trust bundle.
    pub(super) fn is_current(&self, target: &Target) -> bool {
        target.bundle.as_ref() == Some(&self.bundle)
    }

    /// Returns all served chains: observed ones and the one in the Secret.
    pub(super) fn served_chains(&self) -> impl Iterator<Item = Chain> {
        let published = self.serving().and_then(PublishedSecret::chain);
        let endpoints = self.observation.endpoints.iter();
        let observed = endpoints.flat_map(|endpoint| &endpoint.chains);
        published.into_iter().chain(observed.copied())
    }

    /// Reports whether `authority` signed `leaf`, which may not have expired yet.
    pub(super) fn is_needed_for(&self, leaf: &CertificateId, authority: &CertificateId) -> bool {
        leaf.is_signed_by(authority)
            && self.now() <= self.timing.expired_by_any_clock(leaf.validity.not_after)
    }

    /// Reports whether calls through that target succeed now and would fail once `chain` is served.
    pub(super) fn breaks_calls(&self, target: &Target, chain: &Chain) -> bool {
        let now = self.now();
        let Some(bundle) = &target.bundle else {
            return false;
        };
        let works = self
            .served_chains()
            .any(|served| !served.leaf.has_ended_at(now) && bundle.verifies(&served, now));
        works && !bundle.verifies(chain, now)
    }

    /// Reports whether the trust bundle last written to the target verifies that chain.
    pub(super) fn was_written_trust_for(&self, target: &Target, chain: &Chain) -> bool {
        target
            .last_written
            .as_ref()
            .is_some_and(|given| given.verifies(chain, self.now()))
    }

    /// Returns CAs that signed served certificates and are trusted somewhere, but are not in the CA Secret.
    pub(super) fn unknown_issuers(&self) -> Vec<CertificateId> {
        let is_lost = self.authorities.is_empty();
        let published = self.serving().and_then(|serving| serving.bundle.as_ref());
        let injected = self
            .observation
            .targets
            .iter()
            .filter_map(|target| target.bundle.as_ref());
        // Targets count only while there is no CA Secret. Otherwise a user could add a CA to one target and
        // have all targets trust it.
        let trusted = published.into_iter().chain(injected.take_while(|_| is_lost));
        let is_unseen = self.observation.has_unobserved_servers();
        let is_published =
            |authority: &CertificateId| published.is_some_and(|bundle| bundle.contains(authority));
        let is_served = |authority: &CertificateId| {
            self.served_chains()
                .any(|chain| self.is_needed_for(&chain.leaf, authority))
        };
        let unknown: BTreeSet<_> = trusted
            .flatten()
            .filter(|authority| !authority.has_ended_at(self.now()))
            .filter(|authority| !self.authorities.knows(authority.key_id))
            .filter(|authority| !self.authorities.distrusts(authority))
            .filter(|authority| is_served(authority) || (is_lost && (is_unseen || is_published(authority))))
            .copied()
            .collect();
        unknown.into_iter().collect()
    }

    /// Reports whether a CA may be in use that is not in the CA Secret. Only endpoints show whether one is.
    pub(super) fn may_have_unknown_issuers(&self) -> bool {
        let published = self.serving().and_then(|serving| serving.bundle.as_ref());
        self.authorities.is_empty()
            || published.into_iter().flatten().any(|authority| {
                !authority.has_ended_at(self.now())
                    && !self.authorities.knows(authority.key_id)
                    && !self.authorities.distrusts(authority)
            })
    }

    /// Returns the writes of targets that lack the trust bundle, within the limit for contested targets.
    /// Writes that were rejected before are retried.
    pub(super) fn injections(&self) -> impl Iterator<Item = Step> {
        let has_bundle = !self.bundle.is_empty();
        self.observation
            .targets
            .iter()
            .filter(move |target| has_bundle && target.is_due() && !self.is_current(target))
            .map(|target| Step::InjectTarget {
                target: target.id.clone(),
                bundle: self.bundle.clone(),
            })
    }
}
