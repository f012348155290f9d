//! What was pulled last.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use windlass_api::ImageSource;
use windlass_bundle::Files;

/// Remembers what the image `S` of each BundleDeployment led to, and when it is looked at again.
pub(in crate::bundle_deployment) struct Pulls<S = ImageSource, F = PulledBundle> {
    /// How often to look where a tag leads; also the longest to wait after a failure, unless the registry says longer.
    every: Duration,
    known: Mutex<HashMap<String, Pull<S, F>>>,
}

struct Pull<S, F> {
    source: S,
    is_running: bool,
    found: Option<F>,
    failure: Option<PullFailure>,
    failures: u32,
    /// `None`: never again.
    due: Option<Instant>,
}

/// What was found in an image.
pub(in crate::bundle_deployment) trait PulledContent {
    /// It, for who makes use of it now. What is needed once, and large, is not kept.
    fn give(&mut self) -> Self;
}

/// A bundle in an image.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::bundle_deployment) struct PulledBundle {
    /// The image, by its digest.
    pub(in crate::bundle_deployment) image: String,
    /// The digest over its files.
    pub(in crate::bundle_deployment) digest: String,
    /// Its files, until a plan is made of them.
    pub(in crate::bundle_deployment) files: Option<Files>,
}

/// Why an image was not pulled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::bundle_deployment) struct PullFailure {
    pub(in crate::bundle_deployment) reason: &'static str,
    pub(in crate::bundle_deployment) message: String,
    /// Whether it may be gone at the next try, although nobody acts.
    pub(in crate::bundle_deployment) is_transient: bool,
    /// When the registry wants to be asked again.
    pub(in crate::bundle_deployment) retry_after: Option<Duration>,
}

/// How far a pull is.
#[derive(Debug, PartialEq)]
pub(in crate::bundle_deployment) enum PullState<F = PulledBundle> {
    /// Nothing is known yet.
    Pulling,
    /// What was found last. The files of a bundle are given out once.
    Found(F),
    /// Why the last look found nothing, whatever was found before.
    Failed(PullFailure),
}

/// How long to wait after the first failure; after each further one twice as long.
const BACKOFF: Duration = Duration::from_secs(5);

/// The longest to wait because a registry says so.
const LONGEST: Duration = Duration::from_secs(3600);

impl<S: Clone + PartialEq, F: PulledContent> Pulls<S, F> {
    /// Nothing yet. Where tags lead is looked at again after `every`.
    pub(in crate::bundle_deployment) fn new(every: Duration) -> Self {
        Self {
            every,
            known: Mutex::default(),
        }
    }

    /// How far the pull of an image is, and whether to look now. Who is told to look says with [`Self::finish`] what came
    /// of it.
    pub(in crate::bundle_deployment) fn look(
        &self,
        name: &str,
        source: &S,
        now: Instant,
    ) -> (PullState<F>, bool) {
        let mut known = self.known.lock();
        let pull = known
            .entry(name.to_owned())
            .or_insert_with(|| Pull::new(source, now));
        if pull.source != *source {
            *pull = Pull::new(source, now);
        }
        let is_due = !pull.is_running && pull.due.is_some_and(|due| due <= now);
        pull.is_running |= is_due;
        let state = match (&pull.failure, &mut pull.found) {
            (Some(failure), _) => PullState::Failed(failure.clone()),
            (None, Some(found)) => PullState::Found(found.give()),
            (None, None) => PullState::Pulling,
        };
        (state, is_due)
    }

