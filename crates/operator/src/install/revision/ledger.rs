//! The records of one BundleDeployment: which number a revision has, which ones are kept, where one can go back to.

use windlass_api::{BundleRevision, InstalledRevision, Source};

use super::{record::RevisionRecord, settings::InstallSettings};

/// How many revisions that were installed before are kept, beside the installed one and the next one.
const KEPT: usize = 3;

/// The records of one BundleDeployment. [`Self::number`] decides which revision a bundle is, and
/// [`Self::outdated`] which records are deleted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ledger {
    /// In the order of their numbers.
    records: Vec<RevisionRecord>,
}

impl Ledger {
    /// A ledger of these records.
    pub fn new(mut records: Vec<RevisionRecord>) -> Self {
        records.sort_by_key(|record| record.number);
        Self { records }
    }

    /// The records, in the order of their numbers.
    pub fn records(&self) -> &[RevisionRecord] {
        &self.records
    }

    /// The record of a revision.
    pub fn find(&self, number: i64) -> Option<&RevisionRecord> {
        self.records.iter().find(|record| record.number == number)
    }

    /// The record that came last.
    pub fn newest(&self) -> Option<&RevisionRecord> {
        self.records.last()
    }

    /// Returns the revision number of a bundle with these settings: that of the installed revision or the
    /// newest one if it is the same, else a new number. A bundle that returns after another one is a new
    /// revision.
    pub fn number(
        &self,
        digest: &str,
        settings: &InstallSettings,
        installed: Option<&InstalledRevision>,
    ) -> i64 {
        let installed_number = installed.map_or(0, |installed| installed.revision);
        if let Some(installed) = installed {
            let is_it = match self.find(installed.revision) {
                Some(record) => record.is_of(digest, settings),
                // Whoever has deleted the record did not install another revision.
                None => installed.bundle.digest == digest,
            };
            if is_it {
                return installed.revision;
            }
        }
        match self.newest() {
            Some(newest) if newest.number > installed_number && newest.is_of(digest, settings) => {
                newest.number
            }
            newest => newest.map_or(0, |newest| newest.number).max(installed_number) + 1,
        }
    }

    /// Whether a bundle was installed once.
    pub fn was_installed(&self, digest: &str) -> bool {
        let mut installed = self.records.iter().filter(|record| record.installed);
        installed.any(|record| record.bundle.digest == digest)
    }

    /// The image that a bundle was pulled from last.
    pub fn image_of(&self, digest: &str) -> Option<&str> {
        let mut records = self.records.iter().rev();
        records.find_map(|record| record.image.as_deref().filter(|_| record.bundle.digest == digest))
    }

    /// The revisions that were installed before the installed one, the latest first.
    pub fn history(&self, installed: Option<i64>) -> Vec<BundleRevision> {
        self.earlier(installed).map(RevisionRecord::status).collect()
    }

    /// The revision that was installed before the installed one.
    pub fn before(&self, installed: Option<i64>) -> Option<&RevisionRecord> {
        self.earlier(installed).next()
    }

    /// Returns the records to delete: all but the installed revision, the next one, and the last few that
    /// were installed before or were started after it, of which objects may exist.
    pub fn outdated(&self, installed: Option<i64>, next: Option<i64>) -> Vec<&RevisionRecord> {
        let others: Vec<_> = self
            .records
            .iter()
            .rev()
            .filter(|record| Some(record.number) != installed && Some(record.number) != next)
            .collect();
        let is_earlier = |record: &&&RevisionRecord| record.installed;
        let is_tried = |record: &&&RevisionRecord| !record.installed && Some(record.number) > installed;
        let kept: Vec<i64> = others
            .iter()
            .filter(is_earlier)
            .take(KEPT)
            .chain(others.iter().filter(is_tried).take(KEPT))
            .map(|record| record.number)
            .collect();
        others
            .into_iter()
            .filter(|record| !kept.contains(&record.number))
            .collect()
    }

    /// Returns the record that replaces a source that cannot be read: the started revision or the installed
    /// one, if it has the same settings apart from overrides, and comes from the same source or has the
    /// digest to which the source is pinned.
    pub fn instead_of(
        &self,
        source: &Source,
        settings: &InstallSettings,
        begun: Option<i64>,
        installed: Option<i64>,
    ) -> Option<&RevisionRecord> {
        let origin = source.origin();
        let numbers = [begun, installed].into_iter().flatten();
        numbers.filter_map(|number| self.find(number)).find(|record| {
            let is_wanted = match &source.digest {
                Some(digest) => record.bundle.digest == *digest,
                None => record.source.origin() == origin,
            };
            is_wanted && record.settings.are_of(settings)
        })
    }

    fn earlier(&self, installed: Option<i64>) -> impl Iterator<Item = &RevisionRecord> {
        let records = self.records.iter().rev();
        records.filter(move |record| record.installed && Some(record.number) != installed)
    }
}
