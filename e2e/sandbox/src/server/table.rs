//! What clients are shown: whole objects, their metadata alone, or a table.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{call::Call, kinds::ServedResource};
use crate::crd::Column;

/// The form that a client asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Whole,
    Metadata,
    Table,
}

fn form(call: &Call) -> Form {
    for part in call.accept.split(',') {
        let mut form = None;
        for parameter in part.split(';').map(str::trim) {
            match parameter {
                "as=Table" => form = Some(Form::Table),
                "as=PartialObjectMetadata" | "as=PartialObjectMetadataList" => form = Some(Form::Metadata),
                _ => {}
            }
        }
        if let Some(form) = form {
            return form;
        }
        if part.trim().starts_with("application/json") || part.trim() == "*/*" {
            return Form::Whole;
        }
    }
    Form::Whole
}

/// One object, in the form that the client asks for.
pub(super) fn object(call: &Call, served: &ServedResource, object: Value) -> Value {
    match form(call) {
        Form::Whole => object,
        Form::Metadata => metadata_only(&object),
        Form::Table => {
            let metadata = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
            table(call, served, &[object], &metadata)
        }
    }
}

/// A list, in the form that the client asks for.
pub(super) fn list(call: &Call, served: &ServedResource, mut items: Vec<Value>, metadata: &Value) -> Value {
    match form(call) {
        Form::Whole => {
            if served.definition.is_none() {
                for fields in items.iter_mut().filter_map(Value::as_object_mut) {
                    fields.remove("apiVersion");
                    fields.remove("kind");
                }
            }
            let kind = match &served.definition {
                Some(definition) => definition.names.list_kind.clone(),
                None => format!("{}List", served.kind),
            };
            json!({"apiVersion": served.api_version(), "kind": kind, "metadata": metadata, "items": items})
        }
        Form::Metadata => {
            let items: Vec<Value> = items.iter().map(metadata_only).collect();
            json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList", "metadata": metadata,
                   "items": items})
        }
        Form::Table => table(call, served, &items, metadata),
    }
}

fn metadata_only(object: &Value) -> Value {
    json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": object["metadata"]})
}

fn table(call: &Call, served: &ServedResource, objects: &[Value], metadata: &Value) -> Value {
    let columns = columns(served);
    let definitions: Vec<Value> = columns
        .iter()
        .map(|column| {
            json!({"name": column.name, "type": column.column_type, "format": if column.name == "Name" { "name" } else { "" },
                   "description": column.name, "priority": column.priority})
        })
        .collect();
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| {
            let cells: Vec<Value> = columns.iter().map(|column| cell(object, column)).collect();
            let shown = match call.query("includeObject") {
                "None" => Value::Null,
                "Object" => object.clone(),
                _ => metadata_only(object),
            };
            json!({"cells": cells, "object": shown})
        })
        .collect();
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "columnDefinitions": definitions,
           "rows": rows})
}

const CREATED: &str = ".metadata.creationTimestamp";

fn columns(served: &ServedResource) -> Vec<Column> {
    let column = |name: &str, column_type: &str, path: &str| Column {
        name: name.to_owned(),
        column_type: column_type.to_owned(),
        json_path: path.to_owned(),
        priority: 0,
    };
    let mut columns = vec![column("Name", "string", ".metadata.name")];
    if let Some(definition) = &served.definition {
        let declared = definition
            .version(&served.version)
            .map(|version| version.columns.clone())
            .unwrap_or_default();
        if declared.is_empty() {
            columns.push(column("Age", "date", CREATED));
        }
        columns.extend(declared);
        return columns;
    }
    let row = |columns: &mut Vec<Column>, entries: &[(&str, &str)]| {
        columns.extend(entries.iter().map(|(name, path)| column(name, "string", path)));
    };
    match served.kind.as_str() {
        "ConfigMap" => row(&mut columns, &[("Data", "count:.data")]),
        "CustomResourceDefinition" => {
            columns.push(column("Created At", "date", "time:.metadata.creationTimestamp"));
            return columns;
        }
        "Deployment" => row(
            &mut columns,
            &[
                ("Ready", "ready:deployment"),
                ("Up-to-date", ".status.updatedReplicas"),
                ("Available", ".status.availableReplicas"),
            ],
        ),
        "Event" => {
            columns.clear();
            row(
                &mut columns,
                &[
                    ("Last Seen", "seen:"),
                    ("Type", ".type"),
                    ("Reason", ".reason"),
                    ("Object", "about:"),
                    ("Message", "message:"),
                ],
            );
            return columns;
        }
        "Lease" => row(&mut columns, &[("Holder", ".spec.holderIdentity")]),
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
            row(&mut columns, &[("Webhooks", "count:.webhooks")]);
        }
        "Namespace" => row(&mut columns, &[("Status", ".status.phase")]),
        "Node" => row(
            &mut columns,
            &[
                ("Status", "node:"),
                ("Version", ".status.nodeInfo.kubeletVersion"),
            ],
        ),
        "Pod" => row(
            &mut columns,
            &[
                ("Ready", "ready:pod"),
                ("Status", "status:pod"),
                ("Restarts", "restarts:"),
            ],
        ),
        "ReplicaSet" => row(
            &mut columns,
            &[
                ("Desired", ".spec.replicas"),
                ("Current", ".status.replicas"),
                ("Ready", ".status.readyReplicas"),
            ],
        ),
        "Secret" => row(&mut columns, &[("Type", ".type"), ("Data", "count:.data")]),
        "Service" => row(
            &mut columns,
            &[
                ("Type", ".spec.type"),
                ("Cluster-IP", ".spec.clusterIP"),
                ("Port(s)", "ports:"),
            ],
        ),
        _ => {}
    }
    columns.push(column("Age", "date", CREATED));
    columns
}

