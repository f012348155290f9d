//! The columns of tables, as kubectl prints them.

use super::kinds::ServedResource;
use crate::crd::Column;

const CREATED: &str = ".metadata.creationTimestamp";

/// Returns the columns of a kind.
pub(super) fn columns(served: &ServedResource) -> Vec<Column> {
    let name = column("Name", "string", ".metadata.name");
    let age = column("Age", "date", CREATED);
    if let Some(definition) = &served.definition {
        let declared = definition
            .version(&served.version)
            .map(|version| version.columns.clone())
            .unwrap_or_default();
        let default = declared.is_empty().then_some(age);
        return [name].into_iter().chain(default).chain(declared).collect();
    }
    let printed = printer_columns(&served.kind)
        .iter()
        .map(|(name, path)| column(name, "string", path));
    match served.kind.as_str() {
        "CustomResourceDefinition" => {
            vec![
                name,
                column("Created At", "date", "time:.metadata.creationTimestamp"),
            ]
        }
        "Event" => printed.collect(),
        _ => [name].into_iter().chain(printed).chain([age]).collect(),
    }
}

fn column(name: &str, column_type: &str, path: &str) -> Column {
    Column {
        name: name.to_owned(),
        column_type: column_type.to_owned(),
        json_path: path.to_owned(),
        priority: 0,
    }
}

/// Returns the columns of a built-in kind other than name and age: the heading and the path for
/// [`cell`](super::cells::cell).
fn printer_columns(kind: &str) -> &'static [(&'static str, &'static str)] {
    match kind {
        "ConfigMap" => &[("Data", "count:.data")],
        "Deployment" => &[
            ("Ready", "ready:deployment"),
            ("Up-to-date", ".status.updatedReplicas"),
            ("Available", ".status.availableReplicas"),
        ],
        "Event" => &[
            ("Last Seen", "seen:"),
            ("Type", ".type"),
            ("Reason", ".reason"),
            ("Object", "about:"),
            ("Message", "message:"),
        ],
        "Lease" => &[("Holder", ".spec.holderIdentity")],
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
            &[("Webhooks", "count:.webhooks")]
        }
        "Namespace" => &[("Status", ".status.phase")],
        "Node" => &[
            ("Status", "node:"),
            ("Version", ".status.nodeInfo.kubeletVersion"),
        ],
        "Pod" => &[
            ("Ready", "ready:pod"),
            ("Status", "status:pod"),
            ("Restarts", "restarts:"),
        ],
        "ReplicaSet" => &[
            ("Desired", ".spec.replicas"),
            ("Current", ".status.replicas"),
            ("Ready", ".status.readyReplicas"),
        ],
        "Secret" => &[("Type", ".type"), ("Data", "count:.data")],
        "Service" => &[
            ("Type", ".spec.type"),
            ("Cluster-IP", ".spec.clusterIP"),
            ("Port(s)", "ports:"),
        ],
        _ => &[],
    }
}
