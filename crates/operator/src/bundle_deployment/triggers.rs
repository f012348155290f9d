//! Which watches there are, and which BundleDeployments a change concerns.

use std::{
    collections::HashSet,
    sync::{Arc, LazyLock},
    time::Duration,
};

use serde_json::Value;
use tokio::sync::broadcast::error::RecvError;
use windlass_bundle::BundledKind;
use windlass_cluster::{
    Change, ChangedObject, Index, Kind, kinds,
    watch::{Selector, Watch},
    worker::Queue,
};
use windlass_crd::claims::{Api, Claimant};
use windlass_object::{InCluster, names, object};
use windlass_trust::injection::differs_in_trust_only;

use super::{
    memory::{Reported, StorageVersionHistories},
    objects::CALLER_KINDS,
    operator_condition,
    report::{NOTICES, WARNINGS},
};
use crate::{
    context::Context, injection::RECONCILE_DELAY, install::status::Milestone,
    interpretation::INTERPRETATION_KINDS, policies::POLICY_KINDS,
};

/// The kinds that an install may contain, in which a removal searches: those that bundles may contain, those
/// rendered from the ClusterServiceVersion, and canaries.
pub(super) static OWNED_KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| {
    let installed = BundledKind::installable().map(|kind| Kind::new(kind.api_version, kind.kind));
    let rendered = [kinds::DEPLOYMENT, kinds::POD, kinds::SERVING_CERTIFICATE];
    installed.chain(rendered).chain(OTHER_VERSIONS).collect()
});

/// Other versions in which bundles bring kinds along, and in which alone some clusters serve them. Where both are served
/// each shows all objects.
const OTHER_VERSIONS: [Kind; 3] = [
    Kind::new("console.openshift.io/v1alpha1", "ConsolePlugin"),
    Kind::new("autoscaling.k8s.io/v1beta2", "VerticalPodAutoscaler"),
    Kind::new("runtime.cluster.x-k8s.io/v1alpha1", "ExtensionConfig"),
];

/// Kinds of which every object is watched: they are few in a cluster, or foreign ones matter too.
static WHOLE_KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| {
    let kinds = [
        kinds::BUNDLE_DEPLOYMENT,
        kinds::SERVING_CERTIFICATE,
        kinds::CUSTOM_RESOURCE_DEFINITION,
        kinds::ENDPOINT_SLICE,
        kinds::SERVICE,
    ];
    kinds.into_iter().chain(CALLER_KINDS.iter().cloned()).collect()
});

/// How long it takes until discovery says what a new CustomResourceDefinition serves.
const DISCOVERED: Duration = Duration::from_secs(2);
/// The labels on ConfigMaps in the operator's namespace that say of which BundleDeployment they record something.
const RECORDS: [&str; 2] = [names::BUNDLE_SOURCE, names::REVISION_OF];

/// Starts the watches that are always needed.
pub(super) fn watch_everything(context: &Context) {
    for kind in WHOLE_KINDS.iter() {
        context.watches.start(Watch::all(kind.clone()));
    }
    for kind in OWNED_KINDS.iter().filter(|kind| !WHOLE_KINDS.contains(kind)) {
        context.watches.start(owned(kind.clone()));
    }
    for kind in INTERPRETATION_KINDS {
        context.watches.start(Watch::all(kind));
    }
    for kind in POLICY_KINDS {
        context.watches.start(Watch::all(kind));
    }
    for label in RECORDS {
        let records = Watch::all(kinds::CONFIG_MAP).within(&context.namespace);
        context
            .watches
            .start(records.selected(Selector::Label(label.to_owned())));
    }
    let secrets = Selector::Label(names::SERVING_CERTIFICATE.to_owned());
    context.watches.start(Watch::all(kinds::SECRET).selected(secrets));
}

