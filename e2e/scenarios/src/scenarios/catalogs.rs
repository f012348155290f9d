//! Bundles of catalogs, installed one after another.

use std::{collections::BTreeMap, fs};

use anyhow::Context as _;
use oci::PackedImage;
use serde_json::{Value, json};
use test_authority::TestAuthority;
use test_registry::{TestRegistry, response};
use windlass_object::{names, object};

use super::{
    images::{AUTHORITIES, packed, start_with_registry},
    traffic, upgrade,
};
use crate::{
    command::argument,
    request::text,
    sample,
    steps::{BUNDLE_DEPLOYMENTS, PATIENCE, check, conditions, current, get, ready, succeed, until},
    test_cluster::TestCluster,
};

/// A bundle, its version, and the bundle that it replaces.
type Bundle = (&'static str, &'static str, Option<&'static str>);

const BUNDLES: [Bundle; 3] = [
    ("sample.v1", "1.0.0", None),
    ("sample.v2", "2.0.0", Some("sample.v1")),
    ("sample.v2.1", "2.1.0", Some("sample.v2")),
];

pub(super) async fn the_command_installs_each_bundle_of_an_upgrade_path(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let authority = TestAuthority::new("Registry CA");
    let registry = TestRegistry::start_with(&authority.server(&["127.0.0.1"])).await;
    let images = store_bundles(&registry)?;
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("catalog.json"), catalog(&BUNDLES, &images))?;
    let folder = folder.path().to_str().context("a path that is not UTF-8")?;

    let _running = start_with_registry(cluster, &authority)?.start()?;
    let install = async |version: &str| {
        let arguments = [
            "install",
            "sample",
            "--namespace",
            sample::NAMESPACE,
            "--catalog",
            folder,
            "--version",
            version,
        ];
        cluster.command.run(&arguments, |_| {}).await
    };
    let nothing = install(">=9").await?;
    anyhow::ensure!(
        !nothing.succeeded
            && nothing
                .stderr
                .contains("channel stable of package sample has no version >=9"),
        "{}",
        nothing.stderr
    );
    anyhow::ensure!(
        get(&cluster.client, sample::BUNDLE_DEPLOYMENT).await?.is_none(),
        "objects were written without an upgrade path"
    );
    let (first, last) = (BUNDLES[0], BUNDLES[BUNDLES.len() - 1]);
    let installed = install(first.1).await?;
    anyhow::ensure!(
        installed
            .stdout
            .starts_with("sample.v1 is installed in sample-system;"),
        "{}{}",
        installed.stdout,
        installed.stderr
    );

    // The command shows the path, then installs each bundle when the previous one is ready.
    let upgraded = install("*").await?;
    let shown = upgraded.stderr.find("replaces sample.v2");
    let told: Vec<_> = upgraded
        .stdout
        .lines()
        .filter(|line| line.contains(" is installed in "))
        .collect();
    anyhow::ensure!(
        upgraded.succeeded && shown.is_some() && told.len() == 2 && told[0].starts_with("sample.v2 "),
        "{}{}",
        upgraded.stdout,
        upgraded.stderr
    );
    let object = get(&cluster.client, sample::BUNDLE_DEPLOYMENT).await?;
    let object = object.context("the BundleDeployment does not exist")?;
    anyhow::ensure!(
        text(&object, "/status/installed/name") == last.0
            && text(&object, "/status/installed/image") == images[images.len() - 1]
            && object["status"]["installed"]["revision"] == 3,
        "{}",
        object["status"]
    );
    let settled = install("*").await?;
    anyhow::ensure!(
        settled.succeeded
            && settled
                .stderr
                .contains("sample.v2.1 is already the newest matching version"),
        "{}{}",
        settled.stdout,
        settled.stderr
    );
    Ok(())
}

