//! The installed revision is kept whatever becomes of the next one, and can be gone back to.

use std::{fs, path::Path};

use anyhow::Context;
use serde_json::{Value, json};

use super::{traffic, upgrade};
use crate::{
    command::argument,
    operator,
    request::{send, text},
    sample,
    steps::{
        BUNDLE_DEPLOYMENTS, PATIENCE, VALIDATING, bundle_deployment, check, conditions, current, get, list,
        ready, succeed, until,
    },
    test_cluster::TestCluster,
};

const PODS: &str = "/api/v1/namespaces/sample-system/pods";

const CLUSTER_ROLES: &str =
    "/apis/rbac.authorization.k8s.io/v1/clusterroles?labelSelector=windlass.dev%2Fbundle-deployment%3Dsample";

pub(super) async fn the_installed_revision_is_kept_while_the_next_is_refused(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    bring_unserved_kind(&cluster.bundle("sample.v2")?)?;
    sample::install(cluster, "sample.v2").await?;
    cluster.bundle("sample.v1")?;
    sample::set_source(cluster, "sample.v1").await?;
    upgrade::stopped(cluster, "Downgrade", "older than the installed sample.v2").await?;
    is_kept(cluster, "Downgrade").await?;

    // One that is no bundle at all.
    sample::set_source(cluster, invalid(cluster)?).await?;
    let refused = upgrade::stopped(cluster, "BundleInvalid", "missing").await?;
    anyhow::ensure!(
        text(&refused, "/status/next/reason") == "BundleInvalid"
            && text(&refused, "/status/installed/name") == "sample.v2",
        "{}",
        refused["status"]
    );
    is_kept(cluster, "BundleInvalid").await?;

    // Nothing to be read at all, neither of the next one nor of the installed one.
    fs::remove_dir_all(cluster.operator.bundle_dir.join("sample.v2"))?;
    sample::set_source(cluster, "nowhere").await?;
    upgrade::stopped(cluster, "SourceInvalid", "cannot be read").await?;
    is_kept(cluster, "SourceInvalid").await
}

pub(super) async fn the_installed_revision_is_kept_while_the_next_is_stuck(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    bring_unserved_kind(&cluster.bundle("sample.v1")?)?;
    sample::install(cluster, "sample.v1").await?;
    let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
    load.at_least(50).await?;
    let selector = selector(cluster).await?;
    let broken = upgrade::broken(cluster, "crash")?;
    for (canary, reason) in [(true, "CanaryCrashing"), (false, "RollingOut")] {
        let config = json!({"spec": {"config": {"windlass": {"canary": canary}}}});
        succeed(&cluster.client, "PATCH", sample::BUNDLE_DEPLOYMENT, Some(&config)).await?;
        sample::set_source(cluster, &broken).await?;
        upgrade::stopped(cluster, reason, "exit code 1").await?;
        load.at_least(50).await?;
        load.lap().check()?;
        // Whoever deletes what is called fails calls; that it comes back is what counts.
        is_whole(cluster).await?;
        ready_pods(cluster).await?;
        anyhow::ensure!(
            self::selector(cluster).await? == selector,
            "the Service leads elsewhere than before"
        );
        load.at_least(50).await?;
        drop(load.lap());
        load.at_least(50).await?;
        load.lap().check()?;
        sample::set_source(cluster, "sample.v1").await?;
    }
    load.stop().await;
    Ok(())
}

/// What has begun has changed the CRD, so that nothing goes back by itself.
pub(super) async fn the_installed_revision_is_kept_beside_what_began_and_is_refused_now(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    let broken = json!({"spec": {
        "source": {"directory": {"path": upgrade::broken(cluster, "crash")?}},
        "config": {"windlass": {"canary": false}},
    }});
    succeed(&cluster.client, "PATCH", sample::BUNDLE_DEPLOYMENT, Some(&broken)).await?;
    upgrade::stopped(cluster, "RollingOut", "exit code 1").await?;
    let versions = sample::crd(cluster).await?["spec"]["versions"].clone();
    let has_begun = versions
        .as_array()
        .is_some_and(|all| all.iter().any(|version| version["name"] == "v2"));
    anyhow::ensure!(has_begun, "the CRD is as it was: {versions}");

    sample::set_source(cluster, invalid(cluster)?).await?;
    upgrade::stopped(cluster, "BundleInvalid", "missing").await?;
    is_whole(cluster).await?;
    ready_pods(cluster).await?;
    let versions = sample::crd(cluster).await?["spec"]["versions"].clone();
    anyhow::ensure!(
        versions.to_string().contains("\"v2\""),
        "what has begun was undone: {versions}"
    );
    // It goes on from there.
    cluster.bundle("sample.v2")?;
    sample::set_source(cluster, "sample.v2").await?;
    ready(&cluster.client, "sample", PATIENCE).await?;
    Ok(())
}

