//! Which targets and sources a change affects, and which sources are watched.

use std::{collections::BTreeSet, sync::Arc};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::broadcast::error::RecvError;
use windlass_cluster::{
    Change, ChangedObject, Index, Kind, kinds,
    watch::{Selector, Watch},
    worker::Queue,
};
use windlass_object::{ObjectKey, names, object};
use windlass_trust::{
    injection::{CaRequests, has_injected_bundle},
    objects::SourceRecord,
};

use super::{
    observed_source::{named_secret, source_watches},
    requests::InjectionRequests,
};
use crate::{ca_injectors, context::Context, injection, standby::StandbyRepairs};

/// What a change affects.
#[derive(Debug, Default, PartialEq, Eq)]
struct Affected {
    target: Option<ObjectKey>,
    sources: BTreeSet<ObjectKey>,
    /// Sources that a target newly requests or no longer requests.
    changed_requests: BTreeSet<ObjectKey>,
}

/// Queues of the controllers.
pub(super) struct Queues {
    pub(super) targets: Arc<Queue<ObjectKey>>,
    pub(super) sources: Arc<Queue<ObjectKey>>,
    /// Targets, for a standby process.
    pub(super) standby: StandbyRepairs<ObjectKey>,
}

/// Starts the watches that are always required.
pub(super) fn watch_everything(context: &Context) {
    ca_injectors::start_watches(context);
    let whole = [kinds::SERVING_CERTIFICATE, kinds::SERVICE, kinds::ENDPOINT_SLICE];
    for watch in whole
        .map(Watch::all)
        .into_iter()
        .chain(injection::watches(&context.cluster))
    {
        context.watches.start(watch);
    }
    context.watches.start(record_watch(context));
}

/// Forever adds the targets and sources that a change affects to the queues, and watches exactly the
/// requested sources.
pub(super) async fn enqueue(context: Arc<Context>, queues: Queues, requests: Arc<Mutex<InjectionRequests>>) {
    let mut changes = context.index.subscribe();
    enqueue_all(&context, &requests, &queues);
    let mut kinds = context.index.target_kinds_changes();
    let mut lists = context.index.progress();
    loop {
        let change = tokio::select! {
            change = changes.recv() => change,
            // The index lives as long as this function, so the sender cannot have been dropped.
            _ = lists.changed() => {
                // A completed list shows that an object is missing, which no change reports.
                let requests = requests.lock();
                let missing = requests.all_sources().filter(|source| is_missing(source, &context.index));
                missing.cloned().for_each(|source| queues.sources.add(source));
                continue;
            }
            _ = kinds.changed() => {
                enqueue_all(&context, &requests, &queues);
                continue;
            }
        };
        match change {
            Ok(change) => {
                let affected = affected(&mut requests.lock(), &change, &context.index);
                let names_another_secret = Kind::from_key(&change.key) == kinds::CERTIFICATE
                    && change.differs_in(&["/spec/secretName"]);
                if !affected.changed_requests.is_empty() || names_another_secret {
                    watch_sources(&context, &requests.lock());
                }
                for source in affected.sources.into_iter().chain(affected.changed_requests) {
                    queues.sources.add(source);
                }
                if let Some(target) = affected.target {
                    queues.standby.add(&target, &change);
                    queues.targets.add(target);
                }
            }
            Err(RecvError::Lagged(_)) => {
                let before: Vec<_> = requests.lock().all_targets().cloned().collect();
                enqueue_all(&context, &requests, &queues);
                before.into_iter().for_each(|target| queues.targets.add(target));
            }
            Err(RecvError::Closed) => return,
        }
    }
}

fn enqueue_all(context: &Context, requests: &Mutex<InjectionRequests>, queues: &Queues) {
    let index = &context.index;
    let all = InjectionRequests::from_index(index, &context.namespace, |key, target| {
        if needs_attention(target, index) {
            queues.targets.add(key.clone());
        }
    });
    watch_sources(context, &all);
    all.all_targets()
        .cloned()
        .for_each(|target| queues.targets.add(target));
    // Records of sources that no target requests must be deleted.
    let noted = index.objects_within(&kinds::SECRET, Some(&context.namespace));
    let noted = noted.iter().filter_map(|secret| SourceRecord::source(secret));
    all.all_sources()
        .cloned()
        .chain(noted)
        .for_each(|source| queues.sources.add(source));
    *requests.lock() = all;
}

/// Reports whether a target that requests no source needs a withdrawal or a warning.
fn needs_attention(target: &Value, index: &Index) -> bool {
    let kinds = index.target_kinds();
    has_injected_bundle(target, &kinds) || CaRequests::from_object(target, &kinds).is_err()
}

