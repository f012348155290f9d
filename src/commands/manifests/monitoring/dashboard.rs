//! The Grafana dashboard: problems first, then certificates, bundles, policies and the operator.

use serde_json::{Value, json};

/// A panel: its title, type, unit, and queries with their legends.
struct Panel {
    title: &'static str,
    drawn: Drawing,
    unit: &'static str,
    queries: &'static [(&'static str, &'static str)],
}

/// The type of a panel.
#[derive(Clone, Copy, Debug)]
enum Drawing {
    Number,
    Lines,
    Table,
}

const ROWS: [(&str, &[Panel]); 5] = [
    ("Problems", PROBLEMS),
    ("Certificates", CERTIFICATES),
    ("Bundles", BUNDLES),
    ("Policies", POLICIES),
    ("Operator", OPERATOR),
];

const PROBLEMS: &[Panel] = &[
    Panel {
        title: "Alerts",
        drawn: Drawing::Table,
        unit: "none",
        queries: &[(
            "ALERTS{alertname=~\"Windlass.*\", alertstate=\"firing\"}",
            "{{alertname}}",
        )],
    },
    Panel {
        title: "Conditions that are not True",
        drawn: Drawing::Table,
        unit: "none",
        queries: &[
            (
                "max by (namespace, name, type, status, reason) (windlass_serving_certificate_condition{status!=\"True\"})",
                "{{namespace}}/{{name}}",
            ),
            (
                "max by (name, type, status, reason) (windlass_bundle_deployment_condition{status!=\"True\"})",
                "{{name}}",
            ),
        ],
    },
];

const CERTIFICATES: &[Panel] = &[
    Panel {
        title: "First to expire",
        drawn: Drawing::Number,
        unit: "s",
        queries: &[(
            "min(windlass_serving_certificate_expiration_timestamp_seconds) - time()",
            "",
        )],
    },
    Panel {
        title: "Rotations in progress",
        drawn: Drawing::Number,
        unit: "none",
        queries: &[(
            "count(max by (namespace, name) (windlass_serving_certificate_phase{phase!=\"Stable\"})) or vector(0)",
            "",
        )],
    },
    Panel {
        title: "Time left",
        drawn: Drawing::Lines,
        unit: "s",
        queries: &[(
            "min by (namespace, name) (windlass_serving_certificate_expiration_timestamp_seconds) - time()",
            "{{namespace}}/{{name}}",
        )],
    },
    Panel {
        title: "CAs",
        drawn: Drawing::Lines,
        unit: "none",
        queries: &[(
            "max by (namespace, name) (windlass_serving_certificate_ca_generation{ca=\"current\"})",
            "{{namespace}}/{{name}}",
        )],
    },
    Panel {
        title: "Endpoints without the current certificate",
        drawn: Drawing::Lines,
        unit: "none",
        queries: &[(
            "max by (namespace, name) (windlass_serving_certificate_endpoints{state=\"ready\"}) - max by (namespace, name) (windlass_serving_certificate_endpoints{state=\"current\"})",
            "{{namespace}}/{{name}}",
        )],
    },
    Panel {
        title: "Targets",
        drawn: Drawing::Lines,
        unit: "none",
        queries: &[(
            "sum by (state) (max by (namespace, name, state) (windlass_serving_certificate_targets))",
            "{{state}}",
        )],
    },
    Panel {
        title: "Repairs of targets",
        drawn: Drawing::Lines,
        unit: "none",
        queries: &[(
            "sum by (kind, name) (increase(windlass_target_repairs_total[5m]))",
            "{{kind}} {{name}}",
        )],
    },
    Panel {
        title: "Handshakes and conversions with endpoints",
        drawn: Drawing::Lines,
        unit: "ops",
        queries: &[(
            "sum by (kind, outcome) (rate(windlass_probes_total[5m]))",
            "{{kind}}: {{outcome}}",
        )],
    },
];

const BUNDLES: &[Panel] = &[
    Panel {
        title: "Installed",
        drawn: Drawing::Table,
        unit: "none",
        queries: &[(
            "max by (name, package, version) (windlass_bundle_deployment_info)",
            "{{name}}",
        )],
    },
    Panel {
        title: "Webhooks and conversions",
        drawn: Drawing::Lines,
        unit: "none",
        queries: &[(
            "sum by (state) (max by (name, state) (windlass_bundle_deployment_webhooks))",
            "{{state}}",
        )],
    },
    Panel {
        title: "Revisions",
        drawn: Drawing::Lines,
        unit: "none",
        queries: &[(
            "max by (name, state) (windlass_bundle_deployment_revision)",
            "{{name}}: {{state}}",
        )],
    },
];

