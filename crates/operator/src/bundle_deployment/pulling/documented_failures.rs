//! What users are told of each image that cannot be pulled is what docs/images.md says.

use std::{collections::BTreeMap, path::Path};

use oci::{
    ContentDigest, ImageReference, PackedImage,
    manifest::{IMAGE_MANIFEST, LAYER_GZIP},
};
use serde_json::{Value, json};
use tar::{Builder, EntryType, Header};
use test_authority::TestAuthority;
use test_registry::{TestRegistry, response, stalled, with_header};

use super::{
    puller::{ImagePuller, SECRET_TYPE},
    tests::{SECRET, failure, packed, puller_by, secret, wanted},
};

/// Where the table is.
const DOCUMENT: &str = "docs/images.md";

/// A registry that is asked without TLS, and the lines of the table.
struct FailureTable {
    registry: TestRegistry,
    lines: Vec<String>,
}

impl FailureTable {
    /// Notes what is said when `reference` is pulled.
    async fn add(
        &mut self,
        what: &str,
        puller: &ImagePuller,
        reference: &ImageReference,
        secret: Option<&str>,
    ) {
        let failure = failure(puller, &wanted(reference, secret)).await;
        let message = self.anonymous(&failure.message);
        assert!(!message.contains("hunter2"), "{message}");
        let again = if failure.is_transient { "yes" } else { "no" };
        self.lines
            .push(format!("| {what} | `{}` | {again} | {message} |", failure.reason));
    }

    /// The same for `tag` of the registry, as it is by default.
    async fn add_tag(&mut self, what: &str, tag: &str) {
        let puller = puller_by(&self.insecure(), &[]).await;
        let image = self.registry.image(tag);
        self.add(what, &puller, &image, None).await;
    }

    /// The same with a Secret that holds `content`.
    async fn add_with_secret(&mut self, what: &str, content: &Value) {
        let content = secret(SECRET_TYPE, &content.to_string());
        let puller = puller_by(&self.insecure(), &[(SECRET, content)]).await;
        let image = self.registry.image("v1");
        self.add(what, &puller, &image, Some("pull")).await;
    }

    fn insecure(&self) -> String {
        format!(
            "[[registry]]\nlocation = {:?}\ninsecure = true\n",
            self.registry.host()
        )
    }

    /// Stores an image with one layer.
    fn store(&self, tag: &str, layer: Vec<u8>, media_type: &str) {
        let descriptor = |media_type: &str, content: &[u8]| json!({"mediaType": media_type, "digest": ContentDigest::compute(content), "size": content.len()});
        let manifest = json!({
            "schemaVersion": 2, "mediaType": IMAGE_MANIFEST,
            "config": descriptor("application/vnd.oci.image.config.v1+json", b"{}"),
            "layers": [descriptor(media_type, &layer)],
        });
        self.registry.store_blob(&b"{}".as_slice().into());
        self.registry.store_blob(&layer.into());
        let manifest = manifest.to_string().into_bytes();
        self.registry.store_manifest(tag, IMAGE_MANIFEST, manifest.into());
    }

    /// Without ports and digests, which are others each time.
    fn anonymous(&self, message: &str) -> String {
        let named = message.replace(&self.registry.host(), "registry.example.com");
        let mut anonymous = String::new();
        let mut rest = named.as_str();
        while let Some((before, digest)) = rest.split_once("sha256:") {
            anonymous.push_str(before);
            anonymous.push_str("sha256:…");
            rest = digest.trim_start_matches(|digit: char| digit.is_ascii_hexdigit());
        }
        anonymous.push_str(rest);
        anonymous
    }
}

/// A layer with one entry, written as it is: `tar` refuses to write what strangers write.
fn layer(path: &str, kind: EntryType, target: &str) -> Vec<u8> {
    let mut header = Header::new_gnu();
    let fields = header.as_gnu_mut().unwrap();
    fields.name[..path.len()].copy_from_slice(path.as_bytes());
    fields.linkname[..target.len()].copy_from_slice(target.as_bytes());
    header.set_entry_type(kind);
    header.set_size(0);
    header.set_cksum();
    let mut archive = Builder::new(Vec::new());
    archive.append(&header, [].as_slice()).unwrap();
    archive.into_inner().unwrap()
}

const PLAIN: &str = "application/vnd.oci.image.layer.v1.tar";

#[tokio::test]
async fn what_is_documented_is_what_is_said() {
    let mut table = FailureTable {
        registry: TestRegistry::start().await,
        lines: Vec::new(),
    };
    let good = packed("one");
    table.registry.store("v1", &good);
    of_images(&mut table, &good).await;
    of_layers(&mut table).await;
    of_answers(&mut table).await;
    of_credentials(&mut table).await;
    of_other_registries(&mut table).await;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(DOCUMENT);
    let document = std::fs::read_to_string(path).unwrap();
    let expected = table.lines.join("\n");
    assert!(
        document.contains(&format!("\n{expected}\n\n")),
        "{DOCUMENT} must say\n{expected}"
    );
}

