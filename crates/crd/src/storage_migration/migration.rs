//! Progress of rewriting the objects of a CRD, and the next step.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass_object::object;

use super::{
    converter::converter,
    history::{StorageVersionHistory, generation},
};
use crate::{reachable_version, storage_version, stored_versions};

/// Progress of rewriting the objects of one CustomResourceDefinition in a new storage version.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Migration {
    /// Name of the CustomResourceDefinition.
    pub crd: String,
    /// Version to store its objects in.
    pub version: String,
    /// Number of objects that are known to be stored in that version.
    pub rewritten: u64,
    /// Total number of objects, if the API server has reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// UID of the CustomResourceDefinition.
    pub uid: String,
    /// Latest generation of the CustomResourceDefinition up to which the storage version is known to be unchanged. The
    /// migration restarts where that is not known of a later one: the version may have changed and changed back.
    pub generation: i64,
    /// What converts the objects to the new version: `None`, or the address of a webhook. While the
    /// CustomResourceDefinition has a different converter, the migration is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub converter: Option<String>,
    /// When the change of the storage version was first observed. API servers observe it later, and store objects of
    /// earlier requests in the previous version.
    #[schemars(extend("type" = "string", "format" = "date-time"), with = "String")]
    pub since: MicroTime,
    /// Objects written after this resourceVersion are stored in the new version. Unset until every API server stores
    /// objects in that version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
    /// Continue token of the next page, from the API server; it may expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_page: Option<String>,
}

/// The next step for one CustomResourceDefinition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MigrationStep {
    /// Nothing: all objects are stored in the storage version.
    Nothing,
    /// Serve a version: the objects cannot be accessed.
    Serve,
    /// Restore this converter: another one would convert the objects differently.
    Convert(String),
    /// Record this migration, then wait.
    Begin(Migration),
    /// Wait this long: objects may still be stored in the previous version.
    Wait(SignedDuration),
    /// Record the current resourceVersion of the cluster.
    Mark,
    /// Rewrite the next page; after the last one, reduce `status.storedVersions`.
    Rewrite,
}

/// Returns the next step for the CRD `live` with the progress `known`: objects that may be stored in several
/// versions are rewritten. `settle` is how long objects may still be written in the previous version: until
/// all API servers observe the change and finish earlier requests.
///
/// `desired` is the required converter, as [`converter`] identifies it; `None` keeps the present one.
pub fn next_step(
    live: &Value,
    known: Option<&Migration>,
    desired: Option<&str>,
    now: Timestamp,
    settle: SignedDuration,
) -> MigrationStep {
    let Some(storage) = storage_version(live) else {
        return MigrationStep::Nothing;
    };
    if is_stored_in_one_version(live) {
        return MigrationStep::Nothing;
    }
    if reachable_version(live).is_none() {
        return MigrationStep::Serve;
    }
    let known = known.filter(|known| object::text(live, "/metadata/uid") == Some(&known.uid));
    let until_now = || known.and_then(|known| known.converter.as_deref());
    if let Some(desired) = desired.or_else(until_now)
        && desired != converter_of(live)
    {
        return MigrationStep::Convert(desired.to_owned());
    }
    let known = known.filter(|known| known.can_continue(live) && known.since.0 <= now);
    let Some(known) = known else {
        return MigrationStep::Begin(Migration::new(live, storage, now));
    };
    if known.resource_version.is_some() {
        return MigrationStep::Rewrite;
    }
    let left = settle - now.duration_since(known.since.0);
    if left.is_positive() {
        return MigrationStep::Wait(left);
    }
    MigrationStep::Mark
}

/// Reports whether all objects of the CRD `live` are stored in its storage version.
pub fn is_stored_in_one_version(live: &Value) -> bool {
    let storage = storage_version(live);
    stored_versions(live)
        .into_iter()
        .all(|stored| Some(stored) == storage)
}

/// Reports whether `live` has the storage version of `desired` and all objects are stored in it.
pub fn is_stored_as_desired(desired: &Value, live: &Value) -> bool {
    storage_version(desired) == storage_version(live) && is_stored_in_one_version(live)
}

/// Returns the status patch that reduces `storedVersions` to the storage version. It applies only to this
/// resourceVersion.
pub fn stored_versions_patch(live: &Value) -> Value {
    json!({
        "metadata": {"resourceVersion": live["metadata"]["resourceVersion"]},
        "status": {"storedVersions": [storage_version(live)]},
    })
}

