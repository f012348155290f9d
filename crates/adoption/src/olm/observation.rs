//! Observed state for taking an operator over from OLM.

use serde_json::Value;
use windlass_object::object;

use super::csv_objects::CsvObjects;

/// The objects of an operator that OLM has installed.
#[derive(Clone, Copy, Debug)]
pub struct OlmObservation<'a> {
    /// The ClusterServiceVersion.
    pub csv: &'a Value,
    /// The ClusterServiceVersions of its namespace, including itself.
    pub csvs: &'a [Value],
    /// The Subscriptions of its namespace.
    pub all_subscriptions: &'a [Value],
    /// The OperatorGroups of its namespace.
    pub operator_groups: &'a [Value],
    /// The objects of all kinds in [`CsvObjects::kinds`], or those of them that may belong to the
    /// ClusterServiceVersion.
    pub objects: &'a [Value],
}

impl<'a> OlmObservation<'a> {
    /// Returns the Subscriptions that installed the ClusterServiceVersion.
    pub fn subscriptions(&self) -> impl Iterator<Item = &'a Value> {
        let name = object::text(self.csv, "/metadata/name");
        let is_its = move |subscription: &&Value| {
            ["/status/installedCSV", "/status/currentCSV"]
                .iter()
                .any(|path| name.is_some() && object::text(subscription, path) == name)
        };
        self.all_subscriptions.iter().filter(is_its)
    }

    /// Returns the objects of the ClusterServiceVersion.
    pub fn csv_objects(&self) -> impl Iterator<Item = &'a Value> {
        let csv_objects = CsvObjects::from_csv(self.csv);
        self.objects.iter().filter(move |live| csv_objects.contains(live))
    }
}
