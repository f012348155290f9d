//! Checks for coming outages: reported conditions, namespaces, disruption budgets, network policies and node
//! clocks.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;
use windlass_api::{BundleDeployment, ServingCertificate};
use windlass_cluster::{Kind, kinds};
use windlass_doctor::{
    DoctorCheck, DoctorFinding, DoctorSeverity, disruption_budget, egress_policy, node_clocks,
    terminating_namespace,
};
use windlass_object::object;
use windlass_report::{ClusterReport, ProblemSeverity, Subjects};

use super::{callers::Callers, examination::Examination, versions::programs};

const NODE: Kind = Kind::new("v1", "Node");

const POD_DISRUPTION_BUDGET: Kind = Kind::new("policy/v1", "PodDisruptionBudget");

const NETWORK_POLICY: Kind = Kind::new("networking.k8s.io/v1", "NetworkPolicy");

/// The namespace of the nodes' Leases.
const NODE_LEASES: &str = "kube-node-lease";

impl Examination<'_> {
    /// Checks for outages that a later change or the loss of a node would cause.
    pub(super) async fn check_outage_risks(&mut self, callers: &Callers) {
        self.check_reported_conditions(callers).await;
        let now = self.now();
        let stuck = |namespace: Value| terminating_namespace(&namespace, now);
        let found = self.list(&kinds::NAMESPACE, None, None, stuck).await;
        self.add(found.unwrap_or_default());
        let namespace = self.namespace;
        let is_called = |budget: &Value| {
            let place = object::text(budget, "/metadata/namespace").unwrap_or_default();
            place == namespace || callers.namespaces.contains(place)
        };
        let held_up = |budget: Value| {
            Some(budget)
                .filter(is_called)
                .and_then(|budget| disruption_budget(&budget))
        };
        let found = self.list(&POD_DISRUPTION_BUDGET, None, None, held_up).await;
        self.add(found.unwrap_or_default());
        let restricting = |policy: Value| egress_policy(&policy, &programs());
        let found = self
            .list(&NETWORK_POLICY, Some(namespace), None, restricting)
            .await;
        self.add(found.unwrap_or_default());
        self.check_nodes(now).await;
    }

    /// Reports problems in the conditions of Windlass objects, and certificates that are about to expire.
    async fn check_reported_conditions(&mut self, callers: &Callers) {
        let read = |object: Value| serde_json::from_value::<BundleDeployment>(object).ok();
        let deployments = self.list(&kinds::BUNDLE_DEPLOYMENT, None, None, read).await;
        let read = |object: Value| serde_json::from_value::<ServingCertificate>(object).ok();
        let certificates = self.list(&kinds::SERVING_CERTIFICATE, None, None, read).await;
        let (Some(bundle_deployments), Some(serving_certificates)) = (deployments, certificates) else {
            return;
        };
        let counts = (bundle_deployments.len(), serving_certificates.len());
        let subjects = Subjects {
            bundle_deployments,
            serving_certificates,
            targets: callers.targets.clone(),
            unread: Vec::new(),
        };
        let check = DoctorCheck::ReportedProblem;
        let report = ClusterReport::new(&subjects, "", self.now());
        let problems: Vec<_> = report
            .problems()
            .iter()
            .map(|problem| DoctorFinding {
                severity: match problem.severity {
                    ProblemSeverity::Failing => DoctorSeverity::Error,
                    ProblemSeverity::Waiting => DoctorSeverity::Warning,
                },
                group: check.group(),
                reason: problem.reason.clone(),
                subject: problem.subject.clone(),
                message: problem.message.clone(),
            })
            .collect();
        if problems.is_empty() && counts != (0, 0) {
            let (bundles, certificates) = counts;
            let message = format!(
                "{bundles} BundleDeployments and {certificates} ServingCertificates: their conditions report no problem"
            );
            self.add([check.info("Windlass", message)]);
        }
        self.add(problems);
    }

    /// Checks the clocks of nodes.
    async fn check_nodes(&mut self, now: Timestamp) {
        let ready = |node: Value| {
            let ready = object::condition(&node, "Ready")?;
            let is_ready = object::text(ready, "/status") == Some("True");
            let name = object::text(&node, "/metadata/name")?;
            is_ready.then(|| name.to_owned())
        };
        let Some(ready) = self.list(&NODE, None, None, ready).await else {
            return;
        };
        let renewed = |lease: Value| {
            let renewed = object::text(&lease, "/spec/renewTime")?.parse().ok()?;
            Some((object::text(&lease, "/metadata/name")?.to_owned(), renewed))
        };
        let leases = self.list(&kinds::LEASE, Some(NODE_LEASES), None, renewed).await;
        let Some(leases) = leases else {
            return;
        };
        let ready: BTreeSet<String> = ready.into_iter().collect();
        // Taken again, since the lists took time.
        let now = now.max(self.now());
        self.add(node_clocks(&leases, &ready, now));
    }
}