fn cell(object: &Value, column: &Column) -> Value {
    if let Some((what, path)) = column
        .json_path
        .split_once(':')
        .filter(|(what, _)| !what.starts_with(['.', '{']))
    {
        return computed(object, what, path);
    }
    let value = json_path::first(object, &column.json_path);
    match (column.column_type.as_str(), value) {
        ("date", Some(time)) => json!(age(time.as_str().unwrap_or_default())),
        ("date", None) => json!("<unknown>"),
        // A number that is not there is zero where the real printers count.
        (_, None) if column.json_path.starts_with(".status.") && column.json_path.ends_with("eplicas") => {
            json!(0)
        }
        (_, value) => value.unwrap_or_default(),
    }
}

fn computed(object: &Value, what: &str, path: &str) -> Value {
    let number = |path: &str| {
        json_path::first(object, path)
            .and_then(|value| value.as_i64())
            .unwrap_or(0)
    };
    let statuses = object["status"]["containerStatuses"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    match (what, path) {
        ("count", path) => match json_path::first(object, path) {
            Some(Value::Array(list)) => json!(list.len()),
            Some(Value::Object(fields)) => json!(fields.len()),
            _ => json!(0),
        },
        ("time", path) => json_path::first(object, path).unwrap_or_default(),
        ("ready", "deployment") => json!(format!(
            "{}/{}",
            number(".status.readyReplicas"),
            number(".spec.replicas")
        )),
        ("ready", _) => {
            let ready = statuses.iter().filter(|status| status["ready"] == true).count();
            let all = object["spec"]["containers"].as_array().map_or(0, Vec::len);
            json!(format!("{ready}/{all}"))
        }
        ("status", _) => pod_status(object, statuses),
        ("restarts", _) => json!(
            statuses
                .iter()
                .filter_map(|status| status["restartCount"].as_i64())
                .sum::<i64>()
        ),
        ("node", _) => {
            let ready = super::custom::condition(object, "Ready") == Some("True");
            json!(if ready { "Ready" } else { "NotReady" })
        }
        ("ports", _) => {
            let ports = object["spec"]["ports"].as_array().into_iter().flatten();
            let ports: Vec<String> = ports
                .map(|port| format!("{}/{}", port["port"], port["protocol"].as_str().unwrap_or("TCP")))
                .collect();
            json!(ports.join(","))
        }
        ("seen", _) => {
            let times = [
                "/lastTimestamp",
                "/series/lastObservedTime",
                "/eventTime",
                "/metadata/creationTimestamp",
            ];
            let time = times.iter().find_map(|path| object.pointer(path)?.as_str());
            json!(age(time.unwrap_or_default()))
        }
        ("about", _) => {
            let about = if object["regarding"].is_object() {
                &object["regarding"]
            } else {
                &object["involvedObject"]
            };
            let kind = about["kind"].as_str().unwrap_or_default().to_lowercase();
            json!(format!("{kind}/{}", about["name"].as_str().unwrap_or_default()))
        }
        ("message", _) => {
            let message = object["note"].as_str().or(object["message"].as_str());
            json!(message.unwrap_or_default().trim())
        }
        _ => Value::Null,
    }
}

fn pod_status(object: &Value, statuses: &[Value]) -> Value {
    if object["metadata"]["deletionTimestamp"].is_string() {
        return json!("Terminating");
    }
    let reasons = statuses.iter().find_map(|status| {
        let reason = |state: &str| status["state"][state]["reason"].as_str();
        reason("waiting").or(reason("terminated"))
    });
    json!(reasons.or(object["status"]["phase"].as_str()).unwrap_or_default())
}

/// How long ago a time was, as kubectl says it.
fn age(time: &str) -> String {
    let Ok(time) = time.parse::<Timestamp>() else {
        return "<unknown>".to_owned();
    };
    let seconds = Timestamp::now()
        .duration_since(time)
        .max(SignedDuration::ZERO)
        .as_secs();
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 => match seconds % 60 {
            0 => format!("{}m", seconds / 60),
            rest => format!("{}m{rest}s", seconds / 60),
        },
        600..10_800 => format!("{}m", seconds / 60),
        10_800..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}
