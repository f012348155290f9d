//! Metrics of the status of objects, read from the index at each scrape, so that series disappear with their
//! objects, and their number is bounded by the number of objects and fields.
//!
//! Every replica reports them: alerts take the maximum by object name.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use windlass_cluster::{
    Index, Kind, kinds,
    telemetry::{Metrics, Reading},
};
use windlass_object::object;

use super::{bundles, certificates};

/// A gauge from the status of objects of one kind.
pub(super) struct StateMetric {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    /// Returns labels, in addition to those of the object, with their values.
    pub(super) read: fn(&Value) -> Vec<Reading>,
}

/// Registers the state metrics of all kinds.
pub(super) fn report(metrics: &Metrics, index: &Arc<Index>) {
    for (kind, of_kind) in [
        (kinds::SERVING_CERTIFICATE, certificates::METRICS),
        (kinds::BUNDLE_DEPLOYMENT, bundles::METRICS),
    ] {
        for metric in of_kind {
            let (index, kind) = (index.clone(), kind.clone());
            metrics.report(metric.name, metric.help, move || metric.readings(&index, &kind));
        }
    }
}

impl StateMetric {
    fn readings(&self, index: &Index, kind: &Kind) -> Vec<Reading> {
        let objects = index.objects(kind);
        objects
            .iter()
            .flat_map(|object| self.readings_of(object))
            .collect()
    }

    fn readings_of(&self, object: &Value) -> impl Iterator<Item = Reading> {
        let named = identity(object);
        (self.read)(object).into_iter().map(move |(labels, value)| {
            let labels = named.iter().cloned().chain(labels).collect();
            (labels, value)
        })
    }
}

/// Returns the labels that identify an object; a cluster-scoped one has no namespace.
fn identity(object: &Value) -> Vec<(&'static str, String)> {
    [("namespace", "/metadata/namespace"), ("name", "/metadata/name")]
        .into_iter()
        .filter_map(|(label, pointer)| Some((label, object::text(object, pointer)?.to_owned())))
        .collect()
}

/// Returns a reading for each condition.
pub(super) fn conditions(object: &Value) -> Vec<Reading> {
    let conditions = object::items(object, "/status/conditions").iter();
    conditions
        .filter_map(|condition| {
            let text = |pointer| Some(object::text(condition, pointer)?.to_owned());
            let labels = vec![
                ("type", text("/type")?),
                ("status", text("/status")?),
                ("reason", text("/reason")?),
            ];
            Some((labels, 1))
        })
        .collect()
}

/// Returns a time as seconds since 1970.
pub(super) fn time(object: &Value, pointer: &str) -> Option<i64> {
    let time: Timestamp = object::text(object, pointer)?.parse().ok()?;
    Some(time.as_second())
}

/// Returns a reading without further labels.
pub(super) fn single(value: Option<i64>) -> Vec<Reading> {
    value.map(|value| (Vec::new(), value)).into_iter().collect()
}

/// Returns a reading of 1 with these labels, if all have values.
pub(super) fn info_reading<const N: usize>(labels: [(&'static str, Option<&str>); N]) -> Vec<Reading> {
    let labels = labels.into_iter();
    let labels: Option<Vec<_>> = labels
        .map(|(label, value)| Some((label, value?.to_owned())))
        .collect();
    labels.map(|labels| (labels, 1)).into_iter().collect()
}

/// Returns the number at a pointer.
pub(super) fn number(object: &Value, pointer: &str) -> Option<i64> {
    object.pointer(pointer)?.as_i64()
}

/// Returns a reading for each value that is set, with its name as the label.
pub(super) fn labelled<const N: usize>(
    label: &'static str,
    values: [(&str, Option<i64>); N],
) -> Vec<Reading> {
    values
        .into_iter()
        .filter_map(|(name, value)| Some((vec![(label, name.to_owned())], value?)))
        .collect()
}

/// Returns the readings of an object in the format of Prometheus, for the tests of each kind.
#[cfg(test)]
pub(super) fn lines(metrics: &[StateMetric], object: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    for metric in metrics {
        for (labels, value) in metric.readings_of(object) {
            let labels: Vec<_> = labels
                .iter()
                .map(|(label, value)| format!("{label}={value:?}"))
                .collect();
            lines.push(format!("{}{{{}}} {value}", metric.name, labels.join(",")));
        }
    }
    lines
}
