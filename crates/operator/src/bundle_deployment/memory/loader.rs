//! What was loaded last.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use windlass_api::BundleStatus;
use windlass_bundle::{requirements::Requirements, sources::StoredBundle, upgrade::Predecessors};

use crate::install::{plan::Plan, revision::InstallSettings};

/// Remembers what was loaded last for each BundleDeployment: planning a large bundle takes a while.
#[derive(Default)]
pub(in crate::bundle_deployment) struct Loader {
    remembered: Mutex<HashMap<String, Vec<Remembered>>>,
    sources: Mutex<HashMap<String, (InstallSettings, String)>>,
    stamps: Mutex<HashMap<String, Stamp>>,
    sightings: Mutex<HashMap<String, Sighting>>,
}

/// How many revisions of a BundleDeployment are remembered: the installed one, one that has begun, and one that is refused, each
/// also as it is without what policies override.
const REMEMBERED: usize = 6;

struct Remembered {
    settings: InstallSettings,
    digest: String,
    outcome: LoadOutcome,
}

/// What came of loading a source: a reason and a message, where it holds nothing that can be installed.
pub(in crate::bundle_deployment) type LoadOutcome = Result<Arc<Loaded>, (&'static str, String)>;

/// Which objects a source was read from last, and what they held.
struct Stamp {
    objects: String,
    digest: String,
}

/// A digest that a folder was seen to have, and since when.
struct Sighting {
    digest: String,
    since: Instant,
}

/// A bundle, and the plan of its install.
#[derive(Clone)]
pub(in crate::bundle_deployment) struct Loaded {
    pub(in crate::bundle_deployment) bundle: BundleStatus,
    /// What decided with the bundle what the plan is.
    pub(in crate::bundle_deployment) settings: InstallSettings,
    pub(in crate::bundle_deployment) plan: Plan,
    /// Which bundles it may follow.
    pub(in crate::bundle_deployment) predecessors: Predecessors,
    /// What it requires of the cluster.
    pub(in crate::bundle_deployment) requirements: Requirements,
    /// Its bytes, as they are recorded.
    pub(in crate::bundle_deployment) stored: StoredBundle,
}

impl Loader {
    /// What came of it when files with this digest were loaded with these settings.
    pub(in crate::bundle_deployment) fn find(
        &self,
        name: &str,
        digest: &str,
        settings: &InstallSettings,
    ) -> Option<LoadOutcome> {
        let mut remembered = self.remembered.lock();
        let all = remembered.get_mut(name)?;
        let place = all
            .iter()
            .position(|known| known.digest == digest && known.settings == *settings)?;
        // What was asked for last goes last.
        let found = all.remove(place);
        let outcome = found.outcome.clone();
        all.push(found);
        Some(outcome)
    }

    /// What came of it last, if that was for these settings and read from `objects` as they are.
    pub(in crate::bundle_deployment) fn find_unread(
        &self,
        name: &str,
        objects: &str,
        settings: &InstallSettings,
    ) -> Option<LoadOutcome> {
        let stamps = self.stamps.lock();
        let stamp = stamps.get(name).filter(|stamp| stamp.objects == objects)?;
        self.find(name, &stamp.digest, settings)
    }

    /// Notes which objects were read, and the digest of what they held.
    pub(in crate::bundle_deployment) fn stamp(&self, name: &str, objects: String, digest: &str) {
        let digest = digest.to_owned();
        self.stamps
            .lock()
            .insert(name.to_owned(), Stamp { objects, digest });
    }

    /// Notes what the source held last.
    pub(in crate::bundle_deployment) fn note_source(
        &self,
        name: &str,
        settings: InstallSettings,
        digest: &str,
    ) {
        let latest = (settings, digest.to_owned());
        self.sources.lock().insert(name.to_owned(), latest);
    }

    /// What the source held last, with these settings, if that can be installed.
    pub(in crate::bundle_deployment) fn latest(
        &self,
        name: &str,
        settings: &InstallSettings,
    ) -> Option<Arc<Loaded>> {
        let sources = self.sources.lock();
        let (_, digest) = sources.get(name).filter(|(known, _)| known == settings)?;
        self.find(name, digest, settings)?.ok()
    }

    /// Reports whether a changed directory may be read: it has had this `digest` for at least `pause`. A user
    /// may still be copying files before that.
    pub(in crate::bundle_deployment) fn has_settled(
        &self,
        name: &str,
        digest: &str,
        now: Instant,
        pause: Duration,
    ) -> bool {
        let is_known = self
            .remembered
            .lock()
            .get(name)
            .is_some_and(|all| all.iter().any(|known| known.digest == digest));
        let mut sightings = self.sightings.lock();
        if is_known {
            sightings.remove(name);
            return true;
        }
        match sightings.get(name) {
            Some(seen) if seen.digest == digest => now.duration_since(seen.since) >= pause,
            _ => {
                let digest = digest.to_owned();
                sightings.insert(name.to_owned(), Sighting { digest, since: now });
                false
            }
        }
    }

    /// Keeps what came of loading files with this digest with these settings.
    pub(in crate::bundle_deployment) fn keep(
        &self,
        name: &str,
        digest: String,
        settings: InstallSettings,
        outcome: LoadOutcome,
    ) {
        let mut remembered = self.remembered.lock();
        let all = remembered.entry(name.to_owned()).or_default();
        all.push(Remembered {
            settings,
            digest,
            outcome,
        });
        if all.len() > REMEMBERED {
            all.remove(0);
        }
    }

    /// Forgets a BundleDeployment that is gone.
    pub(in crate::bundle_deployment) fn forget(&self, name: &str) {
        self.remembered.lock().remove(name);
        self.sources.lock().remove(name);
        self.stamps.lock().remove(name);
        self.sightings.lock().remove(name);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(namespace: &str) -> InstallSettings {
        serde_json::from_value(json!({ "namespace": namespace })).unwrap()
    }

    fn refusal(word: &str) -> LoadOutcome {
        Err(("BundleInvalid", word.to_owned()))
    }

    fn said(outcome: Option<LoadOutcome>) -> Option<String> {
        outcome.and_then(|outcome| outcome.err().map(|(_, message)| message))
    }

    #[test]
    fn config_maps_that_are_as_they_were_read_are_not_read_again() {
        let loader = Loader::default();
        loader.stamp("a", "u/1".to_owned(), "first");
        loader.keep("a", "first".to_owned(), spec("n"), refusal("one"));
        assert_eq!(
            said(loader.find_unread("a", "u/1", &spec("n"))),
            Some("one".to_owned())
        );
        assert!(
            loader.find_unread("a", "u/2", &spec("n")).is_none(),
            "another resourceVersion"
        );
        assert!(
            loader.find_unread("a", "u/1", &spec("m")).is_none(),
            "another spec"
        );
        assert!(loader.find_unread("b", "u/1", &spec("n")).is_none());
        // Read anew, and not loaded yet.
        loader.stamp("a", "u/2".to_owned(), "second");
        assert!(loader.find_unread("a", "u/2", &spec("n")).is_none());
        loader.keep("a", "second".to_owned(), spec("n"), refusal("two"));
        assert_eq!(
            said(loader.find_unread("a", "u/2", &spec("n"))),
            Some("two".to_owned())
        );
        loader.forget("a");
        assert!(loader.find_unread("a", "u/2", &spec("n")).is_none());
    }

    #[test]
    fn a_folder_is_believed_when_two_looks_agree() {
        let (loader, start, pause) = (Loader::default(), Instant::now(), Duration::from_secs(2));
        let at = |second| start + Duration::from_secs(second);
        loader.keep("a", "old".to_owned(), spec("n"), refusal(""));
        assert!(loader.has_settled("a", "old", at(0), pause));
        assert!(!loader.has_settled("a", "half", at(1), pause));
        assert!(
            !loader.has_settled("a", "new", at(4), pause),
            "it was still being copied"
        );
        assert!(!loader.has_settled("a", "new", at(5), pause), "too soon");
        assert!(loader.has_settled("a", "new", at(6), pause));
        // There and back.
        assert!(loader.has_settled("a", "old", at(7), pause));
        assert!(!loader.has_settled("a", "new", at(8), pause));
    }
}