/// Puts every BundleDeployment into the queue that a change concerns, for ever, and shows the change to `histories`.
/// What `reported` explains concerns others only.
pub(super) async fn enqueue(
    context: Arc<Context>,
    queue: Arc<Queue<String>>,
    histories: Arc<StorageVersionHistories>,
    reported: Arc<Reported>,
) {
    let mut changes = context.index.subscribe();
    let mut arrivals = context.index.arrivals();
    let mut policies = context.policies.changes();
    histories.see_all(&context.index);
    add_all(&context.index, &queue);
    watch_sources(&context);
    loop {
        let change = tokio::select! {
            change = changes.recv() => change,
            // What was applied of a kind as soon as it was served may be gone again before a watch has seen it.
            _ = arrivals.recv() => {
                add_all(&context.index, &queue);
                continue;
            }
            // The store lives as long as the context.
            _ = policies.changed() => {
                let has_overrides = policies.borrow_and_update().has_overrides();
                watch_namespaces(&context, has_overrides);
                add_all(&context.index, &queue);
                continue;
            }
        };
        match change {
            // Nothing is installed there.
            Ok(change) if change.key.cluster == InCluster::Remote => {}
            Ok(change) => {
                histories.see(&change);
                if Kind::from_key(&change.key) == kinds::BUNDLE_DEPLOYMENT {
                    watch_sources(&context);
                }
                if Kind::from_key(&change.key) == kinds::CUSTOM_RESOURCE_DEFINITION {
                    for name in incomplete(&context.index) {
                        queue.add_after(name, DISCOVERED);
                    }
                }
                let mut names = affected_keys(&context.index, &context.namespace, &change);
                if is_own_report(&change, &reported) {
                    names.remove(&change.key.name);
                }
                if names.is_empty() {
                    continue;
                }
                let pause = pause(&change, &context.index);
                for name in names {
                    queue.add_after(name, pause);
                }
            }
            Err(RecvError::Lagged(_)) => {
                histories.see_all(&context.index);
                add_all(&context.index, &queue);
                watch_sources(&context);
            }
            Err(RecvError::Closed) => return,
        }
    }
}

/// Whether a change is of a BundleDeployment, and only what was said of it last.
fn is_own_report(change: &Change, reported: &Reported) -> bool {
    Kind::from_key(&change.key) == kinds::BUNDLE_DEPLOYMENT && reported.explains(change)
}

/// The objects of a kind that were installed for BundleDeployments.
fn owned(kind: Kind) -> Watch {
    Watch::all(kind).selected(Selector::Label(names::BUNDLE_DEPLOYMENT.to_owned()))
}

/// Watches exactly the ConfigMaps that sources name, and the namespaces that operators watch.
fn watch_sources(context: &Context) {
    let deployments = context.index.objects(&kinds::BUNDLE_DEPLOYMENT);
    let namespaces = deployments
        .iter()
        .flat_map(|deployment| watched(deployment).map(str::to_owned).collect::<Vec<_>>())
        .map(|name| Watch::all(kinds::NAMESPACE).selected(Selector::Name(name)));
    let config_maps = deployments
        .iter()
        .flat_map(|deployment| config_maps(deployment).map(str::to_owned).collect::<Vec<_>>())
        .map(|name| {
            Watch::all(kinds::CONFIG_MAP)
                .within(&context.namespace)
                .selected(Selector::Name(name))
        });
    context
        .watches
        .set_wanted("bundle-deployment", namespaces.chain(config_maps).collect());
}

/// Watches all Namespaces while policies may be for objects in those with some labels.
fn watch_namespaces(context: &Context, has_overrides: bool) {
    let all = has_overrides.then(|| Watch::all(kinds::NAMESPACE));
    context.watches.set_wanted("overrides", all.into_iter().collect());
}

fn add_all(index: &Index, queue: &Queue<String>) {
    for deployment in index.objects(&kinds::BUNDLE_DEPLOYMENT) {
        if let Some(name) = object::text(&deployment, "/metadata/name") {
            queue.add(name.to_owned());
        }
    }
    // What was asked for a BundleDeployment that is gone is taken back.
    for configuration in index.objects(&kinds::VALIDATING_WEBHOOK_CONFIGURATION) {
        if let Some(name) = object::label(&configuration, names::PROBE) {
            queue.add(name.to_owned());
        }
    }
}

/// How long a change can wait.
fn pause(change: &Change, index: &Index) -> Duration {
    match change.both_versions() {
        Some((before, after)) if differs_in_trust_only(&before, &after, &index.target_kinds()) => {
            RECONCILE_DELAY
        }
        _ => Duration::ZERO,
    }
}

