//! Catalogs from a registry in this process.

use std::{collections::BTreeMap, sync::Arc};

use oci::{ContentDigest, PackedImage};
use serde_json::json;
use test_registry::{TestRegistry, cut_off, response};
use windlass_api::ImageSource;
use windlass_cluster::{kinds, watch::Watch};

use super::{
    catalogs::{CatalogImage, FollowedCatalog},
    error::{NamedBy, PullError},
    puller::ImagePuller,
    tests::puller,
};
use crate::bundle_deployment::memory::PullFailure;

/// A catalog with packages of one bundle each, as an image.
fn packed(packages: &[&str]) -> PackedImage {
    let blobs = packages.iter().map(|package| {
        format!(
            "{{schema: olm.package, name: {package}, defaultChannel: stable}}\n---\n\
             {{schema: olm.channel, package: {package}, name: stable, entries: [{{name: {package}.v1}}]}}\n---\n\
             {{schema: olm.bundle, package: {package}, name: {package}.v1, image: 'quay.io/{package}:1',\n \
             properties: [{{type: olm.package, value: {{packageName: {package}, version: 1.0.0}}}}]}}\n"
        )
    });
    let text = format!("---\n{}", blobs.collect::<Vec<_>>().join("---\n"));
    let files = BTreeMap::from([("configs/catalog.yaml".to_owned(), text.into_bytes())]);
    PackedImage::new(&files, &BTreeMap::new()).unwrap()
}

async fn follow(
    puller: &Arc<ImagePuller>,
    registry: &TestRegistry,
    name: &str,
    package: &str,
) -> Result<FollowedCatalog, PullError> {
    let reference = registry.image("catalog");
    let wanted = CatalogImage {
        image: ImageSource {
            reference: reference.to_string(),
            pull_secret: None,
        },
        package: package.to_owned(),
    };
    puller.follow(name, &wanted, &reference).await
}

#[tokio::test]
async fn one_reading_of_a_catalog_is_for_all_who_follow_it() {
    let registry = TestRegistry::start().await;
    let digest = registry.store("catalog", &packed(&["widgets", "gadgets", "others"]));
    let puller = puller(&registry, &[]).await;
    for (name, package) in [("a", "widgets"), ("b", "gadgets")] {
        let deployment = json!({
            "apiVersion": "windlass.dev/v1alpha1", "kind": "BundleDeployment", "metadata": {"name": name},
            "spec": {"source": {"catalog": {"ref": "any", "package": package}}},
        });
        puller
            .index
            .apply(&Watch::all(kinds::BUNDLE_DEPLOYMENT), deployment);
    }
    let found = follow(&puller, &registry, "a", "widgets").await.unwrap();
    assert_eq!((&*found.package.name, found.digest), ("widgets", digest));
    let read = registry.count("/blobs/");
    let found = follow(&puller, &registry, "b", "gadgets").await.unwrap();
    assert_eq!(found.package.bundles.keys().collect::<Vec<_>>(), ["gadgets.v1"]);
    assert_eq!(registry.count("/blobs/"), read, "it was read twice");
    // Nobody followed it when the catalog was read.
    follow(&puller, &registry, "c", "others").await.unwrap();
    assert_eq!(registry.count("/blobs/"), 2 * read);
    // The tag leads elsewhere.
    registry.store("catalog", &packed(&["widgets"]));
    follow(&puller, &registry, "a", "widgets").await.unwrap();
    assert_eq!(registry.count("/blobs/"), 3 * read);
}

#[tokio::test]
async fn what_is_wrong_is_said_of_the_package_and_what_is_cut_off_is_asked_for_again() {
    let registry = TestRegistry::start().await;
    let puller = puller(&registry, &[]).await;
    let failure = async |package: &str| {
        let error = follow(&puller, &registry, "a", package).await.unwrap_err();
        PullFailure::of(&error, NamedBy::Catalog)
    };
    let missing = failure("widgets").await;
    assert_eq!(missing.reason, "ImageNotFound");
    assert!(
        missing.message.ends_with("or correct spec.source.catalog.ref"),
        "{}",
        missing.message
    );

    let sound = packed(&["widgets", "gadgets"]);
    registry.store("catalog", &sound);
    let absent = failure("others").await;
    assert_eq!((absent.reason, absent.is_transient), ("PackageMissing", false));
    assert!(
        absent
            .message
            .contains("has no package others; correct spec.source.catalog.package"),
        "{}",
        absent.message
    );

    let broken = BTreeMap::from([(
        "configs/catalog.json".to_owned(),
        br#"{"schema": "olm.package", "name": "widgets", "defaultChannel": "none"}"#.to_vec(),
    )]);
    registry.store("catalog", &PackedImage::new(&broken, &BTreeMap::new()).unwrap());
    let invalid = failure("widgets").await;
    assert_eq!((invalid.reason, invalid.is_transient), ("CatalogInvalid", false));
    assert!(invalid.message.contains("package widgets"), "{}", invalid.message);

    registry.store("catalog", &sound);
    let layer = ContentDigest::compute(sound.blobs()[0]).to_string();
    let start = sound.blobs()[0].slice(..20);
    let length = sound.blobs()[0].len();
    let part = layer.clone();
    registry.fail(move |head, _| {
        head.uri
            .path()
            .contains(&part)
            .then(|| cut_off(start.clone(), length))
    });
    let cut = failure("widgets").await;
    assert!(cut.is_transient && cut.reason != "CatalogInvalid", "{cut:?}");
    registry.fail(move |head, _| head.uri.path().contains(&layer).then(|| response(503, "")));
    let refused = failure("widgets").await;
    assert_eq!(
        (refused.reason, refused.is_transient),
        ("RegistryUnavailable", true)
    );
}
