//! Objects that define which kinds are served: CustomResourceDefinitions, and APIServices, of which an API
//! server has one per group version.

use serde_json::Value;
use tokio::sync::broadcast;
use windlass_object::{InCluster, object};

use crate::{
    Change,
    index::Index,
    kind::{Kind, kinds},
    watch::Watch,
};

const KINDS: [Kind; 2] = [kinds::CUSTOM_RESOURCE_DEFINITION, kinds::API_SERVICE];

/// Reports whether objects of a kind define kinds.
pub(crate) fn is_definition_kind(kind: &Kind) -> bool {
    let own = kind.clone().in_cluster(InCluster::Local);
    KINDS.contains(&own)
}

/// Waits for a change of an object that defines `kind`.
pub(crate) async fn wait_for_change(changes: &mut broadcast::Receiver<Change>, kind: &Kind) {
    loop {
        match changes.recv().await {
            Ok(change)
                if change.key.cluster != kind.cluster
                    || !is_definition_kind(&Kind::from_key(&change.key)) => {}
            Ok(change) => {
                let definition = change.after.or(change.before);
                if definition.is_some_and(|definition| defines(&definition.read(), kind)) {
                    return;
                }
            }
            Err(broadcast::error::RecvError::Lagged(_)) => return,
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }
}

/// Reports whether the listed APIServices show that the version of `kind` is not served, which saves a
/// discovery request. API servers without APIServices for their built-in versions may serve anything.
pub(crate) fn is_version_unserved(index: &Index, kind: &Kind) -> bool {
    let definitions = kinds::API_SERVICE.in_cluster(kind.cluster);
    if !index.is_complete(&Watch::all(definitions.clone())) {
        return false;
    }
    let services = index.objects(&definitions);
    let serve = |kind: &Kind| services.iter().any(|service| defines(service, kind));
    serve(&kinds::NAMESPACE) && !serve(kind)
}

/// Reports whether a newer version of `kind` is served, which is watched instead, so that every object is
/// seen once. Waits until that is known.
pub(crate) async fn is_superseded(index: &Index, kind: &Kind) -> bool {
    let Some(newer) = kind.preferred_version() else {
        return false;
    };
    let definitions = kinds::CUSTOM_RESOURCE_DEFINITION.in_cluster(kind.cluster);
    let mut progress = index.progress();
    while !index.is_complete(&Watch::all(definitions.clone())) {
        if progress.changed().await.is_err() {
            return false;
        }
    }
    let name = format!("{}.{}", newer.plural, newer.group);
    let crd = index.find(&definitions.object(None, &name));
    crd.is_some_and(|crd| {
        let mut versions = object::items(&crd, "/spec/versions").iter();
        versions.any(|version| version["name"] == *newer.version && version["served"] == true)
    })
}

/// Waits until a newer version of `kind` is served.
pub(crate) async fn wait_until_superseded(index: &Index, kind: &Kind) {
    if kind.preferred_version().is_none() {
        return std::future::pending().await;
    }
    let mut changes = index.subscribe();
    while !is_superseded(index, kind).await {
        wait_for_change(&mut changes, kind).await;
    }
}

/// Reports whether an object defines `kind`.
fn defines(definition: &Value, kind: &Kind) -> bool {
    let is_of = |of: &Kind| object::text(definition, "/kind") == Some(&*of.kind);
    // The core group has no name.
    let says = |pointer, what: &str| object::text(definition, pointer).unwrap_or_default() == what;
    let (group, version) = kind.group_version();
    (is_of(&kinds::CUSTOM_RESOURCE_DEFINITION)
        && says("/spec/group", group)
        && says("/spec/names/kind", &kind.kind))
        || (is_of(&kinds::API_SERVICE) && says("/spec/group", group) && says("/spec/version", version))
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::FutureExt;
    use serde_json::json;

    use super::*;

    #[test]
    fn versions_without_an_api_service_need_no_discovery() {
        let index = Index::new();
        let watch = Watch::all(kinds::API_SERVICE);
        let hooks = Kind::new("runtime.cluster.x-k8s.io/v1beta2", "ExtensionConfig");
        assert!(!is_version_unserved(&index, &hooks), "APIServices are not listed");
        index.begin_relist(&watch);
        index.finish_relist(&watch);
        assert!(
            !is_version_unserved(&index, &hooks),
            "an API server without an aggregator has none"
        );
        let serve = |group: Option<&str>, version: &str| {
            index.apply(
                &watch,
                json!({
                    "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
                    "metadata": {"name": format!("{version}.{}", group.unwrap_or_default())},
                    "spec": {"group": group, "version": version},
                }),
            );
        };
        serve(Some("runtime.cluster.x-k8s.io"), "v1alpha1");
        assert!(
            !is_version_unserved(&index, &hooks),
            "it has none for its built-in versions"
        );
        serve(None, "v1");
        assert!(is_version_unserved(&index, &hooks));
        assert!(
            !is_version_unserved(&index, &kinds::SECRET),
            "the core group has no name"
        );
        serve(Some("runtime.cluster.x-k8s.io"), "v1beta2");
        assert!(!is_version_unserved(&index, &hooks));
    }

    #[tokio::test]
    async fn a_newer_version_supersedes_an_older_one() {
        let index = Index::new();
        let watch = Watch::all(kinds::CUSTOM_RESOURCE_DEFINITION);
        let older = Kind::new("runtime.cluster.x-k8s.io/v1alpha1", "ExtensionConfig");
        assert!(!is_superseded(&index, &kinds::EXTENSION_CONFIG).await);
        assert!(
            is_superseded(&index, &older).now_or_never().is_none(),
            "it is unknown"
        );
        index.begin_relist(&watch);
        index.finish_relist(&watch);
        let serve = |is_served: bool| {
            let crd = json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": "extensionconfigs.runtime.cluster.x-k8s.io"},
                "spec": {
                    "group": "runtime.cluster.x-k8s.io", "names": {"kind": "ExtensionConfig"},
                    "versions": [{"name": "v1alpha1", "served": true}, {"name": "v1beta2", "served": is_served}],
                },
            });
            index.apply(&watch, crd);
        };
        assert!(!is_superseded(&index, &older).await);
        serve(false);
        assert!(!is_superseded(&index, &older).await);
        let mut waiting = pin!(wait_until_superseded(&index, &older));
        assert!(waiting.as_mut().now_or_never().is_none());
        serve(true);
        waiting.await;
        assert!(is_superseded(&index, &older).await);
    }

    #[test]
    fn a_kind_is_defined_by_its_crd_or_api_service() {
        let kind = Kind::new("runtime.cluster.x-k8s.io/v1beta2", "ExtensionConfig");
        let crd = |group: &str, name: &str| json!({"kind": "CustomResourceDefinition", "spec": {"group": group, "names": {"kind": name}}});
        let service = |version: &str| json!({"kind": "APIService", "spec": {"group": "runtime.cluster.x-k8s.io", "version": version}});
        for (object, expected) in [
            (crd("runtime.cluster.x-k8s.io", "ExtensionConfig"), true),
            (crd("runtime.cluster.x-k8s.io", "Other"), false),
            (crd("example.com", "ExtensionConfig"), false),
            (service("v1beta2"), true),
            (service("v1alpha1"), false),
            (json!({"kind": "ConfigMap"}), false),
        ] {
            assert_eq!(defines(&object, &kind), expected, "{object}");
        }
    }
}
