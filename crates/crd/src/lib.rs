//! CustomResourceDefinitions: their versions and conversion, safety of upgrades, migration of stored objects,
//! and ownership.
//!
//! ```
//! use serde_json::json;
//! use windlass_crd::upgrade_safety::{Policy, compare, is_refused};
//!
//! let old = json!({
//!     "metadata": {"name": "widgets.example.com"},
//!     "spec": {"group": "example.com", "names": {"kind": "Widget"}, "versions": [{
//!         "name": "v1", "served": true, "storage": true,
//!         "schema": {"openAPIV3Schema": {"type": "object", "properties": {"size": {"type": "integer"}}}},
//!     }]},
//!     "status": {"storedVersions": ["v1"]},
//! });
//! assert_eq!(windlass_crd::storage_version(&old), Some("v1"));
//! assert!(!windlass_crd::is_converting(&old));
//!
//! let mut new = old.clone();
//! new["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["size"]["maximum"] = json!(10);
//! let findings = compare("widgets.example.com", &old, &new, &Policy::default());
//! assert!(is_refused(&findings));
//! assert_eq!(
//!     findings[0].to_string(),
//!     "widgets.example.com v1 ^.size maximum: maximum constraint added when there was none previously : 10"
//! );
//! ```

pub mod claims;
pub mod conversion_review;
pub mod crd_release;
pub mod field_managers;
pub mod grant;
pub mod round_trip;
mod sample;
pub mod stage;
pub mod storage_migration;
pub mod upgrade_safety;
mod versions;

pub use sample::{SAMPLE_NAME, Sample, sample_object, sample_of_version};
pub use versions::{
    is_converting, is_served, is_storage, reachable_version, storage_version, stored_versions, version,
    version_name, versions,
};
