//! The records of revisions, as they were read last.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use parking_lot::Mutex;

use crate::install::revision::Ledger;

/// The versions of the ConfigMaps with records: name and resourceVersion.
pub(in crate::bundle_deployment) type RecordVersions = BTreeMap<String, String>;

/// Remembers the ledger of each BundleDeployment: the index holds ConfigMaps without their content.
#[derive(Default)]
pub(in crate::bundle_deployment) struct Ledgers(Mutex<HashMap<String, (RecordVersions, Arc<Ledger>)>>);

impl Ledgers {
    /// The ledger of a BundleDeployment, if it was read when its records had these versions.
    pub(in crate::bundle_deployment) fn find(
        &self,
        name: &str,
        versions: &RecordVersions,
    ) -> Option<Arc<Ledger>> {
        let remembered = self.0.lock();
        let (known, ledger) = remembered.get(name)?;
        (known == versions).then(|| ledger.clone())
    }

    /// Keeps what was read.
    pub(in crate::bundle_deployment) fn keep(
        &self,
        name: &str,
        versions: RecordVersions,
        ledger: Arc<Ledger>,
    ) {
        self.0.lock().insert(name.to_owned(), (versions, ledger));
    }

    /// Forgets a BundleDeployment that is gone, or whose records were just written.
    pub(in crate::bundle_deployment) fn forget(&self, name: &str) {
        self.0.lock().remove(name);
    }
}
