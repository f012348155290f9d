//! Runs `windlass catalog` on folders, and on images in a registry in this process.

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Output,
};

use catalog::{CatalogFormat, GeneratedCatalog};
use oci::PackedImage;
use serde_json::Value;
use tempfile::TempDir;
use test_authority::TestAuthority;
use test_registry::{TestRegistry, response};
use tokio::process::Command;

const WIDGETS: &str = r"---
schema: olm.package
name: widgets
defaultChannel: stable
description: |-
  Makes widgets.
  And more.
---
schema: olm.channel
package: widgets
name: stable
entries:
- {name: widgets.v1.0.0}
- {name: widgets.v1.1.0, replaces: widgets.v1.0.0}
- {name: widgets.v1.2.0, replaces: widgets.v1.1.0}
- {name: widgets.v2.0.0, replaces: widgets.v1.2.0, skipRange: '>=1.1.0 <2.0.0'}
---
schema: olm.deprecations
package: widgets
entries:
- {reference: {schema: olm.bundle, name: widgets.v1.0.0}, message: It leaks.}
";

fn bundle(version: &str) -> String {
    format!(
        "---\nschema: olm.bundle\npackage: widgets\nname: widgets.v{version}\nimage: quay.io/widgets/bundle@sha256:{}\n\
         properties: [{{type: olm.package, value: {{packageName: widgets, version: {version}}}}}]\n",
        version.replace('.', "").repeat(22).get(..64).unwrap()
    )
}

fn widgets() -> String {
    let bundles = ["1.0.0", "1.1.0", "1.2.0", "2.0.0"].map(bundle);
    format!("{WIDGETS}{}", bundles.concat())
}

/// A temporary folder with a catalog and the other files of a test.
struct CatalogTest {
    folder: TempDir,
}

impl CatalogTest {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = folder.path().join("catalog").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn catalog(&self) -> String {
        self.path("catalog").display().to_string()
    }

    async fn run(&self, catalog: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        command
            .arg("catalog")
            .args(arguments)
            .args(["--catalog", catalog]);
        if self.path("ca.pem").exists() {
            command.arg("--registry-ca").arg(self.path("ca.pem"));
        }
        // Ignores the user's registry credentials, proxies and caches.
        command
            .env("HOME", self.folder.path())
            .env("NO_PROXY", "127.0.0.1");
        for variable in ["REGISTRY_AUTH_FILE", "DOCKER_CONFIG", "XDG_CACHE_HOME"] {
            command.env_remove(variable);
        }
        command.output().await.unwrap()
    }