pub(super) async fn a_catalog_channel_is_installed_bundle_by_bundle(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let authority = TestAuthority::new("Registry CA");
    let registry = TestRegistry::start_with(&authority.server(&["127.0.0.1"])).await;
    let images = store_bundles(&registry)?;
    let publish = |bundles: &[Bundle]| publish(&registry, bundles, &images);
    publish(&BUNDLES[..1])?;
    let operator = start_with_registry(cluster, &authority)?;
    let running = operator.start()?;
    let reference = registry.image("catalog").to_string();
    let authorities = cluster.operator.bundle_dir.join(AUTHORITIES);
    let arguments = [
        "install",
        "sample",
        "--namespace",
        sample::NAMESPACE,
        "--catalog",
        &reference,
    ];
    let following = ["--follow", "--registry-ca", argument(&authorities)?];
    let said = cluster
        .command
        .succeed(&[&arguments[..], &following].concat())
        .await?;
    anyhow::ensure!(
        said.starts_with("sample.v1 is installed in sample-system;"),
        "{said}"
    );
    wait_until_installed(cluster, 0, 1, &images).await?;

    let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
    load.at_least(50).await?;
    publish(&BUNDLES[..2])?;
    until("the next install has started", PATIENCE, async || {
        let object = deployment(cluster).await?;
        let has_begun =
            object["status"]["next"]["revision"] == 2 || object["status"]["installed"]["revision"] == 2;
        Ok(check(has_begun, || conditions(&object)))
    })
    .await?;
    // A started install continues from its record.
    registry.fail(|_, _| Some(response(503, "")));
    running.kill().await?;
    let _running = operator.start()?;
    wait_until_installed(cluster, 1, 2, &images).await?;
    until(
        "the install continues without the catalog",
        PATIENCE,
        async || {
            let object = deployment(cluster).await?;
            let words = conditions(&object);
            let says = words.contains("Accepted=True RegistryUnavailable")
                && words.contains("continuing from the record of revision 2")
                && current(&object, "Ready", "True").is_some();
            Ok(check(says, || words))
        },
    )
    .await?;

    publish(&BUNDLES)?;
    registry.fail(|_, _| None);
    let object = wait_until_installed(cluster, 2, 3, &images).await?;
    traffic::finish(load).await?;
    let catalog = &object["status"]["catalog"];
    anyhow::ensure!(
        catalog["channel"] == "stable" && catalog.get("path").is_none(),
        "another bundle follows: {catalog}"
    );
    let history: Vec<_> = object::items(&object, "/status/history")
        .iter()
        .map(|revision| text(revision, "/name"))
        .collect();
    anyhow::ensure!(
        history == ["sample.v2", "sample.v1"],
        "a bundle was skipped: {history:?}"
    );

    // Without a path, the installed bundle is kept.
    let wanted = json!({"spec": {"source": {"catalog": {"version": ">=9"}}}});
    succeed(&cluster.client, "PATCH", sample::BUNDLE_DEPLOYMENT, Some(&wanted)).await?;
    let stopped =
        upgrade::wait_until_stopped(cluster, "VersionMissing", "spec.source.catalog.version").await?;
    anyhow::ensure!(
        stopped["status"]["installed"]["revision"] == 3 && stopped["status"]["installed"]["healthy"] == true,
        "the installed bundle was changed: {}",
        stopped["status"]
    );
    for (field, value, reason) in [
        ("version", "newest", "SourceInvalid"),
        ("package", "others", "OtherPackage"),
    ] {
        let wrong = json!({"spec": {"source": {"catalog": {"version": null, (field): value}}}});
        succeed(&cluster.client, "PATCH", sample::BUNDLE_DEPLOYMENT, Some(&wrong)).await?;
        upgrade::wait_until_stopped(cluster, reason, &format!("spec.source.catalog.{field}")).await?;
    }
    let right = json!({"spec": {"source": {"catalog": {"version": null, "package": "sample"}}}});
    succeed(&cluster.client, "PATCH", sample::BUNDLE_DEPLOYMENT, Some(&right)).await?;
    ready(&cluster.client, "sample", PATIENCE).await?;
    Ok(())
}

