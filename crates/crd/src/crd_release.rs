//! How a CustomResourceDefinition that stays changes when its converter is removed.
//!
//! Without conversion, an object that is written in another version than the storage version loses the fields
//! of that version. So such a definition serves one version, and one write both ends the conversion and stops
//! serving the others: no request can come in between.

use serde_json::Value;

use crate::{is_served, is_storage, storage_version, stored_versions, version_name, versions};

/// Returns the changes after which exactly the storage version is served: index and name of the version, and
/// whether it is served then.
pub fn changes_to_serve_stored_only(live: &Value) -> Vec<(usize, &str, bool)> {
    let all = versions(live).iter().enumerate();
    all.filter(|(_, version)| is_served(version) != is_storage(version))
        .map(|(index, version)| (index, version_name(version), is_storage(version)))
        .collect()
}

/// Reports whether the conversion of `live` may end in the write that leaves only the storage version served:
/// nothing is stored, or only in that version.
pub fn can_serve_stored_only(live: &Value, has_objects: bool) -> bool {
    !has_objects || storage_version(live).is_some_and(|storage| stored_versions(live) == [storage])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::stage::may_stop_converting;

    fn crd(versions: &[(&str, bool, bool)], stored: &[&str]) -> Value {
        let versions: Vec<_> = versions
            .iter()
            .map(|(name, served, storage)| json!({"name": name, "served": served, "storage": storage}))
            .collect();
        json!({"spec": {"versions": versions}, "status": {"storedVersions": stored}})
    }

    #[test]
    fn only_the_storage_version_is_served_afterwards() {
        let several = crd(
            &[("v2", true, false), ("v1", true, true), ("v0", false, false)],
            &["v1"],
        );
        assert_eq!(changes_to_serve_stored_only(&several), [(0, "v2", false)]);
        let hidden = crd(&[("v2", true, false), ("v1", false, true)], &["v1"]);
        assert_eq!(
            changes_to_serve_stored_only(&hidden),
            [(0, "v2", false), (1, "v1", true)]
        );
        assert_eq!(
            changes_to_serve_stored_only(&crd(&[("v1", true, true)], &["v1"])),
            []
        );
    }

    #[test]
    fn objects_stored_in_another_version_need_conversion() {
        let both = &[("v2", true, false), ("v1", true, true)];
        assert!(can_serve_stored_only(&crd(both, &["v1"]), true));
        assert!(!can_serve_stored_only(&crd(both, &["v1", "v2"]), true));
        assert!(!can_serve_stored_only(&crd(both, &["v2"]), true));
        assert!(
            !can_serve_stored_only(&crd(both, &[]), true),
            "unknown stored versions"
        );
        assert!(can_serve_stored_only(&crd(both, &["v1", "v2"]), false));
    }

    proptest! {
        #[test]
        fn serving_only_the_storage_version_needs_no_conversion(
            served in any::<u8>(), storage in 0_usize..3, stored in 0_usize..8, has_objects in any::<bool>(),
        ) {
            let names = ["v1", "v2", "v3"];
            let versions: Vec<_> = names
                .iter()
                .enumerate()
                .map(|(index, name)| (*name, served & (1 << index) != 0, index == storage))
                .collect();
            let stored: Vec<_> = (0..3).filter(|index| stored & (1 << index) != 0).map(|index| names[index]).collect();
            let mut live = crd(&versions, &stored);
            if has_objects && may_stop_converting(&live, true) && stored == [names[storage]] {
                prop_assert!(can_serve_stored_only(&live, true));
            }
            let may = can_serve_stored_only(&live, has_objects);
            let changes: Vec<_> = changes_to_serve_stored_only(&live).into_iter().map(|(index, _, served)| (index, served)).collect();
            for (index, served) in changes {
                live["spec"]["versions"][index]["served"] = served.into();
            }
            prop_assert_eq!(changes_to_serve_stored_only(&live), []);
            prop_assert!(!may || may_stop_converting(&live, has_objects));
        }
    }
}
