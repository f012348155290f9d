//! The contents of the page.

use std::collections::{BTreeMap, BTreeSet};

use askama::Template;
use jiff::Timestamp;
use windlass_api::{BundleDeployment, ServingCertificate};

use crate::{
    bundle::{self, BundleRow},
    certificate::{self, CertificateRow},
    page::ReportPage,
    problem::{ReportFinding, ReportedProblem, ReportedStep},
    target::{ReportedTarget, TrustedAuthority},
    time_line::TimeLine,
};

/// The objects of a report.
#[derive(Clone, Debug, Default)]
pub struct Subjects {
    /// All BundleDeployments.
    pub bundle_deployments: Vec<BundleDeployment>,
    /// All ServingCertificates.
    pub serving_certificates: Vec<ServingCertificate>,
    /// The objects that request a CA bundle.
    pub targets: Vec<ReportedTarget>,
    /// Kinds whose objects could not be read, with the cause; the report is incomplete for these.
    pub unread: Vec<String>,
}

/// The state of a cluster at one time.
#[derive(Clone, Debug)]
pub struct ClusterReport {
    pub(crate) at: Timestamp,
    pub(crate) cluster: String,
    pub(crate) problems: Vec<ReportedProblem>,
    pub(crate) under_way: Vec<ReportedStep>,
    pub(crate) bundles: Vec<BundleRow>,
    pub(crate) line: TimeLine,
    pub(crate) certificates: Vec<CertificateRow>,
    pub(crate) trust: Vec<TrustRow>,
    pub(crate) unread: Vec<String>,
}

/// Targets that trust the same CAs.
#[derive(Clone, Debug)]
pub(crate) struct TrustRow {
    pub(crate) certificate: String,
    pub(crate) trusts: Vec<TrustedAuthority>,
    pub(crate) is_incomplete: bool,
    pub(crate) targets: Vec<String>,
}

impl ClusterReport {
    /// Creates the report on `subjects` at the time `at`; `cluster` is the name of the cluster on the page.
    pub fn new(subjects: &Subjects, cluster: &str, at: Timestamp) -> Self {
        let certificates = &subjects.serving_certificates;
        let trusted = subjects.targets.iter().flat_map(|target| &target.trusts);
        let ends = certificates.iter().flat_map(certificate::ends);
        let line = TimeLine::new(at, ends.chain(trusted.map(|authority| authority.not_after)));

        let (mut problems, mut under_way) = (Vec::new(), Vec::new());
        let deployments = subjects.bundle_deployments.iter();
        let findings = deployments.filter_map(|deployment| bundle::finding(deployment, at));
        let findings = findings.chain(
            certificates
                .iter()
                .flat_map(|certificate| certificate::findings(certificate, at)),
        );
        for finding in findings {
            match finding {
                ReportFinding::Problem(problem) => problems.push(problem),
                ReportFinding::ReportedStep(step) => under_way.push(step),
            }
        }
        let known: BTreeSet<_> = certificates.iter().map(certificate::name).collect();
        let targets = subjects.targets.iter();
        problems.extend(targets.filter_map(|target| target.problem(known.contains(&target.certificate), at)));
        problems.sort_by_cached_key(|problem| {
            (problem.severity, problem.subject.clone(), problem.reason.clone())
        });

        let mut bundles: Vec<_> = subjects
            .bundle_deployments
            .iter()
            .map(|deployment| BundleRow::new(deployment, at))
            .collect();
        bundles.sort_by_cached_key(|row| (row.is_ready, row.name.clone()));
        let mut rows: Vec<_> = certificates
            .iter()
            .map(|certificate| CertificateRow::new(certificate, &line, at))
            .collect();
        rows.sort_by_cached_key(|row| (row.is_ready, row.name.clone()));
        Self {
            at,
            cluster: cluster.to_owned(),
            problems,
            under_way,
            bundles,
            line,
            certificates: rows,
            trust: trust(&subjects.targets),
            unread: subjects.unread.clone(),
        }
    }

    /// Returns the problems, worst first.
    pub fn problems(&self) -> &[ReportedProblem] {
        &self.problems
    }

    /// Renders the self-contained page.
    ///
    /// # Errors
    ///
    /// If the template cannot be rendered.
    pub fn to_html(&self) -> Result<String, askama::Error> {
        ReportPage::new(self).render()
    }
}

impl TrustRow {
    /// Returns the numbers of targets and CAs.
    pub(crate) fn summary(&self) -> String {
        let count =
            |number: usize, word: &str| format!("{number} {word}{}", if number == 1 { "" } else { "s" });
        let verb = if self.targets.len() == 1 {
            "trusts"
        } else {
            "trust"
        };
        format!(
            "{} {verb} {}",
            count(self.targets.len(), "target"),
            count(self.trusts.len(), "CA")
        )
    }
}

/// Groups targets by certificate and trusted CAs, because most targets of a certificate trust the same.
fn trust(targets: &[ReportedTarget]) -> Vec<TrustRow> {
    let mut rows: BTreeMap<(&str, bool, Vec<&str>), TrustRow> = BTreeMap::new();
    for target in targets {
        let fingerprints = target
            .trusts
            .iter()
            .map(|authority| authority.fingerprint.as_str());
        let row = rows
            .entry((&target.certificate, !target.is_incomplete, fingerprints.collect()))
            .or_insert_with(|| TrustRow {
                certificate: target.certificate.clone(),
                trusts: target.trusts.clone(),
                is_incomplete: target.is_incomplete,
                targets: Vec::new(),
            });
        row.targets.push(target.key.to_string());
    }
    rows.into_values().collect()
}
