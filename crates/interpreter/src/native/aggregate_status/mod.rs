//! Aggregates the status of several clusters.

mod address;
mod job;
mod phase;

use jiff::Timestamp;
use serde_json::{Map, Value};
use windlass_object::JsonPath;

use super::counts::{self, count};
use crate::{
    fields::{FieldTypeError, Fields},
    question::AggregatedStatusItem,
};

/// Aggregates the status for one kind; `None` leaves the object unchanged.
pub(super) type AggregationRule = fn(&Aggregation<'_>) -> Result<Option<Status>, AggregateStatusError>;

/// Why the status cannot be aggregated.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message explains each field")]
pub enum AggregateStatusError {
    /// A field of the object has the wrong type.
    #[error(transparent)]
    Object(#[from] FieldTypeError),
    /// A field of a cluster's status has the wrong type.
    #[error("cluster {cluster}: {source}")]
    Cluster {
        /// The name of the cluster.
        cluster: String,
        source: FieldTypeError,
    },
}

pub(super) type Status = Map<String, Value>;

/// The input of an aggregation.
pub(super) struct Aggregation<'a> {
    object: Fields<'a>,
    clusters: Vec<InMember<'a>>,
    /// Whether any status was collected.
    is_collected: bool,
    now: Timestamp,
}

/// The object in one cluster.
struct InMember<'a> {
    cluster: &'a str,
    /// `None` if no status was collected.
    status: Option<Fields<'a>>,
}

/// The status of the object in one cluster.
struct MemberStatus<'b, 'a> {
    cluster: &'a str,
    fields: &'b Fields<'a>,
}

pub(super) fn rule(api_version: &str, kind: &str) -> Option<AggregationRule> {
    Some(match (api_version, kind) {
        ("apps/v1", "Deployment") => |aggregation| workload(aggregation, counts::DEPLOYMENT),
        ("apps/v1", "ReplicaSet") => |aggregation| workload(aggregation, counts::REPLICA_SET),
        ("apps/v1", "StatefulSet") => |aggregation| workload(aggregation, counts::STATEFUL_SET),
        ("apps/v1", "DaemonSet") => |aggregation| workload(aggregation, counts::DAEMON_SET),
        ("policy/v1", "PodDisruptionBudget") => budget,
        ("autoscaling/v2", "HorizontalPodAutoscaler") => {
            |aggregation| aggregation.with_sums(counts::HORIZONTAL_POD_AUTOSCALER).map(Some)
        }
        ("v1", "Service") => address::service_status,
        ("networking.k8s.io/v1", "Ingress") => {
            |aggregation| address::load_balancer_status(aggregation).map(Some)
        }
        ("batch/v1", "Job") => job::job_status,
        ("batch/v1", "CronJob") => job::cron_job_status,
        ("v1", "Pod") => phase::pod_status,
        ("v1", "PersistentVolume") => phase::volume_status,
        ("v1", "PersistentVolumeClaim") => phase::claim_status,
        _ => return None,
    })
}

/// Applies a rule to the object.
pub(super) fn aggregate(
    rule: AggregationRule,
    object: &Value,
    items: Option<&[AggregatedStatusItem]>,
    now: Timestamp,
) -> Result<Value, AggregateStatusError> {
    let status = rule(&Aggregation::new(object, items, now))?;
    let mut object = object.clone();
    if let (Some(status), Value::Object(fields)) = (status, &mut object) {
        fields.insert("status".to_owned(), status.into());
    }
    Ok(object)
}

/// Adds numbers, and sets observedGeneration after all clusters have observed the object.
fn workload(aggregation: &Aggregation<'_>, counts: &[&str]) -> Result<Option<Status>, AggregateStatusError> {
    let mut status = aggregation.with_sums(counts)?;
    let generation = count(&aggregation.object, "metadata.generation")?;
    let mut is_observed = true;
    for cluster in &aggregation.clusters {
        let seen = cluster.status();
        is_observed &= seen.map_or(Ok(false), |seen| seen.is_observed(generation))?;
    }
    if is_observed {
        set_count(&mut status, counts::OBSERVED_GENERATION, generation);
    }
    Ok(Some(status))
}