/// The BundleDeployments that a change concerns.
fn affected_keys(index: &Index, own_namespace: &str, change: &Change) -> HashSet<String> {
    let mut names = HashSet::new();
    for version in change.before.iter().chain(&change.after) {
        names.extend(version.indexed().bundle_deployment().map(str::to_owned));
    }
    let kind = Kind::from_key(&change.key);
    // One that appears is not needed for ever; that it goes is no news.
    if kind == kinds::VALIDATING_WEBHOOK_CONFIGURATION
        && let Some(after) = &change.after
    {
        names.extend(object::label(&after.read(), names::PROBE).map(str::to_owned));
    }
    if kind == kinds::BUNDLE_DEPLOYMENT {
        names.insert(change.key.name.clone());
        // Others may wait for a claim that it made, or for it to say what it claims.
        let says = |version: &ChangedObject| {
            let claimant = Claimant::from_object(&version.read());
            (claimant.is_observed, claimant.claims)
        };
        if change.before.as_ref().map(says) != change.after.as_ref().map(says) {
            names.extend(named(index, |_| true));
        }
    }
    let namespace = change.key.namespace.as_deref();
    if kind == kinds::CONFIG_MAP && namespace == Some(own_namespace) {
        names.extend(named(index, |deployment| {
            config_maps(deployment).any(|name| name == change.key.name)
        }));
        for version in change.versions() {
            let of = RECORDS.iter().filter_map(|label| object::label(&version, label));
            names.extend(of.map(str::to_owned));
        }
    }
    // Its targets may be objects of any bundle, as they were and as they are.
    if INTERPRETATION_KINDS.contains(&kind) {
        names.extend(named(index, |_| true));
    }
    if kind == kinds::NAMESPACE {
        let is_relabelled = is_relabelled(change);
        names.extend(named(index, |deployment| {
            let is_own = object::text(deployment, "/spec/namespace") == Some(&change.key.name);
            (is_own && is_relabelled) || watched(deployment).any(|name| name == change.key.name)
        }));
    }
    let in_namespace = [kinds::ENDPOINT_SLICE, kinds::SECRET, kinds::SERVING_CERTIFICATE];
    if in_namespace.contains(&kind) {
        names.extend(named(index, |deployment| {
            object::text(deployment, "/spec/namespace") == namespace
        }));
    }
    if kind == kinds::CUSTOM_RESOURCE_DEFINITION && change.key.name == operator_condition::DEFINITION {
        names.extend(named(index, |_| true));
    }
    if kind == kinds::CUSTOM_RESOURCE_DEFINITION {
        let apis: Vec<_> = change.versions().filter_map(|crd| Api::from_crd(&crd)).collect();
        names.extend(named(index, |deployment| {
            let claimant = Claimant::from_object(deployment);
            apis.iter().any(|api| claimant.claims(api))
        }));
    }
    names
}

/// Whether policies may be for other objects in a Namespace than before.
fn is_relabelled(change: &Change) -> bool {
    let names = |version: &ChangedObject| {
        let object = version.read();
        ["/metadata/labels", "/metadata/annotations"].map(|names| object.pointer(names).cloned())
    };
    let after = change.after.as_ref().map(names);
    after.is_some() && after != change.before.as_ref().map(names)
}

fn named(index: &Index, concerns: impl Fn(&Value) -> bool) -> Vec<String> {
    index
        .objects(&kinds::BUNDLE_DEPLOYMENT)
        .iter()
        .filter(|deployment| concerns(deployment))
        .filter_map(|deployment| object::text(deployment, "/metadata/name").map(str::to_owned))
        .collect()
}

/// The BundleDeployments of which something was left out that the cluster may have now.
fn incomplete(index: &Index) -> Vec<String> {
    named(index, |deployment| {
        object::items(deployment, "/status/conditions")
            .iter()
            .any(|condition| {
                object::text(condition, "/type") == Some(Milestone::Accepted.condition())
                    && object::text(condition, "/reason")
                        .is_some_and(|reason| [NOTICES, WARNINGS].contains(&reason))
            })
    })
}

/// The namespaces that an operator watches.
fn watched(deployment: &Value) -> impl Iterator<Item = &str> {
    object::items(deployment, "/spec/watchNamespaces")
        .iter()
        .filter_map(Value::as_str)
}