pub(super) async fn a_config_map_of_somebody_else_is_not_overwritten_by_a_record(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    let theirs = json!({"metadata": {"name": "sample-revision-1"}, "data": {"settings": "theirs"}});
    succeed(&cluster.client, "POST", &config_maps(""), Some(&theirs)).await?;
    cluster.bundle("sample.v1")?;
    let object = bundle_deployment("sample", sample::NAMESPACE, "sample.v1");
    succeed(&cluster.client, "POST", BUNDLE_DEPLOYMENTS, Some(&object)).await?;
    upgrade::stopped(
        cluster,
        "RecordRefused",
        "ConfigMap windlass-system/sample-revision-1 exists and was not created by Windlass: rename or delete it",
    )
    .await?;
    let path = config_maps("/sample-revision-1");
    let left = get(&cluster.client, &path).await?.context("it was deleted")?;
    anyhow::ensure!(
        left["data"] == theirs["data"] && left["metadata"]["ownerReferences"].is_null(),
        "it was overwritten: {left}"
    );
    succeed(&cluster.client, "DELETE", &path, None).await?;
    ready(&cluster.client, "sample", PATIENCE).await?;
    let record = get(&cluster.client, &path).await?.context("no record")?;
    anyhow::ensure!(
        record["metadata"]["labels"]["windlass.dev/revision-of"] == "sample",
        "{record}"
    );
    Ok(())
}

/// Adds an object to a bundle of a kind that the cluster does not serve, and that is left out.
fn bring_unserved_kind(bundle: &Path) -> anyhow::Result<()> {
    let monitor = json!({
        "apiVersion": "monitoring.coreos.com/v1", "kind": "ServiceMonitor", "metadata": {"name": "metrics"},
    });
    fs::write(bundle.join("manifests/monitor.json"), monitor.to_string())?;
    Ok(())
}

/// The folder of something that is no valid bundle.
fn invalid(cluster: &TestCluster) -> anyhow::Result<&'static str> {
    let name = "invalid";
    let folder = cluster.add_bundle(&sample::bundle("sample.v2"), name)?;
    cluster.edit(
        &folder,
        "deploymentName: sample-operator",
        "deploymentName: missing",
    )?;
    Ok(name)
}

/// The pods that the Service of the installed revision selects.
async fn selector(cluster: &TestCluster) -> anyhow::Result<Value> {
    let service = get(&cluster.client, sample::SERVICE)
        .await?
        .context("no Service")?;
    Ok(service["spec"]["selector"].clone())
}

/// Waits until pods of the installed revision answer again, and those that were deleted have closed their connections.
async fn ready_pods(cluster: &TestCluster) -> anyhow::Result<()> {
    until("the installed revision is available", PATIENCE, async || {
        let object = deployment(cluster).await?;
        let works = object["status"]["installed"]["healthy"] == true
            && current(&object, "Available", "True").is_some()
            && current(&object, "Armed", "True").is_some();
        Ok(check(works, || conditions(&object)))
    })
    .await?;
    until("the deleted pods are gone", PATIENCE, async || {
        let pods = list(&cluster.client, PODS).await?;
        let mut ending = pods
            .iter()
            .filter(|pod| !pod["metadata"]["deletionTimestamp"].is_null());
        Ok(ending
            .next()
            .map_or(Ok(()), |pod| Err(text(pod, "/metadata/name").to_owned())))
    })
    .await
}

pub(super) async fn a_source_that_is_gone_takes_nothing_along(cluster: &TestCluster) -> anyhow::Result<()> {
    let running = cluster.operator.start()?;
    install(cluster, "sample.v1").await?;
    let deployment = deployment(cluster).await?;
    let source = deployment["spec"]["source"]["configMaps"].as_array();
    for part in source.context("no ConfigMaps")? {
        let path = config_maps("");
        succeed(
            &cluster.client,
            "DELETE",
            &format!("{path}/{}", text(part, "/name")),
            None,
        )
        .await?;
    }
    is_whole(cluster).await?;

    // A directory does not come back; the bundle is in the record also for an operator that has not seen it.
    cluster.bundle("sample.v1")?;
    let directory = json!({"spec": {"source": {"directory": {"path": "sample.v1"}, "configMaps": null}}});
    succeed(
        &cluster.client,
        "PATCH",
        sample::BUNDLE_DEPLOYMENT,
        Some(&directory),
    )
    .await?;
    ready(&cluster.client, "sample", PATIENCE).await?;
    fs::remove_dir_all(cluster.operator.bundle_dir.join("sample.v1"))?;
    running.kill().await?;
    let _running = cluster.operator.start()?;
    is_whole(cluster).await?;
    until("the status says what stands in", PATIENCE, async || {
        let object = self::deployment(cluster).await?;
        let words = conditions(&object);
        let says = words.contains("Accepted=True SourceInvalid")
            && words.contains("going on from the record of revision 1")
            && current(&object, "Ready", "True").is_some();
        Ok(check(says, || words))
    })
    .await
}

