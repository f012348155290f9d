//! Reports of audit results: PolicyReports and ClusterPolicyReports of `wgpolicyk8s.io`, if the cluster
//! serves them.
//!
//! ```text
//! PolicyServer -> AuditLedger (bounded) -> ReportWriter -> one report for each object, which owns it
//! ```
//!
//! No request waits for reports. Each replica writes its own results; only the leader removes results of
//! deleted policies. The latest result of a rule wins, whichever replica wrote it and in whichever order. The
//! object owns its report, so the garbage collector of Kubernetes deletes the report, and Windlass needs no
//! right to read objects.

mod audited_object;
mod audited_rules;
mod judgements;
mod ledger;
mod policy_report;
mod writer;

pub use self::writer::REPORT_DEFINITIONS;
pub(crate) use self::{ledger::AuditLedger, writer::write_reports};