pub(super) async fn a_catalog_bundle_waits_for_its_approval(cluster: &TestCluster) -> anyhow::Result<()> {
    let authority = TestAuthority::new("Registry CA");
    let registry = TestRegistry::start_with(&authority.server(&["127.0.0.1"])).await;
    let images = store_bundles(&registry)?;
    let publish = |bundles: &[Bundle]| publish(&registry, bundles, &images);
    publish(&BUNDLES[..1])?;
    let _running = start_with_registry(cluster, &authority)?.start()?;
    let object = json!({
        "apiVersion": "windlass.dev/v1alpha1", "kind": "BundleDeployment", "metadata": {"name": "sample"},
        "spec": {"namespace": sample::NAMESPACE, "source": {"catalog": {
            "ref": registry.image("catalog").to_string(), "package": "sample", "approval": "Manual",
        }}},
    });
    succeed(&cluster.client, "POST", BUNDLE_DEPLOYMENTS, Some(&object)).await?;
    let how = "run windlass catalog approve sample 1.0.0";
    let stopped = upgrade::wait_until_stopped(cluster, "WaitingForApproval", how).await?;
    anyhow::ensure!(
        text(&stopped, "/status/next/name") == "sample.v1",
        "{}",
        stopped["status"]
    );
    let approve = async |version: &str| {
        let arguments = ["catalog", "approve", "sample", version];
        cluster.command.run(&arguments, |_| {}).await
    };
    let approved = approve("1.0.0").await?;
    anyhow::ensure!(approved.succeeded, "{}", approved.stderr);
    wait_until_installed(cluster, 0, 1, &images).await?;

    publish(&BUNDLES[..2])?;
    wait_for_approval(cluster, "sample.v2").await?;
    let shown = cluster.command.succeed(&["status", "sample"]).await?;
    anyhow::ensure!(
        shown.contains(
            "channel stable: sample.v2 (replaces sample.v1); run windlass catalog approve sample 2.0.0"
        ),
        "{shown}"
    );
    let refused = approve("9.9.9").await?;
    anyhow::ensure!(
        !refused.succeeded && refused.stderr.contains("9.9.9 is not the next bundle"),
        "{}",
        refused.stderr
    );

    // When the approval arrives, another bundle is next, which was not approved.
    let skipping: [Bundle; 2] = [BUNDLES[0], ("sample.v2.1", "2.1.0", Some("sample.v1"))];
    publish(&skipping)?;
    let before = wait_for_approval(cluster, "sample.v2.1").await?;
    let annotation = json!({"metadata": {"annotations": {(names::APPROVE): "sample.v2"}}});
    succeed(
        &cluster.client,
        "PATCH",
        sample::BUNDLE_DEPLOYMENT,
        Some(&annotation),
    )
    .await?;
    // The same entries in another order are another catalog, which is read after the annotation.
    publish(&[skipping[1], skipping[0]])?;
    until("the catalog is read again", PATIENCE, async || {
        let catalog = wait_for_approval(cluster, "sample.v2.1").await?;
        Ok(check(catalog["digest"] != before["digest"], || {
            catalog.to_string()
        }))
    })
    .await?;

    let approved = approve("2.1.0").await?;
    anyhow::ensure!(approved.succeeded, "{}", approved.stderr);
    wait_until_installed(cluster, 2, 2, &images).await?;
    until("the approval is removed", PATIENCE, async || {
        let catalog = deployment(cluster).await?["status"]["catalog"].clone();
        let used = text(&catalog, "/approved").starts_with("sample.v2.1@sha256:");
        Ok(check(used, || catalog.to_string()))
    })
    .await
}

async fn deployment(cluster: &TestCluster) -> anyhow::Result<Value> {
    let object = get(&cluster.client, sample::BUNDLE_DEPLOYMENT).await?;
    object.context("no BundleDeployment")
}

/// Waits until a bundle is installed as this revision, from its image by digest.
async fn wait_until_installed(
    cluster: &TestCluster,
    place: usize,
    revision: i64,
    images: &[String],
) -> anyhow::Result<Value> {
    let (bundle, ..) = BUNDLES[place];
    let object = until(&format!("{bundle} is installed"), PATIENCE, async || {
        let object = deployment(cluster).await?;
        let is_there =
            text(&object, "/status/installed/name") == bundle && current(&object, "Ready", "True").is_some();
        Ok(if is_there {
            Ok(object)
        } else {
            Err(conditions(&object))
        })
    })
    .await?;
    anyhow::ensure!(
        object["status"]["installed"]["image"] == images[place]
            && object["status"]["installed"]["revision"] == revision,
        "{}",
        object["status"]
    );
    Ok(object)
}