pub(super) async fn a_pinned_source_gives_nothing_else(cluster: &TestCluster) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    let installed = sample::install(cluster, "sample.v1").await?;
    let digest = text(&installed, "/status/installed/digest").to_owned();
    let pinned = json!({"spec": {"source": {"digest": digest}}});
    succeed(&cluster.client, "PATCH", sample::BUNDLE_DEPLOYMENT, Some(&pinned)).await?;
    ready(&cluster.client, "sample", PATIENCE).await?;
    let folder = cluster.operator.bundle_dir.join("sample.v1");
    cluster.edit(
        &folder,
        "capabilities: Basic Install",
        "capabilities: Full Lifecycle",
    )?;
    let other = json!({"metadata": {"annotations": {"look": "again"}}});
    succeed(&cluster.client, "PATCH", sample::BUNDLE_DEPLOYMENT, Some(&other)).await?;
    upgrade::stopped(
        cluster,
        "DigestMismatch",
        &format!("spec.source.digest pins {digest}"),
    )
    .await?;
    is_kept(cluster, "DigestMismatch").await
}

pub(super) async fn the_command_goes_back_to_an_earlier_revision(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    install(cluster, "sample.v1").await?;
    let said = cluster.command.fail(&["rollback", "sample"]).await?;
    anyhow::ensure!(
        said.contains("has no revision before 1, which is installed"),
        "{said}"
    );
    let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
    load.at_least(50).await?;
    install(cluster, "sample.v2").await?;
    load.at_least(50).await?;
    let said = cluster.command.fail(&["rollback", "sample", "--to", "7"]).await?;
    anyhow::ensure!(said.contains("has no revision 7; there are 1, 2"), "{said}");

    // Back, although it is older, and forth again.
    let back = cluster.command.succeed(&["rollback", "sample"]).await?;
    anyhow::ensure!(
        back.starts_with("sample.v1 is installed in sample-system"),
        "{back}"
    );
    load.at_least(50).await?;
    let forth = cluster
        .command
        .succeed(&["rollback", "sample", "--to", "2"])
        .await?;
    anyhow::ensure!(
        forth.starts_with("sample.v2 is installed in sample-system"),
        "{forth}"
    );
    load.at_least(50).await?;
    let again = cluster.command.succeed(&["rollback", "sample"]).await?;
    anyhow::ensure!(
        again.starts_with("sample.v1 is installed in sample-system"),
        "{again}"
    );
    load.at_least(50).await?;
    traffic::finish(load).await?;

    // The installed one and the last three are recorded, each bundle once.
    let history = cluster.command.found(&["history", "sample"]).await?;
    let listed: Vec<_> = history
        .as_array()
        .into_iter()
        .flatten()
        .map(|entry| {
            format!(
                "{} {} {}",
                entry["revision"],
                text(entry, "/name"),
                text(entry, "/state")
            )
        })
        .collect();
    anyhow::ensure!(
        listed
            == [
                "5 sample.v1 Installed",
                "4 sample.v2 Earlier",
                "3 sample.v1 Earlier",
                "2 sample.v2 Earlier"
            ],
        "{listed:?}"
    );
    until("the first record is gone", PATIENCE, async || {
        let records = list(
            &cluster.client,
            &config_maps("?labelSelector=windlass.dev%2Frevision-of%3Dsample"),
        )
        .await?;
        Ok(check(records.len() == 4, || format!("{} records", records.len())))
    })
    .await?;
    let stored = list(
        &cluster.client,
        &config_maps("?labelSelector=windlass.dev%2Fbundle-source%3Dsample"),
    )
    .await?;
    anyhow::ensure!(stored.len() == 2, "{} ConfigMaps with bundles", stored.len());
    // What was gone back to can be installed over.
    install(cluster, "sample.v2").await?;
    cluster.command.succeed(&["uninstall", "sample"]).await?;
    until("everything recorded is gone", PATIENCE, async || {
        let left = list(
            &cluster.client,
            &config_maps("?labelSelector=windlass.dev%2Frevision-of"),
        )
        .await?;
        Ok(check(left.is_empty(), || format!("{} records", left.len())))
    })
    .await
}

fn config_maps(query: &str) -> String {
    format!("/api/v1/namespaces/{}/configmaps{query}", operator::NAMESPACE)
}

