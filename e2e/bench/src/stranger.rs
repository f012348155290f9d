//! Somebody who takes the trust bundle from targets, and sees by a watch when it is back.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::Context;
use futures::StreamExt;
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, GroupVersionKind},
    runtime::{WatchStreamExt, watcher},
};
use serde_json::{Value, json};
use tokio::{sync::watch, task::JoinSet};
use windlass_scenarios::{
    request::{text, version_number},
    steps::{PATIENCE, list, succeed},
};

use super::objects::TARGET_KINDS;

/// The stranger's field manager.
pub(super) const MANAGER: &str = "a-stranger";

/// How long it may take until all targets carry something: a rotation waits for much before it writes them.
const ALL: Duration = Duration::from_secs(900);

/// Writes trust bundles into all targets that call one Service.
pub(super) struct Stranger {
    client: Client,
    targets: Vec<StrangersTarget>,
    _watches: JoinSet<()>,
}

/// An object that calls the Service.
struct StrangersTarget {
    path: String,
    /// Of each CA bundle that the calls are verified with.
    pointers: Vec<String>,
    carried: watch::Receiver<Carried>,
}

/// What a target carries, as a watch has shown it.
#[derive(Clone, Debug)]
struct Carried {
    version: u64,
    bundles: Vec<String>,
    /// When the watch has first shown these bundles.
    since: Instant,
}

/// A write that was carried out.
#[derive(Clone, Copy, Debug)]
pub(super) struct ForeignWrite {
    /// When it was sent.
    pub(super) sent: Instant,
    /// When it was answered.
    pub(super) answered: Instant,
    version: u64,
}

impl Stranger {
    /// Finds the targets that call a Service, and watches them.
    pub(super) async fn watch(client: &Client, namespace: &str, service: &str) -> anyhow::Result<Self> {
        let (mut targets, mut watches) = (Vec::new(), JoinSet::new());
        for (group, kind, collection) in TARGET_KINDS {
            let mut senders = BTreeMap::new();
            for object in list(client, collection).await? {
                let pointers = pointers(&object, namespace, service);
                if pointers.is_empty() {
                    continue;
                }
                let carried = Carried {
                    version: version_number(text(&object, "/metadata/resourceVersion")),
                    bundles: bundles(&object, &pointers),
                    since: Instant::now(),
                };
                let name = text(&object, "/metadata/name").to_owned();
                let path = format!("{collection}/{name}");
                let (sender, carried) = watch::channel(carried);
                senders.insert(name, (sender, pointers.clone()));
                targets.push(StrangersTarget {
                    path,
                    pointers,
                    carried,
                });
            }
            if !senders.is_empty() {
                let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
                watches.spawn(follow(Api::all_with(client.clone(), &resource), senders));
            }
        }
        anyhow::ensure!(!targets.is_empty(), "nothing calls {namespace}/{service}");
        Ok(Self {
            client: client.clone(),
            targets,
            _watches: watches,
        })
    }

    /// How many targets there are: they are numbered from 0.
    pub(super) fn targets(&self) -> usize {
        self.targets.len()
    }

    /// Puts `bundle`, in base64, into a target.
    pub(super) async fn write(&self, target: usize, bundle: &str) -> anyhow::Result<ForeignWrite> {
        let pointers = &self.target(target)?.pointers;
        let operations = pointers
            .iter()
            .map(|pointer| json!({"op": "add", "path": pointer, "value": bundle}));
        let sent = Instant::now();
        let object = self.patch(target, &Value::Array(operations.collect())).await?;
        Ok(ForeignWrite {
            sent,
            answered: Instant::now(),
            version: version_number(text(&object, "/metadata/resourceVersion")),
        })
    }

    async fn patch(&self, target: usize, patch: &Value) -> anyhow::Result<Value> {
        let path = format!("{}?fieldManager={MANAGER}", self.target(target)?.path);
        Ok(succeed(&self.client, "PATCH", &path, Some(patch)).await?.body)
    }

    /// Waits until the watch has shown a state of a target that is not older than `write`, and carries nothing but bundles
    /// that `is_right` takes. When it has shown that.
    pub(super) async fn carries(
        &self,
        target: usize,
        write: &ForeignWrite,
        is_right: impl Fn(&str) -> bool,
    ) -> anyhow::Result<Instant> {
        self.shows(target, PATIENCE, |carried| {
            carried.version >= write.version && carried.bundles.iter().all(|bundle| is_right(bundle))
        })
        .await
    }

    /// Waits until all targets carry nothing but bundles that `is_right` takes. When the first was shown to, and the last.
    pub(super) async fn all_carry(
        &self,
        is_right: impl Fn(&str) -> bool,
    ) -> anyhow::Result<(Instant, Instant)> {
        let mut shown = Vec::new();
        for target in 0..self.targets() {
            let carries = |carried: &Carried| carried.bundles.iter().all(|bundle| is_right(bundle));
            shown.push(self.shows(target, ALL, carries).await?);
        }
        let first_and_last = shown.iter().min().copied().zip(shown.iter().max().copied());
        first_and_last.context("no target")
    }

