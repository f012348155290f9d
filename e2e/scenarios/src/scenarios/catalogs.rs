//! Bundles that catalogs name, one after the other.

use std::{collections::BTreeMap, fs};

use anyhow::Context as _;
use oci::PackedImage;
use serde_json::json;
use test_authority::TestAuthority;
use test_registry::TestRegistry;

use super::images::{packed, trusting};
use crate::{request::text, sample, steps::get, test_cluster::TestCluster};

/// Bundles with their versions, and what each replaces.
const BUNDLES: [(&str, &str, Option<&str>); 3] = [
    ("sample.v1", "1.0.0", None),
    ("sample.v2", "2.0.0", Some("sample.v1")),
    ("sample.v2.1", "2.1.0", Some("sample.v2")),
];

pub(super) async fn the_command_follows_the_path_of_a_catalog(cluster: &TestCluster) -> anyhow::Result<()> {
    let authority = TestAuthority::new("Registry CA");
    let registry = TestRegistry::start_with(&authority.server(&["127.0.0.1"])).await;
    let mut blobs = vec![json!({"schema": "olm.package", "name": "sample", "defaultChannel": "stable"})];
    let mut entries = Vec::new();
    let mut images = Vec::new();
    for (bundle, version, replaces) in BUNDLES {
        let packed = match bundle {
            "sample.v2.1" => later()?,
            bundle => packed(bundle)?,
        };
        let digest = registry.store(bundle, &packed);
        let image = registry.image(bundle).at(digest).to_string();
        entries.push(json!({"name": bundle, "replaces": replaces}));
        blobs.push(json!({
            "schema": "olm.bundle", "package": "sample", "name": bundle, "image": image,
            "properties": [{"type": "olm.package", "value": {"packageName": "sample", "version": version}}],
        }));
        images.push(image);
    }
    blobs.push(json!({"schema": "olm.channel", "package": "sample", "name": "stable", "entries": entries}));
    let folder = tempfile::tempdir()?;
    let blobs: Vec<_> = blobs.iter().map(ToString::to_string).collect();
    fs::write(folder.path().join("catalog.json"), blobs.join("\n"))?;
    let folder = folder.path().to_str().context("a path that is not UTF-8")?;

    let _running = trusting(cluster, &authority)?.start()?;
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
        "something was written although there is no path"
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

    // The path is shown, then each bundle on it is installed when the one before is ready.
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
    let object = object.context("the BundleDeployment is gone")?;
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
                .contains("sample.v2.1 is the newest that is wanted"),
        "{}{}",
        settled.stdout,
        settled.stderr
    );
    Ok(())
}

/// The bundle `sample.v2` with a later version.
fn later() -> anyhow::Result<PackedImage> {
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