impl Migration {
    fn new(live: &Value, version: &str, now: Timestamp) -> Self {
        let text = |pointer| object::text(live, pointer).unwrap_or_default().to_owned();
        Self {
            crd: text("/metadata/name"),
            version: version.to_owned(),
            rewritten: 0,
            total: None,
            uid: text("/metadata/uid"),
            generation: generation(live),
            converter: Some(converter_of(live)),
            since: MicroTime(now),
            resource_version: None,
            next_page: None,
        }
    }

    /// Reports whether the migration can continue: `live` is its CRD, and the storage version has not changed
    /// since.
    pub fn can_continue(&self, live: &Value) -> bool {
        self.has_storage_version_of(live) && generation(live) == self.generation
    }

    /// Reports whether the migration could continue if the generations before `live` were known.
    pub fn may_continue(&self, live: &Value) -> bool {
        self.has_storage_version_of(live) && generation(live) > self.generation
    }

    fn has_storage_version_of(&self, live: &Value) -> bool {
        object::text(live, "/metadata/uid") == Some(&self.uid) && storage_version(live) == Some(&self.version)
    }

    /// Advances to later generations, as far as the storage version is known to have stayed the same.
    pub fn record_histories<'a>(&mut self, seen: impl IntoIterator<Item = &'a StorageVersionHistory>) {
        let mut history = StorageVersionHistory {
            uid: self.uid.clone(),
            version: self.version.clone(),
            first: self.generation,
            last: self.generation,
        };
        for seen in seen {
            if history.is_continued_by(seen) {
                history.record(seen.clone());
            }
        }
        self.generation = history.last;
    }

    /// Records the present converter.
    pub fn record_converter(&mut self, live: &Value) {
        self.converter = Some(converter_of(live));
    }

    /// Reports whether an observation of the CRD forbids further writes, which would be stored in another
    /// version or converted differently. Outdated observations are ignored.
    pub fn is_stopped_by(&self, seen: &Value) -> bool {
        let is_later = generation(seen) > self.generation;
        let is_same = self.has_storage_version_of(seen) && self.converter == Some(converter_of(seen));
        is_later && !is_same
    }

    /// Records that objects written after `resource_version` are in the new version, and the number of
    /// objects, if known.
    pub fn record_mark(&mut self, resource_version: &str, total: Option<u64>) {
        self.resource_version = Some(resource_version.to_owned());
        self.total = total;
    }

    /// Reports whether an object with this resourceVersion may be stored in an old version.
    ///
    /// Resource versions are compared as numbers, as the API allows ("Comparing resource versions",
    /// KEP-5504). If one is not a number, the object is rewritten, which is harmless.
    pub fn must_rewrite(&self, resource_version: &str) -> bool {
        let number = |text: &str| text.parse::<u64>().ok();
        let mark = self.resource_version.as_deref().and_then(number);
        match (mark, number(resource_version)) {
            (Some(mark), Some(written)) => written <= mark,
            _ => true,
        }
    }

    /// Records that a page of `objects` is done, after which `remaining` objects follow from `next_page` on.
    pub fn finish_page(&mut self, objects: u64, remaining: Option<u64>, next_page: Option<String>) {
        self.rewritten += objects;
        let is_last = next_page.is_none();
        let known = remaining.or(is_last.then_some(0));
        self.total = known.map(|remaining| self.rewritten + remaining).or(self.total);
        self.next_page = next_page;
    }

    /// Records that the API server expired the continue token: the next page is `next_page`, or the first
    /// one.
    pub fn set_next_page(&mut self, next_page: Option<String>) {
        if next_page.is_none() {
            self.rewritten = 0;
        }
        self.next_page = next_page;
    }
}

impl std::fmt::Display for Migration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            crd,
            version,
            rewritten,
            ..
        } = self;
        match self.total {
            Some(total) => write!(
                f,
                "{rewritten} of {total} objects of {crd} are stored as {version}"
            ),
            None => write!(f, "{rewritten} objects of {crd} are stored as {version}"),
        }
    }
}

pub(super) fn converter_of(crd: &Value) -> String {
    converter(crd.pointer("/spec/conversion"))
}