    /// What a target carries in its first place.
    pub(super) fn carried(&self, target: usize) -> anyhow::Result<String> {
        let carried = self.target(target)?.carried.borrow();
        carried
            .bundles
            .first()
            .cloned()
            .context("it has no place for a bundle")
    }

    async fn shows(
        &self,
        target: usize,
        patience: Duration,
        holds: impl Fn(&Carried) -> bool,
    ) -> anyhow::Result<Instant> {
        let target = self.target(target)?;
        let mut carried = target.carried.clone();
        let carried = tokio::time::timeout(patience, carried.wait_for(holds)).await;
        let carried = carried.with_context(|| {
            format!(
                "{} does not carry its trust bundle after {patience:?}",
                target.path
            )
        })?;
        Ok(carried.context("the watch has ended")?.since)
    }

    fn target(&self, target: usize) -> anyhow::Result<&StrangersTarget> {
        self.targets.get(target).context("no such target")
    }
}

impl ForeignWrite {
    /// How long after the answer `moment` was; nothing, where a watch was faster.
    pub(super) fn until(&self, moment: Instant) -> Duration {
        moment.saturating_duration_since(self.answered)
    }
}

impl Carried {
    /// Takes over what the watch shows now.
    fn note(&mut self, version: u64, bundles: Vec<String>) {
        if version < self.version {
            return;
        }
        self.version = version;
        if bundles != self.bundles {
            self.bundles = bundles;
            self.since = Instant::now();
        }
    }
}

/// The places in a target where calls to a Service are verified.
fn pointers(target: &Value, namespace: &str, service: &str) -> Vec<String> {
    let webhooks = 0..target["webhooks"].as_array().map_or(0, Vec::len);
    let configs = webhooks.map(|index| format!("/webhooks/{index}/clientConfig"));
    let conversion = "/spec/conversion/webhook/clientConfig".to_owned();
    let calls = |config: &String| {
        let called = target.pointer(&format!("{config}/service"));
        called.is_some_and(|called| called["name"] == service && called["namespace"] == namespace)
    };
    let configs = configs.chain([conversion]).filter(calls);
    configs.map(|config| format!("{config}/caBundle")).collect()
}

fn bundles(target: &Value, pointers: &[String]) -> Vec<String> {
    let bundles = pointers.iter().map(|pointer| text(target, pointer).to_owned());
    bundles.collect()
}

/// Tells what a watch shows of targets, by their names, for ever.
async fn follow(api: Api<DynamicObject>, targets: BTreeMap<String, (watch::Sender<Carried>, Vec<String>)>) {
    let objects = watcher(api, watcher::Config::default())
        .default_backoff()
        .touched_objects();
    let mut objects = std::pin::pin!(objects);
    while let Some(object) = objects.next().await {
        let object = match object {
            Ok(object) => object,
            Err(error) => {
                tracing::warn!(%error, "The watch of targets was interrupted");
                continue;
            }
        };
        let Some((sender, pointers)) = targets.get(&object.name_any()) else {
            continue;
        };
        let version = version_number(&object.resource_version().unwrap_or_default());
        sender.send_modify(|carried| carried.note(version, bundles(&object.data, pointers)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_that_calls_the_service_is_written() {
        let config = |name: &str| json!({"clientConfig": {"service": {"namespace": "n", "name": name}}});
        let hooks = json!({"webhooks": [config("a"), config("b"), config("a"), {"clientConfig": {"url": "https://a"}}]});
        assert_eq!(
            pointers(&hooks, "n", "a"),
            [
                "/webhooks/0/clientConfig/caBundle",
                "/webhooks/2/clientConfig/caBundle"
            ]
        );
        assert_eq!(pointers(&hooks, "m", "a"), [""; 0]);
        let definition = json!({"spec": {"conversion": {"webhook": config("a")}}});
        assert_eq!(
            pointers(&definition, "n", "a"),
            ["/spec/conversion/webhook/clientConfig/caBundle"]
        );
    }

    #[test]
    fn bundles_are_there_since_they_were_shown_first() {
        let start = Instant::now();
        let mut carried = Carried {
            version: 3,
            bundles: vec!["right".to_owned()],
            since: start,
        };
        carried.note(4, vec!["right".to_owned()]);
        assert_eq!((carried.version, carried.since), (4, start));
        carried.note(2, vec![String::new()]);
        assert_eq!((carried.version, carried.since), (4, start));
        carried.note(5, vec![String::new()]);
        assert!(carried.version == 5 && carried.since > start);
    }
}
