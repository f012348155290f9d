//! Somebody else changes what Windlass keeps: it comes back.

use anyhow::Context;
use serde_json::{Value, json};
use windlass_trust::injection::{CaBundlePlace, KINDS, TargetKind};

use super::foreign::{self, version};
use crate::{
    request::text,
    sample::{self, CERTIFICATE},
    steps::{MUTATING, PATIENCE, VALIDATING, get, list, succeed, until},
    test_cluster::TestCluster,
};

/// The collection of Cluster API's ExtensionConfigs.
pub(super) const EXTENSION_CONFIGS: &str = "/apis/runtime.cluster.x-k8s.io/v1beta2/extensionconfigs";

/// A target that others create.
struct Target {
    kind: &'static TargetKind,
    object: Value,
}

// === impl Target ===

impl Target {
    /// One that asks for the sample's trust bundle, and that nothing is sent through.
    fn of(kind: &'static TargetKind) -> Self {
        let mut object =
            json!({"apiVersion": kind.api_version(), "kind": kind.kind, "metadata": metadata("platform")});
        let place = &kind.places[0];
        if let Some(list) = &place.list {
            object[&list[1..]] = json!([{"name": "one.example.com"}]);
        }
        let client_config = holder(place);
        put(&mut object, &format!("{client_config}/service"), service("/hook"));
        complete(&mut object);
        Self { kind, object }
    }

    fn collection(&self) -> String {
        format!("/apis/{}/{}", self.kind.api_version(), self.kind.plural)
    }

    fn path(&self) -> String {
        format!("{}/{}", self.collection(), text(&self.object, "/metadata/name"))
    }

    /// Where its caBundle is.
    fn bundle(&self) -> String {
        format!("{}/caBundle", holder(&self.kind.places[0]))
    }

    /// Another field of what its caBundle is for, and a value that it may get.
    fn other(&self) -> (String, Value) {
        if self.kind.kind == "APIService" {
            return ("/spec/versionPriority".to_owned(), json!(200));
        }
        (
            self.bundle().replace("caBundle", "service/path"),
            json!("/elsewhere"),
        )
    }
}

/// Where the first of a kind's places is.
fn holder(place: &CaBundlePlace) -> String {
    let item = place.list.as_ref().map(|list| format!("{list}/0"));
    format!("{}{}", item.unwrap_or_default(), place.holder)
}

/// The kinds whose objects are all targets.
fn kinds() -> impl Iterator<Item = &'static TargetKind> {
    KINDS.iter().filter(|kind| !kind.is_common())
}

/// Metadata of a target that asks for the sample's trust bundle.
fn metadata(name: &str) -> Value {
    json!({"name": name, "annotations": {"windlass.dev/inject-ca-from": format!("sample-system/{CERTIFICATE}")}})
}

/// The sample's Service, as one that is called at `path`.
fn service(path: &str) -> Value {
    json!({"namespace": "sample-system", "name": CERTIFICATE, "path": path, "port": 443})
}

/// Puts a value at a JSON pointer, and objects on the way there.
fn put(object: &mut Value, pointer: &str, value: Value) {
    let mut place = object;
    for name in pointer.split('/').skip(1) {
        place = match name.parse::<usize>() {
            Ok(index) => &mut place[index],
            Err(_) => &mut place[name],
        };
    }
    *place = value;
}

/// Adds what the API server asks for in objects of its own kinds. Those of others are CRDs that take anything.
fn complete(object: &mut Value) {
    match text(object, "/kind") {
        "CustomResourceDefinition" => {
            object["metadata"]["name"] = json!("gears.platform.example.com");
            let spec = &mut object["spec"];
            spec["group"] = json!("platform.example.com");
            spec["scope"] = json!("Cluster");
            spec["names"] =
                json!({"plural": "gears", "singular": "gear", "kind": "Gear", "listKind": "GearList"});
            spec["versions"] = json!([version("v1", true), version("v1beta1", false)]);
            spec["conversion"]["strategy"] = json!("Webhook");
            spec["conversion"]["webhook"]["conversionReviewVersions"] = json!(["v1"]);
        }
        "APIService" => {
            object["metadata"]["name"] = json!("v1.aggregated.example.com");
            let service = json!({"namespace": "sample-system", "name": CERTIFICATE, "port": 443});
            object["spec"] = json!({
                "group": "aggregated.example.com", "version": "v1", "groupPriorityMinimum": 100,
                "versionPriority": 100, "service": service,
            });
        }
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => {
            let webhook = &mut object["webhooks"][0];
            webhook["rules"] = json!([{
                "apiGroups": ["nothing.example.com"], "apiVersions": ["v1"], "resources": ["nothings"],
                "operations": ["CREATE"],
            }]);
            webhook["sideEffects"] = json!("None");
            webhook["admissionReviewVersions"] = json!(["v1"]);
        }
        _ => {}
    }
}

/// The target of a kind of the table.
fn target(kind: &str) -> anyhow::Result<Target> {
    let kind = kinds().find(|known| known.kind == kind);
    Ok(Target::of(kind.context("no such kind of target")?))
}

/// A webhook configuration, `platform`, that asks for the sample's trust bundle and that nothing is sent through.
pub(super) fn configuration(kind: &str) -> anyhow::Result<Value> {
    Ok(target(kind)?.object)
}

