//! How far the objects of a CRD are rewritten, and what is next.

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

/// What to do next about one CustomResourceDefinition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MigrationStep {
    /// Nothing: all its objects are stored in its storage version.
    Nothing,
    /// Serve one of its versions: its objects cannot be reached.
    Serve,
    /// Let this one convert again: another would make something else of its objects.
    Convert(String),
    /// Note this, then wait.
    Begin(Migration),
    /// Wait so long: an object may still be stored in the version before.
    Wait(SignedDuration),
    /// Note the resourceVersion at which the cluster is now.
    Mark,
    /// Rewrite the next page; after the last one, reduce `status.storedVersions`.
    Rewrite,
}

/// What to do next about the CRD `live`, of which `known` is done. `settle` is how long an object may still be
/// written in the version before: until an API server hears of the change, and has answered the requests of before.
///
/// `desired` is who has to convert its objects, as [`converter`] says it. `None`: who did so until now.
pub fn next(
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
    let known = known.filter(|known| known.is_about(live) && known.since.0 <= now);
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

/// Whether all objects of the CRD `live` are stored in its storage version.
pub fn is_stored_in_one_version(live: &Value) -> bool {
    let storage = storage_version(live);
    stored_versions(live)
        .into_iter()
        .all(|stored| Some(stored) == storage)
}

/// Whether `live` stores as `desired` says, and all its objects are stored so.
pub fn is_as_desired(desired: &Value, live: &Value) -> bool {
    storage_version(desired) == storage_version(live) && is_stored_in_one_version(live)
}

/// What makes `live` say that its objects are stored in its storage version only; it fits no later `live`.
pub fn reduction(live: &Value) -> Value {
    json!({
        "metadata": {"resourceVersion": live["metadata"]["resourceVersion"]},
        "status": {"storedVersions": [storage_version(live)]},
    })
}

// === impl Migration ===

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

    /// Whether it goes on: `live` is the CRD that it was begun for, with the storage version that it has had ever
    /// since.
    pub fn is_about(&self, live: &Value) -> bool {
        self.is_of(live) && generation(live) == self.generation
    }

    /// Whether it may go on, if only it were known what came before `live`.
    pub fn is_behind(&self, live: &Value) -> bool {
        self.is_of(live) && generation(live) > self.generation
    }

    fn is_of(&self, live: &Value) -> bool {
        object::text(live, "/metadata/uid") == Some(&self.uid) && storage_version(live) == Some(&self.version)
    }

    /// Takes note of later generations, as far as its storage version is known to have stayed the same up to them.
    pub fn follow<'a>(&mut self, seen: impl IntoIterator<Item = &'a StorageVersionHistory>) {
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

    /// Takes note of who converts its objects from now on.
    pub fn go_through(&mut self, live: &Value) {
        self.converter = Some(converter_of(live));
    }

    /// Whether a look at the CRD says that no more objects must be written: they would be stored in another version,
    /// or become something else. What is older than what is known already says nothing.
    pub fn is_stopped_by(&self, seen: &Value) -> bool {
        let is_later = generation(seen) > self.generation;
        let is_same = self.is_of(seen) && self.converter == Some(converter_of(seen));
        is_later && !is_same
    }

    /// Notes that what is written after `resource_version` is written in the new version, and how many objects there are
    /// at that moment, where the API server says it.
    pub fn mark(&mut self, resource_version: &str, total: Option<u64>) {
        self.resource_version = Some(resource_version.to_owned());
        self.total = total;
    }

    /// Whether an object with this resourceVersion may be stored in an old version.
    ///
    /// Numbers are compared, as the documentation of the API allows ("Comparing resource versions", KEP-5504); where one
    /// is no number, the object is rewritten, which changes nothing that is stored in the new version.
    pub fn must_rewrite(&self, resource_version: &str) -> bool {
        let number = |text: &str| text.parse::<u64>().ok();
        let mark = self.resource_version.as_deref().and_then(number);
        match (mark, number(resource_version)) {
            (Some(mark), Some(written)) => written <= mark,
            _ => true,
        }
    }

    /// Notes that a page of `objects` is done; after it come `remaining` more, from `next_page` on.
    pub fn turn_page(&mut self, objects: u64, remaining: Option<u64>, next_page: Option<String>) {
        self.rewritten += objects;
        let is_last = next_page.is_none();
        let known = remaining.or(is_last.then_some(0));
        self.total = known.map(|remaining| self.rewritten + remaining).or(self.total);
        self.next_page = next_page;
    }

    /// Notes that the API server has forgotten where the next page begins: it is at `next_page`, or at the start.
    pub fn find_page(&mut self, next_page: Option<String>) {
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