async fn of_images(table: &mut FailureTable, good: &PackedImage) {
    table.add_tag("no such tag", "missing").await;
    let claimed = ContentDigest::compute(b"something else");
    let manifest = good.manifest().clone();
    table
        .registry
        .store_manifest(claimed.as_str(), IMAGE_MANIFEST, manifest);
    let puller = puller_by(&table.insecure(), &[]).await;
    let image = table.registry.image("v1").with_digest(claimed);
    table
        .add("content that does not match the digest", &puller, &image, None)
        .await;
    let helm = "application/vnd.cncf.helm.config.v1+json";
    table
        .registry
        .store_manifest("chart", helm, b"{}".as_slice().into());
    table.add_tag("not an image", "chart").await;
    let large = json!({
        "schemaVersion": 2,
        "config": {"mediaType": "a", "digest": ContentDigest::compute(b"{}"), "size": 2},
        "layers": [{"mediaType": LAYER_GZIP, "digest": ContentDigest::compute(b"a"), "size": 1_u64 << 30}],
    });
    let large = large.to_string().into_bytes();
    table
        .registry
        .store_manifest("large", IMAGE_MANIFEST, large.into());
    table.add_tag("more than 128 MiB", "large").await;
}

async fn of_layers(table: &mut FailureTable) {
    let zeros = BTreeMap::from([("manifests/a".to_owned(), vec![0; 8 << 20])]);
    let bomb = PackedImage::new(&zeros, &BTreeMap::new()).unwrap();
    table.registry.store("bomb", &bomb);
    table
        .add_tag("a layer that unpacks to a much larger size", "bomb")
        .await;
    let (file, symlink, hard_link) = (EntryType::Regular, EntryType::Symlink, EntryType::Link);
    let broken = b"not what gzip writes".to_vec();
    for (what, tag, layer, media_type) in [
        ("a layer that cannot be unpacked", "broken", broken, LAYER_GZIP),
        ("a layer of another type", "type", vec![], "application/x-rpm"),
        (
            "a path outside of the image",
            "path",
            layer("manifests/../../etc/passwd", file, ""),
            PLAIN,
        ),
        (
            "a link to a file outside of the image",
            "link",
            layer("manifests/a", symlink, "../../etc/passwd"),
            PLAIN,
        ),
        (
            "a hard link to a missing file",
            "hard",
            layer("manifests/a", hard_link, "etc/passwd"),
            PLAIN,
        ),
    ] {
        table.store(tag, layer, media_type);
        table.add_tag(what, tag).await;
    }
}

async fn of_answers(table: &mut FailureTable) {
    table
        .registry
        .fail(|head, _| head.uri.path().contains("/blobs/").then(|| response(200, "cut")));
    table.add_tag("a truncated configuration or layer", "v1").await;
    for status in [403, 500, 418] {
        table.registry.fail(move |_, _| Some(response(status, "")));
        table.add_tag(&format!("HTTP {status}"), "v1").await;
    }
    table
        .registry
        .fail(|_, _| Some(with_header(response(429, ""), "retry-after", "60")));
    table.add_tag("HTTP 429 with `Retry-After`", "v1").await;
    table.registry.fail(|_, _| Some(stalled("{".into(), 100)));
    table.add_tag("a registry that stops sending", "v1").await;
}

async fn of_credentials(table: &mut FailureTable) {
    table.registry.fail(|_, _| {
        let refused = response(401, r#"{"errors":[{"code":"UNAUTHORIZED","message":"hunter2"}]}"#);
        Some(with_header(refused, "www-authenticate", r#"Basic realm="test""#))
    });
    table.add_tag("HTTP 401 without credentials", "v1").await;
    let host = table.registry.host();
    let helped = json!({"credHelpers": {host.clone(): "pass"}});
    table
        .add_with_secret("HTTP 401, with the credentials in a helper", &helped)
        .await;
    let wrong = json!({"auths": {host: {"username": "u", "password": "hunter2"}}});
    table.add_with_secret("HTTP 401 with credentials", &wrong).await;
}

async fn of_other_registries(table: &mut FailureTable) {
    table.registry.fail(|_, _| Some(response(503, "")));
    let host = table.registry.host();
    let image = table.registry.image("v1");
    let mirror = "[[registry.mirror]]\nlocation = \"registry.example.com:0/mirror\"\ninsecure = true";
    let mirror = mirror.replace("registry.example.com:0", &host);
    let puller = puller_by(&format!("{}{mirror}", table.insecure()), &[]).await;
    table
        .add("a mirror and its registry with HTTP 503", &puller, &image, None)
        .await;
    let blocked = format!("[[registry]]\nlocation = {host:?}\nblocked = true\n");
    let puller = puller_by(&blocked, &[]).await;
    table
        .add("a registry that `registries.conf` blocks", &puller, &image, None)
        .await;
    let authority = TestAuthority::new("Another CA");
    let secure = TestRegistry::start_with(&authority.server(&["127.0.0.1"])).await;
    table.registry = secure;
    let image = table.registry.image("v1");
    let puller = puller_by("", &[]).await;
    table.add("a CA that is not trusted", &puller, &image, None).await;
}
