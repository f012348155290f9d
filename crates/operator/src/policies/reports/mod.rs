//! What policies audit, told by reports: PolicyReports and ClusterPolicyReports of `wgpolicyk8s.io`, where the cluster serves them.
//!
//! ```text
//! PolicyServer -> AuditLedger (bounded) -> ReportWriter -> one report for each object, which it owns
//! ```
//!
//! A request waits for nothing of this. Each replica writes what it was asked about; the leader alone takes out what was said by
//! policies that are gone. What was said last of a rule counts, whoever wrote it and in which order. A report ends with its object:
//! that owns it, so the garbage collector of Kubernetes sees to it, and no right to read objects is needed.

mod audited_object;
mod audited_rules;
mod judged;
mod ledger;
mod policy_report;
mod writer;

pub use self::writer::REPORT_DEFINITIONS;
pub(crate) use self::{ledger::AuditLedger, writer::write_reports};
