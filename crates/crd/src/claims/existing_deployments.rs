//! The BundleDeployments that exist.

use std::collections::{BTreeMap, BTreeSet};

/// The BundleDeployments that exist, with their uids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExistingDeployments {
    uids: BTreeMap<String, BTreeSet<String>>,
}

impl ExistingDeployments {
    /// Reports whether a BundleDeployment with that name exists.
    pub fn contains(&self, name: &str) -> bool {
        self.uids.contains_key(name)
    }

    /// Returns the name of the BundleDeployment with that uid.
    pub fn name_by_uid(&self, uid: &str) -> Option<&str> {
        let found = self.uids.iter().find(|(_, uids)| uids.contains(uid));
        found.map(|(name, _)| name.as_str())
    }
}

impl FromIterator<(String, String)> for ExistingDeployments {
    /// Collects names and uids.
    fn from_iter<I: IntoIterator<Item = (String, String)>>(deployments: I) -> Self {
        let mut living = Self::default();
        for (name, uid) in deployments {
            living.uids.entry(name).or_default().insert(uid);
        }
        living
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deployments_are_found_by_name_and_uid() {
        let living: ExistingDeployments = [("a".to_owned(), "1".to_owned())].into_iter().collect();
        assert!(living.contains("a") && !living.contains("b"));
        assert_eq!(
            (living.name_by_uid("1"), living.name_by_uid("2")),
            (Some("a"), None)
        );
    }
}
