//! Monitoring: objects for Prometheus and Grafana.

mod alerts;
mod dashboard;

use serde_json::{Value, json};
use windlass_operator::admission::{AdmissionService, CERTIFICATES_ACCOUNT};

pub use self::{alerts::rule_groups, dashboard::dashboard};
use super::document::{Document, NAME, NAMESPACE, labels};

const MONITOR_COMMENT: &str = "For the Prometheus operator: every replica is scraped. If Prometheus selects monitors and rules by labels, add them here.";

const DASHBOARD_COMMENT: &str =
    "For Grafana's sidecar, which loads ConfigMaps with this label; the JSON can also be imported by hand.";

/// Returns the PodMonitor and the PrometheusRule.
pub(super) fn documents() -> Vec<Document> {
    let deployments = [NAME, CERTIFICATES_ACCOUNT, AdmissionService::POLICIES.name];
    let monitor = json!({
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PodMonitor",
        "metadata": { "name": NAME, "namespace": NAMESPACE, "labels": labels() },
        "spec": {
            "selector": { "matchExpressions": [{
                "key": "app.kubernetes.io/name", "operator": "In", "values": deployments,
            }] },
            "podTargetLabels": ["app.kubernetes.io/name"],
            // The namespace label of a series is that of its subject.
            "podMetricsEndpoints": [{ "port": "health", "path": "/metrics", "honorLabels": true }],
        },
    });
    let rule = json!({
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": { "name": NAME, "namespace": NAMESPACE, "labels": labels() },
        "spec": rule_groups(),
    });
    vec![Document::commented(MONITOR_COMMENT, monitor), Document::new(rule)]
}

/// Returns the ConfigMap with the dashboard.
pub(super) fn dashboard_documents() -> anyhow::Result<Vec<Document>> {
    let mut labels = labels();
    labels["grafana_dashboard"] = "1".into();
    let text = serde_json::to_string_pretty(&dashboard())? + "\n";
    let config_map: Value = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": "windlass-dashboard", "namespace": NAMESPACE, "labels": labels },
        "data": { "windlass.json": text },
    });
    Ok(vec![Document::commented(DASHBOARD_COMMENT, config_map)])
}