    /// Notes what came of a look, and returns after how long to look again; `None` for never, or because something else is
    /// looked for by now.
    pub(in crate::bundle_deployment) fn finish(
        &self,
        name: &str,
        source: &S,
        is_by_digest: bool,
        outcome: Result<F, PullFailure>,
        now: Instant,
    ) -> Option<Duration> {
        let mut known = self.known.lock();
        let pull = known.get_mut(name).filter(|pull| pull.source == *source)?;
        pull.is_running = false;
        let wait = match outcome {
            Ok(found) => {
                pull.found = Some(found);
                pull.failure = None;
                pull.failures = 0;
                (!is_by_digest).then_some(self.every)
            }
            Err(failure) => {
                let backoff = BACKOFF.saturating_mul(1 << pull.failures.min(16)).min(self.every);
                let asked = failure.retry_after.unwrap_or_default().min(LONGEST);
                pull.failures += 1;
                pull.failure = Some(failure);
                Some(backoff.max(asked))
            }
        };
        pull.due = wait.map(|wait| now + wait);
        wait
    }

    /// What `of` tells of what was found last.
    pub(in crate::bundle_deployment) fn find<T>(
        &self,
        name: &str,
        source: &S,
        of: impl FnOnce(&F) -> T,
    ) -> Option<T> {
        let known = self.known.lock();
        let pull = known.get(name).filter(|pull| pull.source == *source)?;
        pull.found.as_ref().map(of)
    }

    /// Whether `reason` is why the last look found nothing.
    pub(in crate::bundle_deployment) fn is_refused(&self, name: &str, reason: &str) -> bool {
        let known = self.known.lock();
        let failure = known.get(name).and_then(|pull| pull.failure.as_ref());
        failure.is_some_and(|failure| failure.reason == reason)
    }

    /// Forgets a BundleDeployment that is gone.
    pub(in crate::bundle_deployment) fn forget(&self, name: &str) {
        self.known.lock().remove(name);
    }
}

impl Pulls {
    /// What was found last, without its files: the image and the digest over these.
    pub(in crate::bundle_deployment) fn found(
        &self,
        name: &str,
        source: &ImageSource,
    ) -> Option<(String, String)> {
        self.find(name, source, |found| (found.image.clone(), found.digest.clone()))
    }

    /// The image in which the files with this digest were found last.
    pub(in crate::bundle_deployment) fn image_of(&self, name: &str, digest: &str) -> Option<String> {
        let known = self.known.lock();
        let found = known.get(name)?.found.as_ref()?;
        (found.digest == digest).then(|| found.image.clone())
    }

    /// Has everything of an image pulled anew: its files are needed again, and kept nowhere.
    pub(in crate::bundle_deployment) fn repeat(&self, name: &str, now: Instant) {
        if let Some(pull) = self.known.lock().get_mut(name) {
            pull.found = None;
            pull.due = Some(now);
        }
    }

    /// Lets go of files of which no plan is made any time soon.
    pub(in crate::bundle_deployment) fn drop_files(&self, name: &str) {
        let mut known = self.known.lock();
        if let Some(found) = known.get_mut(name).and_then(|pull| pull.found.as_mut()) {
            found.files = None;
        }
    }
}

impl PulledContent for PulledBundle {
    fn give(&mut self) -> Self {
        let files = self.files.take();
        Self {
            files,
            ..self.clone()
        }
    }
}

