//! Runs `windlass bundle` with a registry in this process.

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::Output,
};

use tempfile::TempDir;
use test_authority::TestAuthority;
use test_registry::{TestRegistry, response, with_header};
use tokio::process::Command;

const PASSWORD: &str = "kept out of every message";

/// A registry, and a folder with the CA of its certificate.
struct ImageTest {
    registry: TestRegistry,
    folder: TempDir,
}

impl ImageTest {
    async fn new() -> Self {
        let authority = TestAuthority::new("Registry CA");
        let registry = TestRegistry::start_with(&authority.server(&["127.0.0.1"])).await;
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("ca.pem"), authority.pem()).unwrap();
        Self { registry, folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn image(&self, tag: &str) -> String {
        self.registry.image(tag).to_string()
    }

    async fn run(&self, arguments: &[&str]) -> Output {
        self.windlass(&[&["bundle"], arguments].concat()).await
    }

    async fn windlass(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        command.args(arguments);
        command.arg("--registry-ca").arg(self.path("ca.pem"));
        // Ignores the user's registry credentials and proxies.
        command
            .env("HOME", self.folder.path())
            .env("NO_PROXY", "127.0.0.1");
        command
            .env_remove("REGISTRY_AUTH_FILE")
            .env_remove("DOCKER_CONFIG");
        command.output().await.unwrap()
    }

    async fn succeed(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments).await;
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    async fn fail(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments).await;
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        stderr(&output)
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn sample(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("bundles").join(name);
    path.to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_pushed_bundle_is_shown_and_pulled_unchanged() {
    let bench = ImageTest::new().await;
    let (image, bundle) = (bench.image("v1"), sample("sample.v1"));
    let pushed = bench.succeed(&["push", &bundle, &image]).await;
    assert_eq!(
        bench.succeed(&["push", &bundle, &image]).await,
        pushed,
        "the same bundle"
    );
    let by_digest = pushed.trim_end();
    assert!(by_digest.contains("/team/app@sha256:"), "{by_digest}");

    let shown = bench.succeed(&["show", &image]).await;
    assert!(shown.contains("Name:     sample.v1\n"), "{shown}");
    assert!(shown.contains(&format!("Image:    {by_digest}\n")), "{shown}");
    let here = bench.succeed(&["show", &bundle]).await;
    assert!(shown.starts_with(&here), "the same digest: {here}");
    let json = bench.succeed(&["show", by_digest, "-o", "json"]).await;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&json["name"], &json["image"]),
        (&"sample.v1".into(), &by_digest.into())
    );

    let folder = bench.path("pulled");
    let pulled = bench.succeed(&["pull", &image, folder.to_str().unwrap()]).await;
    assert_eq!(pulled, pushed);
    let read = |path: &Path| windlass_bundle::sources::load(path).unwrap();
    assert_eq!(read(&folder), read(Path::new(&bundle)));
}

#[tokio::test]
async fn a_failed_command_leaves_no_files_and_reports_the_cause() {
    let bench = ImageTest::new().await;
    let folder = bench.path("pulled");
    let folder = folder.to_str().unwrap();
    let missing = bench.fail(&["pull", &bench.image("missing"), folder]).await;
    assert!(missing.contains("is not found on"), "{missing}");
    let nowhere = bench.path("nowhere").display().to_string();
    let broken = bench.fail(&["push", &nowhere, &bench.image("v1")]).await;
    assert!(broken.contains("nowhere"), "{broken}");
    let own = bench.folder.path().to_str().unwrap();
    let full = bench.fail(&["pull", &bench.image("missing"), own]).await;
    assert!(full.contains("is not empty"), "{full}");
    let left: Vec<_> = fs::read_dir(own)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["ca.pem"]);
    assert_eq!(
        bench.run(&["pull", "no:ref:erence", folder]).await.status.code(),
        Some(2)
    );
}

#[tokio::test]
async fn credentials_of_docker_login_are_used_and_not_printed() {
    let bench = ImageTest::new().await;
    bench.registry.fail(|head, _| {
        if head.headers.contains_key("authorization") {
            return None;
        }
        Some(with_header(
            response(401, "{}"),
            "www-authenticate",
            r#"Basic realm="test""#,
        ))
    });
    let (image, bundle) = (bench.image("v1"), sample("sample.v1"));
    let refused = bench.fail(&["push", &bundle, &image]).await;
    let advice = format!(
        "; run docker login {}, or specify a file with --authfile",
        bench.registry.host()
    );
    assert!(
        refused.contains("requires credentials") && refused.contains(&advice),
        "{refused}"
    );
    let helped = bench.path("helped.json");
    let helpers = serde_json::json!({"credHelpers": {bench.registry.host(): "pass"}});
    fs::write(&helped, helpers.to_string()).unwrap();
    let helped = helped.to_str().unwrap();
    let refused = bench.fail(&["push", &bundle, &image, "--authfile", helped]).await;
    assert!(
        refused.contains("; credential helper docker-credential-pass is not supported: "),
        "{refused}"
    );
    let auths =
        serde_json::json!({"auths": {bench.registry.host(): {"username": "u", "password": PASSWORD}}});
    fs::create_dir(bench.path(".docker")).unwrap();
    fs::write(bench.path(".docker/config.json"), auths.to_string()).unwrap();
    bench.succeed(&["push", &bundle, &image]).await;
    bench.registry.fail(|_, _| {
        Some(with_header(
            response(401, "{}"),
            "www-authenticate",
            r#"Basic realm="test""#,
        ))
    });
    let refused = bench.fail(&["show", &image]).await;
    assert!(refused.contains("does not accept the credentials"), "{refused}");
    assert!(!refused.contains(PASSWORD), "{refused}");
}

#[tokio::test]
async fn a_bundle_image_is_rendered_like_a_local_bundle() {
    let bench = ImageTest::new().await;
    let (image, bundle) = (bench.image("v1"), sample("sample.v1"));
    bench.succeed(&["push", &bundle, &image]).await;
    let render = async |bundle: &str| {
        let output = bench
            .windlass(&["render", bundle, "--namespace", "operators"])
            .await;
        assert!(output.status.success(), "{}", stderr(&output));
        output.stdout
    };
    let rendered = render(&image).await;
    assert!(!rendered.is_empty());
    assert!(rendered == render(&bundle).await, "{image} and {bundle} differ");
}

#[tokio::test]
async fn an_argument_that_is_neither_path_nor_image_is_rejected_with_advice() {
    let bench = ImageTest::new().await;
    for command in ["install", "render"] {
        let refused = bench
            .windlass(&[command, "team/app:v1", "--namespace", "operators"])
            .await;
        assert_eq!(refused.status.code(), Some(2), "{command}");
        let said = stderr(&refused);
        assert!(said.contains("team/app:v1 not found"), "{said}");
        assert!(
            said.contains("write ./team/app:v1 or REGISTRY/team/app:v1"),
            "{said}"
        );
    }
    let folder = sample("sample.v1");
    let arguments = [
        "install",
        &folder,
        "--namespace",
        "operators",
        "--pull-secret",
        "pull",
    ];
    let refused = bench.windlass(&arguments).await;
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        stderr(&refused).contains("is not an image: omit --pull-secret"),
        "{}",
        stderr(&refused)
    );
}