/// Creates the sample's install and a target of each kind that others create. The CRDs of Cluster API, Karmada and so on
/// come after the operator has started: they may come and go.
async fn install_beside_targets(cluster: &TestCluster) -> anyhow::Result<Vec<Target>> {
    sample::install(cluster, "sample.v1").await?;
    for kind in kinds() {
        // The API server's own groups.
        if !kind.group.ends_with(".k8s.io") {
            let crd = foreign::crd(&kind.api_version(), &kind.kind, &kind.plural, false);
            foreign::define(cluster, &crd).await?;
        }
    }
    let targets: Vec<_> = kinds().map(Target::of).collect();
    for target in &targets {
        succeed(
            &cluster.client,
            "POST",
            &target.collection(),
            Some(&target.object),
        )
        .await?;
    }
    Ok(targets)
}

/// Cluster API's CRD, as far as an ExtensionConfig needs it here.
pub(super) fn extension_config_crd() -> Value {
    foreign::crd(
        "runtime.cluster.x-k8s.io/v1beta2",
        "ExtensionConfig",
        "extensionconfigs",
        false,
    )
}

/// An ExtensionConfig that asks for the sample's trust bundle.
pub(super) fn extension_config() -> Value {
    json!({
        "apiVersion": "runtime.cluster.x-k8s.io/v1beta2", "kind": "ExtensionConfig",
        "metadata": metadata("hooks"), "spec": {"clientConfig": {"service": service("/hooks")}},
    })
}

pub(super) async fn every_kind_of_target_is_repaired(cluster: &TestCluster) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    let created = install_beside_targets(cluster).await?;
    let mut targets = vec![(
        sample::DEFINITION.to_owned(),
        "/spec/conversion/webhook/clientConfig/caBundle".to_owned(),
    )];
    targets.extend(created.iter().map(|target| (target.path(), target.bundle())));
    for collection in [VALIDATING, MUTATING] {
        for object in list(&cluster.client, collection).await? {
            let path = format!("{collection}/{}", text(&object, "/metadata/name"));
            if targets.iter().all(|(known, _)| *known != path) {
                targets.push((path, "/webhooks/0/clientConfig/caBundle".to_owned()));
            }
        }
    }
    let trust = sample::trust_bundle(cluster).await?;
    for (path, pointer) in &targets {
        carries(cluster, path, pointer, &trust).await?;
    }
    let stranger = foreign::trust_bundle()?;
    for (path, pointer) in &targets {
        let patch = json!([{"op": "replace", "path": pointer, "value": stranger}]);
        succeed(&cluster.client, "PATCH", path, Some(&patch)).await?;
        carries(cluster, path, pointer, &trust).await?;
    }
    Ok(())
}

pub(super) async fn what_others_write_at_the_same_moment_is_kept(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let (operator, gate) = cluster.proxied(&cluster.operator).await?;
    let _operator = operator.start()?;
    let targets = install_beside_targets(cluster).await?;
    let trust = sample::trust_bundle(cluster).await?;
    let stranger = foreign::trust_bundle()?;
    for target in &targets {
        let path = target.path();
        carries(cluster, &path, &target.bundle(), &trust).await?;
        let (field, value) = &target.other();
        let replaced =
            |pointer: &str, value: &Value| json!([{"op": "replace", "path": pointer, "value": value}]);
        gate.overtake(&cluster.client, &path, replaced(field, value));
        let patch = replaced(&target.bundle(), &json!(stranger));
        succeed(&cluster.client, "PATCH", &path, Some(&patch)).await?;
        carries(cluster, &path, &target.bundle(), &trust).await?;
        let object = get(&cluster.client, &path).await?.context("the target is gone")?;
        anyhow::ensure!(
            object.pointer(field) == Some(value),
            "{path} lost what somebody else wrote to {field}: {object}"
        );
    }
    anyhow::ensure!(gate.has_overtaken(), "no write of the operator was overtaken");
    Ok(())
}

pub(super) async fn a_removed_configuration_comes_back(cluster: &TestCluster) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    let trust = sample::trust_bundle(cluster).await?;
    for collection in [VALIDATING, MUTATING] {
        let object = list(&cluster.client, collection)
            .await?
            .pop()
            .context("no configuration")?;
        let path = format!("{collection}/{}", text(&object, "/metadata/name"));
        succeed(&cluster.client, "DELETE", &path, None).await?;
        carries(cluster, &path, "/webhooks/0/clientConfig/caBundle", &trust).await?;
    }
    let patch = json!({"spec": {"selector": {"app": "somebody-else"}}});
    let before = get(&cluster.client, sample::SERVICE)
        .await?
        .context("no Service")?["spec"]["selector"]
        .clone();
    succeed(&cluster.client, "PATCH", sample::SERVICE, Some(&patch)).await?;
    until("the Service selects the operator again", PATIENCE, async || {
        let service = get(&cluster.client, sample::SERVICE)
            .await?
            .context("no Service")?;
        let selector = &service["spec"]["selector"];
        let repaired = before
            .as_object()
            .is_some_and(|labels| labels.iter().all(|(name, value)| selector[name] == *value));
        Ok(if repaired {
            Ok(())
        } else {
            Err(selector.to_string())
        })
    })
    .await
}

/// Waits until the caBundle at `pointer` is the given one.
pub(super) async fn carries(
    cluster: &TestCluster,
    path: &str,
    pointer: &str,
    trust: &str,
) -> anyhow::Result<()> {
    until(
        &format!("{path} carries the trust bundle"),
        PATIENCE,
        async || {
            let object = get(&cluster.client, path).await?;
            let found = object.as_ref().map(|object| text(object, pointer));
            Ok(if found == Some(trust) {
                Ok(())
            } else {
                Err(format!("{pointer} is {found:?}"))
            })
        },
    )
    .await
}