fn affected(requests: &mut InjectionRequests, change: &Change, index: &Index) -> Affected {
    let key = &change.key;
    let kind = Kind::from_key(key);
    if kind == kinds::SECRET {
        let noted = change.versions().find_map(|record| SourceRecord::source(&record));
        let sources = noted
            .into_iter()
            .chain(requests.is_requested(key).then(|| key.clone()))
            .chain(certificates_naming(index, key));
        return Affected::from_sources(sources.collect());
    }
    if kind == kinds::SERVING_CERTIFICATE {
        // The status of a ServingCertificate is written at each step of a rotation.
        if !change.differs_in(&["/spec/secretName", "/metadata/uid"]) {
            return Affected::default();
        }
        let secrets = change.versions().filter_map(|certificate| {
            let name = object::text(&certificate, "/spec/secretName")?.to_owned();
            Some(kinds::SECRET.object(key.namespace.as_deref(), &name))
        });
        return Affected::from_sources(secrets.filter(|secret| requests.is_requested(secret)).collect());
    }
    let mut affected = Affected::default();
    if requests.is_requested(key) {
        affected.sources.insert(key.clone());
    }
    let was_requesting = requests.has_requests(key);
    let is_target = index.is_target(&kind);
    if !is_target && !was_requesting {
        return affected;
    }
    // A target whose kind is no longer watched requests nothing.
    let target = change
        .after
        .as_ref()
        .filter(|_| is_target)
        .map(ChangedObject::read);
    let changed_requests = requests.update(key, target.as_deref(), &index.target_kinds());
    let is_concerned = was_requesting
        || requests.has_requests(key)
        || target.is_some_and(|target| needs_attention(&target, index));
    Affected {
        target: is_concerned.then(|| key.clone()),
        changed_requests,
        ..affected
    }
}

fn watch_sources(context: &Context, requests: &InjectionRequests) {
    let wanted = requests
        .all_sources()
        .flat_map(|source| source_watches(source, &context.index));
    context.watches.set_wanted("ca-source", wanted.collect());
}

/// Reports whether an object of a source is missing or not listed yet.
fn is_missing(source: &ObjectKey, index: &Index) -> bool {
    let secret = named_secret(source, || index.find(source));
    let mut objects = std::iter::once(source).chain(&secret);
    objects.any(|object| index.find_indexed(object).is_none())
}

/// Returns the requested Certificates that name a Secret.
fn certificates_naming(index: &Index, secret: &ObjectKey) -> impl Iterator<Item = ObjectKey> + use<> {
    let mut all = index.indexed(&kinds::CERTIFICATE);
    all.retain(|key, object| named_secret(key, || Some(object.read())).as_ref() == Some(secret));
    all.into_keys()
}

/// Returns the watch for records of sources.
fn record_watch(context: &Context) -> Watch {
    Watch::all(kinds::SECRET)
        .within(&context.namespace)
        .selected(Selector::Label(names::CA_SOURCE.to_owned()))
}

impl Affected {
    fn from_sources(sources: BTreeSet<ObjectKey>) -> Self {
        Self {
            sources,
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn target(name: &str, secret: Option<&str>) -> Value {
        json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": name, "annotations": {names::INJECT_CA_FROM_SECRET: secret}},
        })
    }

    fn change(before: Option<Value>, after: Option<Value>) -> Change {
        let object = after.as_ref().or(before.as_ref());
        Change {
            key: ObjectKey::from_object(object.unwrap()).unwrap(),
            before: before.map(Into::into),
            after: after.map(Into::into),
        }
    }

    fn names_of<'a>(keys: impl IntoIterator<Item = &'a ObjectKey>) -> Vec<&'a str> {
        keys.into_iter().map(|key| key.name.as_str()).collect()
    }

    #[test]
    fn a_change_affects_only_its_own_targets() {
        let mut requests = InjectionRequests::new("windlass-system");
        let index = Index::new();
        let mut see = |change: &Change| affected(&mut requests, change, &index);
        for (name, secret) in [("a", "one"), ("b", "one"), ("c", "two")] {
            let created = see(&change(None, Some(target(name, Some(&format!("n/{secret}"))))));
            assert_eq!(names_of(&created.target), [name]);
            assert_eq!(names_of(&created.changed_requests), [secret]);
        }
        let written = see(&change(
            Some(target("a", Some("n/one"))),
            Some(target("a", Some("n/one"))),
        ));
        assert_eq!(names_of(&written.target), ["a"]);
        assert_eq!(names_of(&written.changed_requests), [""; 0]);
        let secret = |name: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "n", "name": name}});
        assert_eq!(
            names_of(&see(&change(None, Some(secret("one")))).sources),
            ["one"]
        );
        assert_eq!(see(&change(None, Some(secret("three")))), Affected::default());
        let mut record = secret("ca-source-1");
        record["metadata"]["annotations"] = json!({names::CA_SOURCE: "Secret/n/gone"});
        assert_eq!(names_of(&see(&change(None, Some(record))).sources), ["gone"]);
        let certificate = json!({
            "apiVersion": names::API_VERSION, "kind": "ServingCertificate",
            "metadata": {"namespace": "n", "name": "hook"}, "spec": {"secretName": "two"},
        });
        assert_eq!(names_of(&see(&change(Some(certificate), None)).sources), ["two"]);
        assert_eq!(see(&change(None, Some(target("d", None)))), Affected::default());
        let gone = see(&change(Some(target("c", Some("n/two"))), None));
        assert_eq!(
            (names_of(&gone.target), names_of(&gone.changed_requests)),
            (vec!["c"], vec!["two"])
        );
        let invalid = see(&change(None, Some(target("e", Some("two")))));
        assert_eq!(
            names_of(&invalid.target),
            ["e"],
            "an invalid target is queued to report its problem"
        );
    }
}
