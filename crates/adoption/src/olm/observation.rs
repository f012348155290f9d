//! What is to be known of a cluster to take an operator over from OLM.

use serde_json::Value;
use windlass_object::object;

use super::csv_objects::CsvObjects;

/// What there is of an operator that OLM has installed.
#[derive(Clone, Copy, Debug)]
pub struct OlmObservation<'a> {
    /// The ClusterServiceVersion.
    pub csv: &'a Value,
    /// The ClusterServiceVersions of its namespace, itself too.
    pub csvs: &'a [Value],
    /// The Subscriptions of its namespace.
    pub all_subscriptions: &'a [Value],
    /// The OperatorGroups of its namespace.
    pub operator_groups: &'a [Value],
    /// The objects of all kinds that [`CsvObjects::kinds`] names, or those among them that may belong to it.
    pub objects: &'a [Value],
}

// === impl OlmObservation ===

impl<'a> OlmObservation<'a> {
    /// The Subscriptions that installed it.
    pub fn subscriptions(&self) -> impl Iterator<Item = &'a Value> {
        let name = object::text(self.csv, "/metadata/name");
        let is_its = move |subscription: &&Value| {
            ["/status/installedCSV", "/status/currentCSV"]
                .iter()
                .any(|path| name.is_some() && object::text(subscription, path) == name)
        };
        self.all_subscriptions.iter().filter(is_its)
    }

    /// The objects that belong to it.
    pub fn belongings(&self) -> impl Iterator<Item = &'a Value> {
        let belongings = CsvObjects::from_csv(self.csv);
        self.objects.iter().filter(move |live| belongings.contains(live))
    }
}
