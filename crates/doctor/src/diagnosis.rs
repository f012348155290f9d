//! The ordered findings, limited in number per kind.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use windlass_object::text::shortened;

use crate::{
    check::CheckGroup,
    finding::{DoctorFinding, DoctorSeverity},
};

/// The result of all checks of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Diagnosis {
    /// How many errors were found, including those left out.
    pub errors: usize,
    /// How many warnings were found, including those left out.
    pub warnings: usize,
    /// The worst first, then by group.
    pub findings: Vec<DoctorFinding>,
    /// Omitted findings, of which there are too many of one kind.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOutFindings>,
}

/// Findings that the report omits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOutFindings {
    /// Severity of the omitted findings.
    pub severity: DoctorSeverity,
    /// Group of the omitted findings.
    pub group: CheckGroup,
    /// Number of the omitted findings.
    pub count: usize,
}

/// How many findings of one severity and reason are kept.
const MAX_PER_REASON: usize = 50;

/// How many findings of one severity and group are kept, because other controllers can use any reason.
const MAX_PER_GROUP: usize = 200;

/// Size limit of message and subject, in bytes, because other controllers write some.
const MAX_BYTES: usize = 1500;

impl Diagnosis {
    /// Sorts findings and removes duplicates with the same subject and reason.
    pub fn new(findings: impl IntoIterator<Item = DoctorFinding>) -> Self {
        let mut findings: Vec<_> = findings.into_iter().collect();
        // The sort is stable, so the first of several duplicates is kept.
        findings.sort_by(|one, other| key(one).cmp(&key(other)));
        let mut said = BTreeSet::new();
        findings.retain(|finding| {
            let is_repeated = finding.severity != DoctorSeverity::Info
                && !said.insert((finding.reason.clone(), finding.subject.clone()));
            !is_repeated
        });
        let count = |severity| {
            let of_it = findings.iter().filter(|finding| finding.severity == severity);
            of_it.count()
        };
        let (errors, warnings) = (count(DoctorSeverity::Error), count(DoctorSeverity::Warning));
        let mut shown = Self {
            errors,
            warnings,
            ..Self::default()
        };
        let mut of_reason = BTreeMap::<(DoctorSeverity, String), usize>::new();
        let mut of_group = BTreeMap::<(DoctorSeverity, CheckGroup), (usize, usize)>::new();
        for mut finding in findings {
            let DoctorFinding { severity, group, .. } = finding;
            let (kept, left_out) = of_group.entry((severity, group)).or_default();
            let same = of_reason.entry((severity, finding.reason.clone())).or_default();
            if *same == MAX_PER_REASON || *kept == MAX_PER_GROUP {
                *left_out += 1;
                continue;
            }
            *same += 1;
            *kept += 1;
            finding.message = shortened(finding.message, MAX_BYTES);
            finding.subject = shortened(finding.subject, MAX_BYTES);
            shown.findings.push(finding);
        }
        let left_out = of_group.into_iter().filter(|(_, (_, count))| *count > 0);
        shown.left_out = left_out
            .map(|((severity, group), (_, count))| LeftOutFindings {
                severity,
                group,
                count,
            })
            .collect();
        shown
    }
}

fn key(finding: &DoctorFinding) -> impl Ord + '_ {
    let DoctorFinding {
        severity,
        group,
        reason,
        subject,
        ..
    } = finding;
    (severity, group, reason, subject)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::DoctorCheck;

    #[test]
    fn the_worst_finding_comes_first_without_duplicates() {
        let diagnosis = Diagnosis::new([
            DoctorCheck::KubernetesVersion.info("a", ""),
            DoctorCheck::NoReadyEndpoint.warning("b", ""),
            DoctorCheck::TrustEnded.error("c", "first"),
            DoctorCheck::TrustEnded.error("c", "second"),
            DoctorCheck::NotLookedAt.info("d", "one"),
            DoctorCheck::NotLookedAt.info("d", "other"),
        ]);
        let messages: Vec<_> = diagnosis
            .findings
            .iter()
            .map(|finding| (finding.subject.as_str(), finding.message.as_str()))
            .collect();
        assert_eq!(
            messages,
            [("c", "first"), ("b", ""), ("a", ""), ("d", "one"), ("d", "other")]
        );
        assert_eq!((diagnosis.errors, diagnosis.warnings), (1, 1));
        assert!(diagnosis.left_out.is_empty());
    }

    #[test]
    fn excess_findings_of_one_reason_are_only_counted() {
        let many = (0..1000).map(|number| DoctorCheck::ServiceNotFound.error(number, ""));
        let diagnosis = Diagnosis::new(many.chain([DoctorCheck::TrustEnded.error("c", "")]));
        assert_eq!(diagnosis.errors, 1001);
        assert_eq!(diagnosis.findings.len(), MAX_PER_REASON + 1);
        assert_eq!(diagnosis.left_out[0].count, 1000 - MAX_PER_REASON);
        let mut strange: Vec<_> = (0..1000)
            .map(|number| DoctorCheck::ReportedProblem.warning(number, "x".repeat(MAX_BYTES * 2)))
            .collect();
        for (number, finding) in strange.iter_mut().enumerate() {
            finding.reason = number.to_string();
        }
        let diagnosis = Diagnosis::new(strange);
        assert_eq!(
            (diagnosis.findings.len(), diagnosis.left_out.len()),
            (MAX_PER_GROUP, 1)
        );
        assert!(diagnosis.findings[0].message.len() < MAX_BYTES + 4);
    }
}
