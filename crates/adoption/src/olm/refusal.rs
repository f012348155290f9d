//! Reasons against taking an operator over from OLM.

use serde_json::Value;
use thiserror::Error;
use windlass_object::object;

use super::observation::OlmObservation;

/// Why an operator is not taken over, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OlmRefusal {
    /// Another client has deleted the ClusterServiceVersion.
    #[error(
        "another client has deleted it: wait until it is gone, then install the bundle without --adopt-from"
    )]
    Deleted,
    /// OLM copied the ClusterServiceVersion into this watched namespace.
    #[error("it is a copy of the one in namespace {0}: name that namespace with --namespace")]
    Copied(String),
    /// OLM has not completed the install.
    #[error("its phase is {phase:?}, not Succeeded ({message}): wait until OLM has installed it")]
    NotInstalled {
        /// `status.phase`.
        phase: String,
        /// `status.message`.
        message: String,
    },
    /// OLM is upgrading the operator.
    #[error(
        "OLM is upgrading this operator, {0} is another version of it: wait until OLM has finished, then adopt the new version"
    )]
    Upgraded(String),
    /// The namespace has no OperatorGroup, or several.
    #[error(
        "its namespace has {0} OperatorGroups instead of one, so OLM does not manage it: correct that first"
    )]
    OperatorGroups(usize),
    /// The operator serves an aggregated API, which Windlass does not install.
    #[error("it serves the API {0} by an APIService, which Windlass does not install")]
    ApiService(String),
}

/// Returns all reasons why the operator cannot be adopted.
pub(super) fn refusals(observation: &OlmObservation<'_>) -> Vec<OlmRefusal> {
    let csv = observation.csv;
    let text = |path| object::text(csv, path).unwrap_or_default();
    if let Some(namespace) = object::label(csv, "olm.copiedFrom") {
        return vec![OlmRefusal::Copied(namespace.to_owned())];
    }
    let mut refusals = Vec::new();
    if text("/status/phase") != "Succeeded" {
        refusals.push(OlmRefusal::NotInstalled {
            phase: text("/status/phase").to_owned(),
            message: text("/status/message").to_owned(),
        });
    }
    let (name, replaced) = (text("/metadata/name"), object::text(csv, "/spec/replaces"));
    let is_neighbour = |other: &&Value| {
        object::text(other, "/spec/replaces") == Some(name)
            || replaced.is_some_and(|replaced| object::text(other, "/metadata/name") == Some(replaced))
    };
    let neighbours = observation.csvs.iter().filter(is_neighbour);
    let neighbours = neighbours.filter_map(|other| object::text(other, "/metadata/name"));
    refusals.extend(neighbours.map(|other| OlmRefusal::Upgraded(other.to_owned())));
    let groups = observation.operator_groups.len();
    if groups != 1 {
        refusals.push(OlmRefusal::OperatorGroups(groups));
    }
    let apis = object::items(csv, "/spec/apiservicedefinitions/owned").iter();
    let apis = apis.filter_map(|api| {
        let (version, group) = (object::text(api, "/version")?, object::text(api, "/group")?);
        Some(OlmRefusal::ApiService(format!("{version}.{group}")))
    });
    refusals.extend(apis);
    refusals
}