async fn install(cluster: &TestCluster, name: &str) -> anyhow::Result<()> {
    let bundle = sample::bundle(name);
    let arguments = [
        "install",
        argument(&bundle)?,
        "--namespace",
        "sample-system",
        "--name",
        "sample",
    ];
    cluster.command.succeed(&arguments).await?;
    Ok(())
}

async fn deployment(cluster: &TestCluster) -> anyhow::Result<Value> {
    get(&cluster.client, &format!("{BUNDLE_DEPLOYMENTS}/sample"))
        .await?
        .context("no BundleDeployment")
}

/// Takes each object of the installed revision away in turn. It comes back while the next one is refused for `reason`, and
/// the status says of both how they are.
async fn is_kept(cluster: &TestCluster, reason: &str) -> anyhow::Result<()> {
    is_whole(cluster).await?;
    until("the status tells the two apart", PATIENCE, async || {
        let object = deployment(cluster).await?;
        let holds = |condition: &str| current(&object, condition, "True").is_some();
        let is_refused = current(&object, "Ready", "False").is_some_and(|ready| ready["reason"] == reason);
        let is_told = holds("Available")
            && holds("Armed")
            && !holds("Accepted")
            && is_refused
            && object["status"]["installed"]["healthy"] == true
            && object["status"]["next"]["reason"] == reason;
        Ok(check(is_told, || object["status"].to_string()))
    })
    .await
}

/// Takes each object of the installed revision away in turn, and waits until it is back.
async fn is_whole(cluster: &TestCluster) -> anyhow::Result<()> {
    let roles = list(&cluster.client, CLUSTER_ROLES).await?;
    let role = roles.first().context("no ClusterRole")?;
    let role = format!(
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/{}",
        text(role, "/metadata/name")
    );
    let webhooks = list(&cluster.client, VALIDATING).await?;
    let webhook = webhooks
        .iter()
        .find(|webhook| text(webhook, "/metadata/name").contains("vwidget"))
        .context("no ValidatingWebhookConfiguration")?;
    let webhook = format!("{VALIDATING}/{}", text(webhook, "/metadata/name"));
    for path in [sample::SERVICE, sample::DEPLOYMENT, &role, &webhook] {
        let before = get(&cluster.client, path)
            .await?
            .with_context(|| format!("no {path}"))?;
        succeed(&cluster.client, "DELETE", path, None).await?;
        until(&format!("{path} is back"), PATIENCE, async || {
            let uid = &before["metadata"]["uid"];
            let there = get(&cluster.client, path).await?;
            let is_back = there.is_some_and(|there| there["metadata"]["uid"] != *uid);
            Ok(if is_back {
                Ok(())
            } else {
                Err(conditions(&deployment(cluster).await?))
            })
        })
        .await?;
    }
    keeps_its_conversion(cluster).await
}

/// Takes the conversion of the CRD away, points it elsewhere, and replaces the CRD by one without our marks; each time waits
/// until all is back.
async fn keeps_its_conversion(cluster: &TestCluster) -> anyhow::Result<()> {
    let service = |crd: &Value| crd["spec"]["conversion"]["webhook"]["clientConfig"]["service"].clone();
    let called = service(&sample::crd(cluster).await?);
    let none = json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}});
    let path = json!({"webhook": {"clientConfig": {"service": {"path": "/elsewhere"}}}});
    let other = json!({"webhook": {"clientConfig": {"service": {"name": "metrics"}}}});
    let changes = [
        ("PATCH", none),
        ("PATCH", json!({"spec": {"conversion": path}})),
        ("PATCH", json!({"spec": {"conversion": other}})),
        ("PUT", json!({"conversion": {"strategy": "None"}})),
    ];
    for (method, change) in changes {
        until("the conversion is changed", PATIENCE, async || {
            let mut body = change.clone();
            if method == "PUT" {
                // What `kubectl replace` sends of the author's manifest.
                body = sample::crd(cluster).await?;
                body["spec"]["conversion"] = change["conversion"].clone();
                if let Some(metadata) = body["metadata"].as_object_mut() {
                    metadata.retain(|field, _| ["name", "resourceVersion"].contains(&field.as_str()));
                }
            }
            let answer = send(&cluster.client, method, sample::DEFINITION, Some(&body)).await?;
            Ok(check(answer.code == 200, || answer.to_string()))
        })
        .await?;
        until(
            &format!("the conversion is back after {change}"),
            PATIENCE,
            async || {
                let crd = sample::crd(cluster).await?;
                let metadata = &crd["metadata"];
                let is_back = service(&crd) == called
                    && metadata["labels"]["windlass.dev/bundle-deployment"] == "sample"
                    && !metadata["annotations"]["windlass.dev/inject-ca-from"].is_null();
                Ok(if is_back {
                    Ok(())
                } else {
                    Err(conditions(&deployment(cluster).await?))
                })
            },
        )
        .await?;
    }
    Ok(())
}
