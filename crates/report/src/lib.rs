//! An HTML page about everything that Windlass manages.
//!
//! ```text
//! BundleDeployments, ServingCertificates, targets -> ClusterReport -> HTML
//!                                                     |
//!       problems, what is under way, bundles, certificates on a time line, trusted CAs
//! ```
//!
//! The page is self-contained: it has no scripts, and loads no fonts or images. It contains only the status
//! of these objects and the `caBundle` of targets.
//!
//! # Examples
//!
//! ```
//! use jiff::Timestamp;
//! use windlass_report::{ClusterReport, Subjects};
//!
//! let now: Timestamp = "2026-11-22T08:00:00Z".parse()?;
//! let report = ClusterReport::new(&Subjects::default(), "v1.36.0", now);
//! assert!(report.problems().is_empty());
//! assert!(report.to_html()?.contains("Nothing is wrong"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bundle;
mod certificate;
mod page;
mod problem;
mod report;
mod target;
mod time_line;

pub use problem::{ProblemSeverity, ReportedProblem};
pub use report::{ClusterReport, Subjects};
pub use target::{ReportedTarget, TrustedAuthority};