/// Waits until `next` waits for approval while the installed bundle is ready. Returns the status of the
/// catalog.
async fn wait_for_approval(cluster: &TestCluster, next: &str) -> anyhow::Result<Value> {
    until(&format!("{next} waits for an approval"), PATIENCE, async || {
        let object = deployment(cluster).await?;
        let waits = current(&object, "Progressing", "False").is_some_and(|condition| {
            condition["reason"] == "WaitingForApproval" && text(condition, "/message").starts_with(next)
        });
        let catalog = &object["status"]["catalog"];
        let is_shown = catalog["path"][0]["name"] == next && catalog["waitingForApproval"] == true;
        let is_ready = current(&object, "Ready", "True").is_some();
        Ok(match waits && is_shown && is_ready {
            true => Ok(catalog.clone()),
            false => Err(format!("{catalog}: {}", conditions(&object))),
        })
    })
    .await
}

/// Stores all bundles, and returns the digests of their images.
fn store_bundles(registry: &TestRegistry) -> anyhow::Result<Vec<String>> {
    let images = BUNDLES.iter().map(|(bundle, ..)| {
        let packed = match *bundle {
            "sample.v2.1" => later_bundle()?,
            bundle => packed(bundle)?,
        };
        let digest = registry.store(bundle, &packed);
        Ok(registry.image(bundle).with_digest(digest).to_string())
    });
    images.collect()
}

/// Points the catalog's tag to a catalog with these bundles.
fn publish(registry: &TestRegistry, bundles: &[Bundle], images: &[String]) -> anyhow::Result<()> {
    let files = BTreeMap::from([(
        "configs/sample/catalog.json".to_owned(),
        catalog(bundles, images).into_bytes(),
    )]);
    registry.store("catalog", &PackedImage::new(&files, &BTreeMap::new())?);
    Ok(())
}

/// A catalog with some of the bundles and their images.
fn catalog(bundles: &[Bundle], images: &[String]) -> String {
    let mut blobs = vec![json!({"schema": "olm.package", "name": "sample", "defaultChannel": "stable"})];
    let mut entries = Vec::new();
    for (bundle, version, replaces) in bundles {
        let place = BUNDLES.iter().position(|(known, ..)| known == bundle);
        let image = place.map(|place| &images[place]);
        entries.push(json!({"name": bundle, "replaces": replaces}));
        blobs.push(json!({
            "schema": "olm.bundle", "package": "sample", "name": bundle, "image": image,
            "properties": [{"type": "olm.package", "value": {"packageName": "sample", "version": version}}],
        }));
    }
    blobs.push(json!({"schema": "olm.channel", "package": "sample", "name": "stable", "entries": entries}));
    let blobs: Vec<_> = blobs.iter().map(ToString::to_string).collect();
    blobs.join("\n")
}

/// The bundle `sample.v2` with a later version.
fn later_bundle() -> anyhow::Result<PackedImage> {
    let mut files = windlass_bundle::sources::load(&sample::bundle("sample.v2"))?;
    let csv = files.get_mut("manifests/sample.clusterserviceversion.yaml");
    let csv = csv.context("the sample has no ClusterServiceVersion")?;
    let mut text = String::from_utf8(std::mem::take(csv))?;
    for (from, to) in [
        ("replaces: sample.v1", "replaces: sample.v2"),
        ("  name: sample.v2\n", "  name: sample.v2.1\n"),
        ("version: 2.0.0", "version: 2.1.0"),
    ] {
        anyhow::ensure!(text.contains(from), "{from} is not in the sample");
        text = text.replace(from, to);
    }
    *csv = text.into_bytes();
    Ok(PackedImage::new(&files, &BTreeMap::new())?)
}
