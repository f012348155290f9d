//! Which targets a change concerns, and which Secrets are watched for them.

use std::{collections::HashSet, sync::Arc};

use tokio::sync::broadcast::error::RecvError;
use windlass_cluster::{
    Change, ChangedObject, Kind, kinds,
    watch::{Selector, Watch},
    worker::Queue,
};
use windlass_object::{ObjectKey, object};

use super::requests::InjectionRequests;
use crate::{context::Context, injection::TARGET_KINDS, standby::StandbyRepairs};

/// What follows from a change.
#[derive(Debug, Default, PartialEq, Eq)]
struct Affected {
    targets: HashSet<ObjectKey>,
    /// Whether targets ask for other Secrets than before.
    asks_otherwise: bool,
}

/// Starts the watches that are always needed.
pub(super) fn watch_everything(context: &Context) {
    for kind in TARGET_KINDS.iter().cloned().chain([kinds::SERVING_CERTIFICATE]) {
        context.watches.want(Watch::all(kind));
    }
}

/// Puts every target into the queues that a change concerns, for ever, and watches exactly the Secrets that are asked for.
pub(super) async fn enqueue(
    context: Arc<Context>,
    queue: Arc<Queue<ObjectKey>>,
    standby: StandbyRepairs<ObjectKey>,
) {
    let mut changes = context.index.subscribe();
    let mut requests = InjectionRequests::of_all(&context.index);
    add_all(&context, &requests, &queue);
    loop {
        match changes.recv().await {
            Ok(change) => {
                let affected = affected(&mut requests, &change);
                if affected.asks_otherwise {
                    watch_secrets(&context, &requests);
                }
                for target in affected.targets {
                    standby.add(&target, &change);
                    queue.add(target);
                }
            }
            Err(RecvError::Lagged(_)) => {
                let before = std::mem::replace(&mut requests, InjectionRequests::of_all(&context.index));
                before.all_targets().cloned().for_each(|target| queue.add(target));
                add_all(&context, &requests, &queue);
            }
            Err(RecvError::Closed) => return,
        }
    }
}

fn add_all(context: &Context, requests: &InjectionRequests, queue: &Queue<ObjectKey>) {
    watch_secrets(context, requests);
    requests
        .all_targets()
        .cloned()
        .for_each(|target| queue.add(target));
}

fn affected(requests: &mut InjectionRequests, change: &Change) -> Affected {
    let key = &change.key;
    let kind = Kind::of(key);
    if kind == kinds::SECRET {
        return Affected::of(requests.targets(key));
    }
    if kind == kinds::SERVING_CERTIFICATE {
        // Its status is written at each step of a rotation.
        if !change.differs_in(&["/spec/secretName", "/metadata/uid"]) {
            return Affected::default();
        }
        let secrets = change.versions().filter_map(|certificate| {
            let name = object::text(&certificate, "/spec/secretName")?.to_owned();
            Some(kinds::SECRET.object(key.namespace.as_deref(), &name))
        });
        let secrets: HashSet<_> = secrets.collect();
        return Affected::of(secrets.iter().flat_map(|secret| requests.targets(secret)));
    }
    if !TARGET_KINDS.contains(&kind) {
        return Affected::default();
    }
    let asked = requests.asks(key);
    let asks_otherwise = requests.note(key, change.after.as_ref().map(ChangedObject::read).as_deref());
    let targets = (asked || requests.asks(key)).then(|| key.clone());
    Affected {
        targets: targets.into_iter().collect(),
        asks_otherwise,
    }
}

fn watch_secrets(context: &Context, requests: &InjectionRequests) {
    let wanted = requests.all_secrets().map(|secret| {
        Watch::all(kinds::SECRET)
            .within(secret.namespace.as_deref().unwrap_or_default())
            .selected(Selector::Name(secret.name.clone()))
    });
    context.watches.want_only(wanted.collect(), |watch| {
        watch.kind == kinds::SECRET && matches!(watch.selector, Selector::Name(_))
    });
}

// === impl Affected ===

impl Affected {
    fn of<'a>(targets: impl Iterator<Item = &'a ObjectKey>) -> Self {
        Self {
            targets: targets.cloned().collect(),
            asks_otherwise: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use windlass_object::names;

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
            key: ObjectKey::of(object.unwrap()).unwrap(),
            before: before.map(Into::into),
            after: after.map(Into::into),
        }
    }

    fn names_of(affected: &Affected) -> Vec<&str> {
        let mut names: Vec<_> = affected
            .targets
            .iter()
            .map(|target| target.name.as_str())
            .collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn a_change_concerns_its_own_targets_only() {
        let mut requests = InjectionRequests::default();
        let mut see = |change: &Change| affected(&mut requests, change);
        for (name, secret) in [("a", "one"), ("b", "one"), ("c", "two")] {
            let created = see(&change(None, Some(target(name, Some(&format!("n/{secret}"))))));
            assert_eq!(names_of(&created), [name]);
            assert!(created.asks_otherwise);
        }
        let written = see(&change(
            Some(target("a", Some("n/one"))),
            Some(target("a", Some("n/one"))),
        ));
        assert_eq!((names_of(&written), written.asks_otherwise), (vec!["a"], false));
        let secret =
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "n", "name": "one"}});
        assert_eq!(names_of(&see(&change(None, Some(secret)))), ["a", "b"]);
        let certificate = json!({
            "apiVersion": names::API_VERSION, "kind": "ServingCertificate",
            "metadata": {"namespace": "n", "name": "hook"}, "spec": {"secretName": "two"},
        });
        assert_eq!(names_of(&see(&change(Some(certificate), None))), ["c"]);
        assert_eq!(see(&change(None, Some(target("d", None)))), Affected::default());
        let gone = see(&change(Some(target("c", Some("n/two"))), None));
        assert_eq!((names_of(&gone), gone.asks_otherwise), (vec!["c"], true));
    }
}
