//! Versions and version ranges of operator bundles, as OLM parses them.
//!
//! OLM has two notations. Bundles and catalogs contain a [`VersionRange`] (`olm.skipRange`, constraints of
//! dependencies). Users write a [`VersionConstraint`] (`spec.source.catalog.version` of a ClusterExtension).
//!
//! ```
//! use version_range::{Version, VersionConstraint, VersionRange};
//!
//! let version = Version::parse("1.2.3").ok_or("not a version")?;
//! assert!(VersionRange::parse(">=1.0.0 <1.3.0").ok_or("not a range")?.contains(&version));
//! assert!(VersionConstraint::parse("1.2.x || >=2, <3")?.contains(&version));
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

mod constraint;
mod range;
mod version;

pub use constraint::{VersionConstraint, VersionConstraintError};
pub use range::VersionRange;
pub use version::Version;