fn config_maps(deployment: &Value) -> impl Iterator<Item = &str> {
    object::items(deployment, "/spec/source/configMaps")
        .iter()
        .filter_map(|config_map| object::text(config_map, "/name"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deployment(name: &str, crds: &[&str]) -> Value {
        let conversions: Vec<_> = crds
            .iter()
            .map(|crd| json!({"crd": crd, "state": "Armed"}))
            .collect();
        json!({
            "apiVersion": names::API_VERSION, "kind": "BundleDeployment", "metadata": {"name": name},
            "spec": {"namespace": format!("{name}-system"), "watchNamespaces": [format!("watched-by-{name}")], "source": {"configMaps": [{"name": format!("{name}-0")}]}},
            "status": {"conversions": conversions}
        })
    }

    fn change(before: Option<Value>, after: Option<Value>) -> Change {
        let key = object::ObjectKey::from_object(before.as_ref().or(after.as_ref()).unwrap()).unwrap();
        Change {
            key,
            before: before.map(Into::into),
            after: after.map(Into::into),
        }
    }

    fn names_of(change: &Change) -> Vec<String> {
        let index = Index::new();
        let watch = Watch::all(kinds::BUNDLE_DEPLOYMENT);
        index.apply(&watch, deployment("a", &["widgets.example.com"]));
        index.apply(&watch, deployment("b", &[]));
        let mut names: Vec<_> = affected_keys(&index, "windlass-system", change)
            .into_iter()
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_change_concerns_its_owner_its_readers_and_its_rivals() {
        let object = |kind: &Kind, namespace: Option<&str>, name: &str, metadata: Value| {
            let mut object = json!({"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata});
            object["metadata"]["name"] = name.into();
            if let Some(namespace) = namespace {
                object["metadata"]["namespace"] = namespace.into();
            }
            object
        };
        let labelled = json!({"labels": {"windlass.dev/bundle-deployment": "b"}});
        let cases = [
            (object(&kinds::SERVICE, Some("x"), "s", labelled), vec!["b"]),
            (
                object(&kinds::CONFIG_MAP, Some("windlass-system"), "a-0", json!({})),
                vec!["a"],
            ),
            (
                object(
                    &kinds::CONFIG_MAP,
                    Some("windlass-system"),
                    "b-revision-1",
                    json!({"labels": {"windlass.dev/revision-of": "b"}}),
                ),
                vec!["b"],
            ),
            (
                object(&kinds::CONFIG_MAP, Some("elsewhere"), "a-0", json!({})),
                vec![],
            ),
            (
                object(&kinds::ENDPOINT_SLICE, Some("b-system"), "s-1", json!({})),
                vec!["b"],
            ),
            (
                object(
                    &kinds::CUSTOM_RESOURCE_DEFINITION,
                    None,
                    "widgets.example.com",
                    json!({}),
                ),
                vec!["a"],
            ),
            (deployment("b", &["widgets.example.com"]), vec!["a", "b"]),
            (
                object(&kinds::NAMESPACE, None, "watched-by-b", json!({})),
                vec!["b"],
            ),
            (object(&kinds::NAMESPACE, None, "b-system", json!({})), vec![]),
            (
                object(&kinds::RESOURCE_INTERPRETATION, None, "widgets", json!({})),
                vec!["a", "b"],
            ),
        ];
        for (gone, expected) in cases {
            assert_eq!(names_of(&change(Some(gone.clone()), None)), expected, "{gone}");
        }
        let same = deployment("b", &[]);
        assert_eq!(names_of(&change(Some(same.clone()), Some(same))), ["b"]);
    }

    #[test]
    fn a_namespace_concerns_what_is_installed_in_it_when_policies_may_select_it_otherwise() {
        let namespace = |labels: Value, phase: &str| {
            json!({
                "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "b-system", "labels": labels},
                "status": {"phase": phase},
            })
        };
        let plain = namespace(json!({}), "Active");
        let labelled = namespace(json!({"team": "a"}), "Active");
        let ending = namespace(json!({}), "Terminating");
        assert_eq!(names_of(&change(Some(plain.clone()), Some(labelled))), ["b"]);
        assert_eq!(names_of(&change(None, Some(plain.clone()))), ["b"]);
        assert_eq!(names_of(&change(Some(plain), Some(ending))), [""; 0]);
    }

    #[test]
    fn what_is_asked_for_a_bundle_deployment_concerns_it_until_it_goes() {
        let kind = kinds::VALIDATING_WEBHOOK_CONFIGURATION;
        let probe = json!({
            "apiVersion": kind.api_version, "kind": kind.kind,
            "metadata": {"name": "windlass-probe-gone-0", "labels": {names::PROBE: "gone"}},
        });
        assert_eq!(names_of(&change(None, Some(probe.clone()))), ["gone"]);
        assert_eq!(names_of(&change(Some(probe), None)), [""; 0]);
    }

    #[test]
    fn a_change_of_trust_alone_can_wait() {
        let crd = |bundle: &str, label: &str| {
            json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": "widgets.example.com", "labels": {"a": label}},
                "spec": {"conversion": {"strategy": "Webhook", "webhook": {"clientConfig": {
                    "service": {"namespace": "a-system", "name": "a"}, "caBundle": bundle,
                }}}},
            })
        };
        let armed = || Some(crd("", "b"));
        for (after, expected) in [
            (Some(crd("QQ==", "b")), RECONCILE_DELAY),
            (Some(crd("QQ==", "c")), Duration::ZERO),
            (None, Duration::ZERO),
        ] {
            assert_eq!(
                pause(&change(armed(), after.clone()), &Index::new()),
                expected,
                "{after:?}"
            );
        }
    }
}
