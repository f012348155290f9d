//! The cells of a table.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::custom::condition;
use crate::crd::Column;

/// Returns a cell: the value at the column's path, or a computed value if a name precedes a colon.
pub(super) fn cell(object: &Value, column: &Column) -> Value {
    if let Some((what, path)) = column
        .json_path
        .split_once(':')
        .filter(|(what, _)| !what.starts_with(['.', '{']))
    {
        return computed_cell(object, what, path);
    }
    let value = json_path::first(object, &column.json_path);
    match (column.column_type.as_str(), value) {
        ("date", Some(time)) => json!(age(time.as_str().unwrap_or_default())),
        ("date", None) => json!("<unknown>"),
        // The real printers show counts as zero if they are absent.
        (_, None) if column.json_path.starts_with(".status.") && column.json_path.ends_with("eplicas") => {
            json!(0)
        }
        (_, value) => value.unwrap_or_default(),
    }
}

fn computed_cell(object: &Value, what: &str, path: &str) -> Value {
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
            let is_ready = condition(object, "Ready") == Some("True");
            json!(if is_ready { "Ready" } else { "NotReady" })
        }
        ("ports", _) => json!(service_ports(object)),
        ("seen", _) => json!(age(last_seen(object))),
        ("about", _) => json!(event_object(object)),
        ("message", _) => {
            let message = object["note"].as_str().or(object["message"].as_str());
            json!(message.unwrap_or_default().trim())
        }
        _ => Value::Null,
    }
}

fn service_ports(service: &Value) -> String {
    let ports = service["spec"]["ports"].as_array().into_iter().flatten();
    let ports: Vec<String> = ports
        .map(|port| format!("{}/{}", port["port"], port["protocol"].as_str().unwrap_or("TCP")))
        .collect();
    ports.join(",")
}

/// Returns when an event was last seen; empty if it has no time.
fn last_seen(event: &Value) -> &str {
    let times = [
        "/lastTimestamp",
        "/series/lastObservedTime",
        "/eventTime",
        "/metadata/creationTimestamp",
    ];
    let time = times.iter().find_map(|path| event.pointer(path)?.as_str());
    time.unwrap_or_default()
}

/// Returns the object of an event as kubectl names it.
fn event_object(event: &Value) -> String {
    let object = if event["regarding"].is_object() {
        &event["regarding"]
    } else {
        &event["involvedObject"]
    };
    let kind = object["kind"].as_str().unwrap_or_default().to_lowercase();
    format!("{kind}/{}", object["name"].as_str().unwrap_or_default())
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

/// Returns the time since `time` in the format of kubectl.
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