fn budget(aggregation: &Aggregation<'_>) -> Result<Option<Status>, AggregateStatusError> {
    let mut status = aggregation.with_sums(counts::POD_DISRUPTION_BUDGET)?;
    let mut disrupted = Map::new();
    for member in aggregation.collected() {
        let pods = member.read(|status| status.object("disruptedPods"))?;
        for (pod, since) in pods.into_iter().flatten() {
            disrupted.insert(format!("{}/{pod}", member.cluster), since.clone());
        }
    }
    set_or_remove(
        &mut status,
        "disruptedPods",
        (!disrupted.is_empty()).then_some(disrupted),
    );
    Ok(Some(status))
}

/// Sets or removes a field.
fn set_or_remove(status: &mut Status, name: &str, value: Option<impl Into<Value>>) {
    match value {
        Some(value) => status.insert(name.to_owned(), value.into()),
        None => status.remove(name),
    };
}

/// Sets a number. A new 0 is omitted, as by the API server, so that both are equal.
fn set_count(status: &mut Status, name: &str, count: i64) {
    if count != 0 || status.contains_key(name) {
        status.insert(name.to_owned(), count.into());
    }
}

impl<'a> Aggregation<'a> {
    fn new(object: &'a Value, items: Option<&'a [AggregatedStatusItem]>, now: Timestamp) -> Self {
        let clusters = items.unwrap_or_default().iter().map(|item| InMember {
            cluster: &item.cluster_name,
            status: item
                .status
                .as_ref()
                .filter(|status| !status.is_null())
                .map(|status| Fields::at_path(JsonPath::from_fields("status"), status)),
        });
        Self {
            object: Fields::new(object),
            clusters: clusters.collect(),
            is_collected: items.is_some(),
            now,
        }
    }

    /// Returns the collected statuses.
    fn collected(&self) -> impl Iterator<Item = MemberStatus<'_, 'a>> {
        self.clusters.iter().filter_map(InMember::status)
    }

    /// Returns the current status.
    fn status(&self) -> Result<Status, FieldTypeError> {
        Ok(self.object.object("status")?.cloned().unwrap_or_default())
    }

    /// Returns the status with the sums of numbers.
    fn with_sums(&self, counts: &[&str]) -> Result<Status, AggregateStatusError> {
        let mut status = self.status()?;
        for name in counts {
            set_count(&mut status, name, self.sum(name)?);
        }
        Ok(status)
    }

    fn sum(&self, name: &str) -> Result<i64, AggregateStatusError> {
        let mut sum = 0_i64;
        for member in self.collected() {
            sum = sum.saturating_add(member.read(|status| count(status, name))?);
        }
        Ok(sum)
    }
}

impl<'a> InMember<'a> {
    fn status(&self) -> Option<MemberStatus<'_, 'a>> {
        let fields = self.status.as_ref()?;
        Some(MemberStatus {
            cluster: self.cluster,
            fields,
        })
    }
}

impl<'a> MemberStatus<'_, 'a> {
    fn read<T>(
        &self,
        read: impl FnOnce(&Fields<'a>) -> Result<T, FieldTypeError>,
    ) -> Result<T, AggregateStatusError> {
        read(self.fields).map_err(|source| AggregateStatusError::Cluster {
            cluster: self.cluster.to_owned(),
            source,
        })
    }

    /// Reports whether the status is for the current object in its cluster, which was created from the
    /// current generation.
    fn is_observed(&self, generation: i64) -> Result<bool, AggregateStatusError> {
        self.read(|status| {
            let observed = count(status, counts::OBSERVED_GENERATION)?;
            let of_template = count(status, counts::TEMPLATE_GENERATION)?;
            Ok(observed >= count(status, counts::GENERATION)? && of_template >= generation)
        })
    }
}