impl<S: Clone, F> Pull<S, F> {
    fn new(source: &S, now: Instant) -> Self {
        Self {
            source: source.clone(),
            is_running: false,
            found: None,
            failure: None,
            failures: 0,
            due: Some(now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_secs(300);

    fn source(reference: &str) -> ImageSource {
        ImageSource {
            reference: reference.to_owned(),
            pull_secret: None,
        }
    }

    fn bundle(digest: &str) -> PulledBundle {
        PulledBundle {
            image: format!("a.test/b@{digest}"),
            digest: digest.to_owned(),
            files: Some(Files::new()),
        }
    }

    fn failure(retry_after: Option<u64>) -> PullFailure {
        PullFailure {
            reason: "RegistryUnavailable",
            message: String::new(),
            is_transient: true,
            retry_after: retry_after.map(Duration::from_secs),
        }
    }

    #[test]
    fn a_tag_is_looked_at_again_and_one_look_is_under_way() {
        let (pulls, tag, now) = (Pulls::new(EVERY), source("a.test/b:v1"), Instant::now());
        assert_eq!(pulls.look("a", &tag, now), (PullState::Pulling, true));
        assert_eq!(pulls.look("a", &tag, now), (PullState::Pulling, false));
        assert_eq!(pulls.finish("a", &tag, false, Ok(bundle("1")), now), Some(EVERY));
        assert_eq!(pulls.look("a", &tag, now), (PullState::Found(bundle("1")), false));
        let without = PulledBundle {
            files: None,
            ..bundle("1")
        };
        let found = || PullState::Found(without.clone());
        assert_eq!(
            pulls.look("a", &tag, now),
            (found(), false),
            "files are given once"
        );
        assert_eq!(pulls.look("a", &tag, now + EVERY), (found(), true));
        assert_eq!(pulls.image_of("a", "1").as_deref(), Some("a.test/b@1"));
        assert_eq!(pulls.image_of("a", "2"), None);
    }

    #[test]
    fn an_image_by_digest_is_looked_at_until_it_is_found() {
        let (pulls, pinned, now) = (Pulls::new(EVERY), source("a.test/b@1"), Instant::now());
        pulls.look("a", &pinned, now);
        let failed = pulls.finish("a", &pinned, true, Err(failure(None)), now);
        assert_eq!(failed, Some(BACKOFF));
        assert!(pulls.look("a", &pinned, now + BACKOFF).1);
        assert_eq!(pulls.finish("a", &pinned, true, Ok(bundle("1")), now), None);
        assert!(!pulls.look("a", &pinned, now + EVERY * 100).1);
        pulls.repeat("a", now);
        assert_eq!(pulls.look("a", &pinned, now), (PullState::Pulling, true));
    }

    #[test]
    fn failures_are_waited_for_longer_and_longer_and_as_the_registry_says() {
        let (pulls, tag, now) = (Pulls::new(EVERY), source("a.test/b:v1"), Instant::now());
        let fail = |retry_after| {
            pulls.look("a", &tag, now + EVERY * 1000);
            let wait = pulls.finish("a", &tag, false, Err(failure(retry_after)), now);
            wait.unwrap().as_secs()
        };
        assert_eq!([(); 3].map(|()| fail(None)), [5, 10, 20]);
        assert_eq!(fail(Some(600)), 600);
        assert_eq!(fail(Some(1)), 80);
        assert_eq!([(); 100].map(|()| fail(None))[99], EVERY.as_secs());
        assert_eq!(fail(Some(1 << 40)), LONGEST.as_secs());
        assert!(pulls.is_refused("a", "RegistryUnavailable"));
        assert!(!pulls.is_refused("a", "DigestMismatch"));
        pulls.look("a", &tag, now + LONGEST);
        pulls.finish("a", &tag, false, Ok(bundle("1")), now);
        assert!(!pulls.is_refused("a", "RegistryUnavailable"));
    }

    #[test]
    fn another_source_is_looked_at_at_once_and_an_old_answer_is_not_its_own() {
        let (pulls, now) = (Pulls::new(EVERY), Instant::now());
        let (old, new) = (source("a.test/b:v1"), source("a.test/b:v2"));
        pulls.look("a", &old, now);
        assert_eq!(pulls.look("a", &new, now), (PullState::Pulling, true));
        assert_eq!(pulls.finish("a", &old, false, Ok(bundle("1")), now), None);
        assert_eq!(pulls.look("a", &new, now), (PullState::Pulling, false));
        pulls.forget("a");
        assert_eq!(pulls.finish("a", &new, false, Ok(bundle("1")), now), None);
    }

    #[test]
    fn what_is_not_planned_soon_holds_no_files() {
        let (pulls, tag, now) = (Pulls::new(EVERY), source("a.test/b:v1"), Instant::now());
        pulls.look("a", &tag, now);
        pulls.finish("a", &tag, false, Ok(bundle("1")), now);
        pulls.drop_files("a");
        let (PullState::Found(found), _) = pulls.look("a", &tag, now) else {
            panic!("it was found");
        };
        assert_eq!(found.files, None);
    }
}