const POLICIES: &[Panel] = &[
    Panel {
        title: "Response time, 99th percentile",
        drawn: Drawing::Lines,
        unit: "s",
        queries: &[(
            "histogram_quantile(0.99, sum by (stage, le) (rate(windlass_policy_review_duration_seconds_bucket[5m])))",
            "{{stage}}",
        )],
    },
    Panel {
        title: "Requests to the policy server",
        drawn: Drawing::Lines,
        unit: "ops",
        queries: &[
            (
                "sum by (name) (rate(kcloudlabs_override_policy_matched_count[5m]))",
                "{{name}}",
            ),
            (
                "sum by (name) (rate(kcloudlabs_validate_policy_matched_count[5m]))",
                "{{name}}",
            ),
        ],
    },
    Panel {
        title: "Rejected requests and failures",
        drawn: Drawing::Lines,
        unit: "ops",
        queries: &[
            (
                "sum by (name) (rate(kcloudlabs_validate_policy_reject_count[5m]))",
                "{{name}} refuses",
            ),
            (
                "sum by (name, error_type) (rate(kcloudlabs_policy_error_count[5m]))",
                "{{name}} fails: {{error_type}}",
            ),
        ],
    },
];

const OPERATOR: &[Panel] = &[
    Panel {
        title: "Leaders",
        drawn: Drawing::Lines,
        unit: "none",
        queries: &[(
            "sum by (app_kubernetes_io_name) (windlass_leader)",
            "{{app_kubernetes_io_name}}",
        )],
    },
    Panel {
        title: "Requests to API servers",
        drawn: Drawing::Lines,
        unit: "ops",
        queries: &[(
            "sum by (method, code) (rate(rest_client_requests_total{app_kubernetes_io_name=~\"windlass.*\"}[5m]))",
            "{{method}} {{code}}",
        )],
    },
    Panel {
        title: "Reconciliations",
        drawn: Drawing::Lines,
        unit: "ops",
        queries: &[(
            "sum by (controller, outcome) (rate(windlass_reconciliations_total[5m]))",
            "{{controller}}: {{outcome}}",
        )],
    },
    Panel {
        title: "Time of reconciliations, 99th percentile",
        drawn: Drawing::Lines,
        unit: "s",
        queries: &[(
            "histogram_quantile(0.99, sum by (controller, le) (rate(windlass_reconciliation_duration_seconds_bucket[5m])))",
            "{{controller}}",
        )],
    },
    Panel {
        title: "Objects in the caches",
        drawn: Drawing::Lines,
        unit: "none",
        queries: &[("max by (kind) (windlass_index_objects)", "{{kind}}")],
    },
];

/// The total width in units of Grafana's grid; a panel has half of it.
const WIDTH: usize = 24;

const HEIGHT: usize = 8;

/// Returns the dashboard for import into Grafana, where the user chooses the data source.
pub fn dashboard() -> Value {
    let mut panels = Vec::new();
    let mut top = 0;
    for (title, row) in ROWS {
        panels.push(json!({
            "id": panels.len() + 1,
            "type": "row",
            "title": title,
            "collapsed": false,
            "panels": [],
            "gridPos": { "x": 0, "y": top, "w": WIDTH, "h": 1 },
        }));
        top += 1;
        for (index, panel) in row.iter().enumerate() {
            let place = json!({
                "x": index % 2 * (WIDTH / 2), "y": top + index / 2 * HEIGHT, "w": WIDTH / 2, "h": HEIGHT,
            });
            panels.push(panel.json(panels.len() + 1, &place));
        }
        top += row.len().div_ceil(2) * HEIGHT;
    }
    json!({
        "title": "Windlass",
        "uid": "windlass",
        "tags": ["kubernetes", "webhooks", "certificates"],
        "schemaVersion": 39,
        "editable": true,
        "time": { "from": "now-6h", "to": "now" },
        "refresh": "1m",
        "templating": { "list": [{
            "name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus",
        }] },
        "panels": panels,
    })
}

impl Panel {
    fn json(&self, id: usize, place: &Value) -> Value {
        let source = json!({ "type": "prometheus", "uid": "${datasource}" });
        let is_table = matches!(self.drawn, Drawing::Table);
        let targets = self.queries.iter().zip('A'..).map(|((query, legend), name)| {
            json!({
                "refId": name.to_string(),
                "datasource": source,
                "expr": query,
                "legendFormat": legend,
                "instant": is_table,
                "range": !is_table,
                "format": if is_table { "table" } else { "time_series" },
            })
        });
        json!({
            "id": id,
            "type": self.drawn.panel(),
            "title": self.title,
            "datasource": source,
            "gridPos": place,
            "fieldConfig": { "defaults": { "unit": self.unit }, "overrides": [] },
            "targets": targets.collect::<Vec<_>>(),
        })
    }
}

impl Drawing {
    /// Returns Grafana's name of the panel type.
    fn panel(self) -> &'static str {
        match self {
            Self::Number => "stat",
            Self::Lines => "timeseries",
            Self::Table => "table",
        }
    }
}
