//! What an observation means.

use std::{borrow::Cow, collections::BTreeSet};

use jiff::{SignedDuration, Timestamp};

use crate::rotation::{
    ca_state::{Ca, CaState, Trust},
    certificate::{CertificateId, Chain, TrustSet},
    clock::Mark,
    observation::{Observation, PublishedSecret, Target, is_waited_for},
    step::Step,
    timing::Timing,
};

/// An observation with what follows from it.
pub(super) struct Situation<'a> {
    pub(super) observation: &'a Observation,
    pub(super) timing: &'a Timing,
    pub(super) authorities: Cow<'a, CaState>,
    /// What targets and `ca.crt` are to carry.
    pub(super) bundle: TrustSet,
    /// Whether nothing may be issued, because the durations do not work.
    pub(super) refused: bool,
}

/// How pressing it is that the next CA takes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Urgency {
    /// Its time has not come.
    NotDue,
    /// Its time has come; a rotation that is under way ends first.
    Due,
    /// The current CA cannot sign what is asked for.
    Needed,
    /// The current CA's key is compromised.
    Emergency,
}

// === impl Situation ===

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

    /// The CA that can sign a serving certificate. A calendar that is before its first day is wrong rather than the
    /// CA.
    pub(super) fn signer(&self) -> Option<&Ca> {
        let current = self.authorities.current.as_ref()?;
        let signs = current.has_key && !current.certificate.has_ended_at(self.now());
        signs.then_some(current)
    }

    /// The next CA, if it can take over once it is known.
    pub(super) fn usable_next(&self) -> Option<&Ca> {
        let next = self.authorities.next.as_ref()?;
        let usable = next.has_key
            && next.as_asked
            && !self.authorities.distrusts(&next.certificate)
            && self.timing.fits_next(&next.certificate, self.now())
            && (next.certificate.is_valid_at(self.now()) || self.urgency() < Urgency::Needed);
        usable.then_some(next)
    }

    /// How pressing it is that the next CA takes over.
    pub(super) fn urgency(&self) -> Urgency {
        let Some(current) = &self.authorities.current else {
            return Urgency::Needed;
        };
        if self.authorities.distrusts(&current.certificate) {
            return Urgency::Emergency;
        }
        if self.signer().is_none() || !current.as_asked {
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

    /// When the next CA takes over, if nothing happens before.
    pub(super) fn authority_renewal(&self) -> Option<Timestamp> {
        let current = self.authorities.current.as_ref()?;
        let since = current
            .signs_since
            .unwrap_or(current.certificate.validity.not_before);
        Some(self.timing.authority_renewal(&current.certificate, since))
    }

    /// Whether the serving certificate is so near its end that nothing is worth waiting for.
    pub(super) fn is_last_call(&self) -> bool {
        self.leaf()
            .is_none_or(|leaf| self.timing.last_call(leaf) <= self.now())
    }

    /// Whether the next CA was read back from every target, and all API servers had the time to see it.
    pub(super) fn next_is_trusted(&self) -> bool {
        matches!(self.authorities.trust, Trust::Known(_))
            && self.next_is_everywhere()
            && self.trust_wait().is_none()
    }

    /// What is left of the wait for those who read targets to see what they carry.
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

    /// How long after a target was read back everybody trusts by it: a file reaches its readers as late as a serving certificate.
    fn trust_delay(&self) -> SignedDuration {
        let Timing { trust, reload, .. } = self.timing;
        match self.open_targets().any(|target| target.is_file) {
            true => *trust.max(reload),
            false => *trust,
        }
    }

    /// Whether every object is known that asks for the trust bundle.
    pub(super) fn knows_all_targets(&self) -> bool {
        self.observation.unlisted.is_empty()
    }

    /// Whether everything that takes writes carries the next CA, `ca.crt` for those who copy it included. What somebody
    /// else takes from a target each time that it is given holds nothing up; nor does what tenants write.
    pub(super) fn next_is_everywhere(&self) -> bool {
        let Some(next) = &self.authorities.next else {
            return false;
        };
        // Without a serving certificate there is nothing to publish `ca.crt` with.
        let published = self.serving().filter(|serving| serving.leaf.is_some());
        let is_copied = published.is_none_or(|serving| {
            let bundle = serving.bundle.as_ref();
            bundle.is_some_and(|bundle| bundle.contains(&next.certificate))
        });
        is_copied
            && self
                .open_targets()
                .filter(|target| is_waited_for(&target.id))
                .all(|target| target.was_given(&next.certificate))
    }

    /// When the serving Secret was read back as it is now.
    pub(super) fn published_at(&self) -> Option<Mark> {
        let published = self.authorities.published.as_ref()?;
        let serving = self.observation.serving.as_ref()?;
        (serving.content.contents() == published.contents).then_some(published.at)
    }

    /// What is left of a wait.
    pub(super) fn wait_left(&self, since: &Mark, wait: SignedDuration) -> Option<SignedDuration> {
        self.observation.clock.remaining(since, wait)
    }

    /// Targets that take writes.
    pub(super) fn open_targets(&self) -> impl Iterator<Item = &'a Target> {
        self.observation
            .targets
            .iter()
            .filter(|target| target.refused.is_none())
    }

    /// Targets that refuse writes.
    pub(super) fn refusing_targets(&self) -> impl Iterator<Item = &'a Target> {
        self.observation
            .targets
            .iter()
            .filter(|target| target.refused.is_some())
    }

    /// Whether a target carries the trust bundle.
    pub(super) fn is_current(&self, target: &Target) -> bool {
        target.bundle.as_ref() == Some(&self.bundle)
    }

    /// All that is served, as far as it was seen or is in the Secret.
    pub(super) fn served_chains(&self) -> impl Iterator<Item = Chain> {
        let published = self.serving().and_then(PublishedSecret::chain);
        let endpoints = self.observation.endpoints.iter();
        let observed = endpoints.flat_map(|endpoint| &endpoint.chains);
        published.into_iter().chain(observed.copied())
    }

    /// Whether the leaf is of that CA and has not ended, as far as the calendar can be believed.
    pub(super) fn needs(&self, leaf: &CertificateId, authority: &CertificateId) -> bool {
        leaf.is_signed_by(authority) && self.now() <= self.timing.surely_over(leaf.validity.not_after)
    }

    /// Whether calls through that target succeed now and would not once `chain` is served.
    pub(super) fn harms(&self, target: &Target, chain: &Chain) -> bool {
        let now = self.now();
        let Some(bundle) = &target.bundle else {
            return false;
        };
        let works = self
            .served_chains()
            .any(|served| !served.leaf.has_ended_at(now) && bundle.verifies(&served, now));
        works && !bundle.verifies(chain, now)
    }

    /// Whether the target was last given what trusts that chain.
    pub(super) fn was_given(&self, target: &Target, chain: &Chain) -> bool {
        target
            .given
            .as_ref()
            .is_some_and(|given| given.verifies(chain, self.now()))
    }

    /// CAs that signed what is served, are trusted somewhere, and are not in the CA Secret.
    pub(super) fn unknown_issuers(&self) -> Vec<CertificateId> {
        let is_lost = self.authorities.is_empty();
        let published = self.serving().and_then(|serving| serving.bundle.as_ref());
        let injected = self
            .observation
            .targets
            .iter()
            .filter_map(|target| target.bundle.as_ref());
        // What targets carry counts only before there is a CA Secret: later it would be a way to have any CA trusted
        // by every target.
        let trusted = published.into_iter().chain(injected.take_while(|_| is_lost));
        let is_unseen = self.observation.is_blind();
        let is_published =
            |authority: &CertificateId| published.is_some_and(|bundle| bundle.contains(authority));
        let is_served = |authority: &CertificateId| {
            self.served_chains()
                .any(|chain| self.needs(&chain.leaf, authority))
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

    /// Whether a CA may be served that is not in the CA Secret. Only endpoints tell whether one is.
    pub(super) fn may_have_unknown_issuers(&self) -> bool {
        let published = self.serving().and_then(|serving| serving.bundle.as_ref());
        self.authorities.is_empty()
            || published.into_iter().flatten().any(|authority| {
                !authority.has_ended_at(self.now())
                    && !self.authorities.knows(authority.key_id)
                    && !self.authorities.distrusts(authority)
            })
    }

    /// Targets that do not carry the trust bundle are given it, unless somebody takes it from them faster than they may
    /// be repaired; those that refused before are tried again.
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