    async fn succeed(&self, catalog: &str, arguments: &[&str]) -> String {
        let output = self.run(catalog, arguments).await;
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    async fn fail(&self, catalog: &str, arguments: &[&str]) -> String {
        let output = self.run(catalog, arguments).await;
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        stderr(&output)
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Returns the lines with single spaces between words.
fn cells(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.is_empty());
    lines
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect()
}

#[tokio::test]
async fn a_folder_is_listed_searched_and_shown() {
    let test = CatalogTest::new(&[
        ("widgets/catalog.yaml", &widgets()),
        ("README.md", "# Not a catalog"),
    ]);
    let catalog = test.catalog();
    let package = "widgets 2.0.0 stable 1 Makes widgets.";
    let listed = cells(&test.succeed(&catalog, &["list"]).await);
    assert_eq!(
        listed,
        ["PACKAGE VERSION DEFAULT CHANNEL CHANNELS DESCRIPTION", package]
    );
    assert_eq!(
        cells(&test.succeed(&catalog, &["search", "MAKES"]).await)[1..],
        [package]
    );
    assert_eq!(
        cells(&test.succeed(&catalog, &["search", "gadgets"]).await).len(),
        1
    );
    let bundles = cells(&test.succeed(&catalog, &["list", "widgets"]).await);
    assert_eq!(
        bundles[1..],
        [
            "stable 2.0.0 widgets.v2.0.0 replaces widgets.v1.2.0, follows versions >=1.1.0 <2.0.0 -",
            "stable 1.2.0 widgets.v1.2.0 replaces widgets.v1.1.0 -",
            "stable 1.1.0 widgets.v1.1.0 replaces widgets.v1.0.0 -",
            "stable 1.0.0 widgets.v1.0.0 follows nothing It leaks.",
        ]
    );
    let shown = test.succeed(&catalog, &["show", "widgets"]).await;
    assert_eq!(
        cells(&shown),
        [
            "Package: widgets",
            "Default channel: stable",
            "Makes widgets.",
            "And more.",
            "CHANNEL VERSION HEAD BUNDLES DEPRECATED",
            "stable 2.0.0 widgets.v2.0.0 4 -",
        ]
    );
    let json = test.succeed(&catalog, &["show", "widgets", "-o", "json"]).await;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["channels"][0]["head"], "widgets.v2.0.0");
    let missing = test.fail(&catalog, &["show", "gadgets"]).await;
    assert!(missing.contains("package gadgets not found in"), "{missing}");
}

#[tokio::test]
async fn the_upgrade_path_is_shown() {
    let test = CatalogTest::new(&[("catalog.yaml", &widgets())]);
    let catalog = test.catalog();
    let path = test
        .succeed(&catalog, &["path", "widgets", "--from", "1.0.0"])
        .await;
    let image = |version: &str| {
        let bundle = bundle(version);
        bundle
            .lines()
            .find_map(|line| line.strip_prefix("image: "))
            .unwrap()
            .to_owned()
    };
    assert_eq!(
        cells(&path)[1..],
        [
            "1.1.0 widgets.v1.1.0 replaces widgets.v1.0.0 -".to_owned(),
            "2.0.0 widgets.v2.0.0 follows versions >=1.1.0 <2.0.0 -".to_owned(),
            image("1.1.0"),
            image("2.0.0"),
        ]
    );
    let path = test
        .succeed(&catalog, &["path", "widgets", "--version", "1.1.x", "-o", "json"])
        .await;
    let path: Value = serde_json::from_str(&path).unwrap();
    assert_eq!(path["edges"][0]["image"], image("1.1.0"));
    let settled = test
        .succeed(&catalog, &["path", "widgets", "--from", "2.0.0"])
        .await;
    assert_eq!(
        settled,
        "widgets.v2.0.0 is already the newest matching version that can be reached\n"
    );
    let none = test.fail(&catalog, &["path", "widgets", "--from", "0.9.0"]).await;
    assert!(none.contains("no path leads from widgets.v0.9.0"), "{none}");
    let channel = test
        .fail(&catalog, &["path", "widgets", "--channel", "fast"])
        .await;
    assert!(
        channel.contains("package widgets has no channel fast: it has stable"),
        "{channel}"
    );
}

#[tokio::test]
async fn errors_of_a_catalog_name_file_and_package() {
    let broken =
        "{\"schema\": \"olm.package\", \"name\": \"gadgets\", \"defaultChannel\": \"stable\"}\n{\"schema\": ";
    let test = CatalogTest::new(&[("widgets.yaml", &widgets()), ("gadgets.json", broken)]);
    let catalog = test.catalog();
    assert_eq!(
        test.fail(&catalog, &["list"]).await,
        "gadgets.json:2: the JSON object does not end\n\
         gadgets.json:1: package gadgets: the default channel stable is missing\n"
    );
    let output = test.run(&catalog, &["list"]).await;
    let listed = String::from_utf8(output.stdout).unwrap();
    assert!(
        listed.contains("widgets"),
        "the valid packages are listed: {listed}"
    );
    let empty = CatalogTest::new(&[("README.md", "")]);
    let error = empty.fail(&empty.catalog(), &["list"]).await;
    assert!(error.contains("has no packages: it is not a catalog"), "{error}");
}

async fn registry(test: &CatalogTest) -> TestRegistry {
    let authority = TestAuthority::new("Registry CA");
    fs::write(test.path("ca.pem"), authority.pem()).unwrap();
    TestRegistry::start_with(&authority.server(&["127.0.0.1"])).await
}

fn catalog_image(path: &str, content: Vec<u8>, label: Option<&str>) -> PackedImage {
    let labels = label.map(|folder| {
        (
            "operators.operatorframework.io.index.configs.v1".to_owned(),
            folder.to_owned(),
        )
    });
    let other = ("tmp/cache/pogreb.json".to_owned(), b"not a catalog".to_vec());
    PackedImage::new(
        &BTreeMap::from([(path.to_owned(), content), other]),
        &labels.into_iter().collect(),
    )
    .unwrap()
}

#[tokio::test]
async fn an_image_is_pulled_once() {
    let test = CatalogTest::new(&[]);
    let registry = registry(&test).await;
    for (tag, label, path) in [
        ("v1", None, "configs/widgets/catalog.yaml"),
        ("v2", Some("/fbc/all/"), "fbc/all/widgets.yaml"),
    ] {
        let digest = registry.store(tag, &catalog_image(path, widgets().into_bytes(), label));
        let tagged = registry.image(tag);
        let listed = test.succeed(&tagged.to_string(), &["list"]).await;
        assert!(listed.contains("widgets"), "{listed}");
        // A tag is resolved at the registry again; a digest needs no request.
        let asked = registry.requests().len();
        let shown = test.succeed(&tagged.to_string(), &["show", "widgets"]).await;
        assert!(shown.contains("Makes widgets."), "{shown}");
        let looked = &registry.requests()[asked..];
        assert!(looked.iter().all(|asked| asked.method == "HEAD"));
        let asked = registry.requests().len();
        test.succeed(&tagged.with_digest(digest).to_string(), &["path", "widgets"])
            .await;
        assert_eq!(registry.requests().len(), asked);
    }
}

#[tokio::test]
async fn an_unreadable_image_is_not_cached() {
    let test = CatalogTest::new(&[]);
    let registry = registry(&test).await;
    let image = registry.image("v1").to_string();
    let mut catalog = Vec::new();
    std::io::copy(
        &mut GeneratedCatalog::new(CatalogFormat::Json, 20, 20, 4000),
        &mut catalog,
    )
    .unwrap();
    let packed = catalog_image("configs/catalog.json", catalog, None);
    registry.store("v1", &packed);
    let layer = packed.blobs()[0].clone();
    let path = oci::ContentDigest::compute(&layer).to_string();
    registry.fail(move |head, _| {
        let is_layer = head.uri.path().ends_with(&path);
        is_layer.then(|| response(200, layer.slice(..layer.len() / 2)))
    });
    let error = test.fail(&image, &["list"]).await;
    assert!(error.contains("cannot pull"), "{error}");
    assert!(!Path::new(&test.path(".cache")).exists());
    registry.fail(|_, _| None);
    let listed = test.succeed(&image, &["list", "-o", "json"]).await;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 20);
}
