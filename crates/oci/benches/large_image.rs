//! Measures an image of 100 MB unpacked, in many files, with gzip and with zstd: `cargo bench -p oci
//! --features client --bench large_image`. The registry runs in this process, and its memory is part of the
//! baseline. The peak is what Linux reports above the baseline (`clear_refs` and `VmHWM`,
//! proc_pid_status(5)).

#![expect(clippy::expect_used, reason = "a failed setup ends the benchmark")]

use std::{
    fmt::Write as _,
    fs,
    io::Write as _,
    time::{Duration, Instant},
};

use flate2::{Compression, write::GzEncoder};
use oci::{
    ContentDigest, LayerLimits, RegistriesConfig, RegistryClient, RegistryCredentials, RegistryOptions,
    manifest::{IMAGE_CONFIG, IMAGE_MANIFEST, LAYER_GZIP},
};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use serde_json::json;
use tar::{Builder, Header};
use test_authority::TestAuthority;
use test_registry::TestRegistry;

const FILES: usize = 10_000;
const FILE_BYTES: usize = 10_000;
const FOLDER: &str = "configs";
const LAYER_ZSTD: &str = "application/vnd.oci.image.layer.v1.tar+zstd";

/// The number of pulls per image.
const PULLS: usize = 5;

#[tokio::main]
async fn main() {
    let registry = TestRegistry::start().await;
    let client = client(&registry);
    println!("{FILES} files of {FILE_BYTES} bytes");
    for (tag, media_type, pack) in [
        ("gzip", LAYER_GZIP, gzip as fn(&[u8]) -> Vec<u8>),
        ("zstd", LAYER_ZSTD, zstd),
    ] {
        let stored = store(&registry, tag, media_type, pack);
        for _ in 0..PULLS {
            measure(&registry, &client, tag, stored).await;
        }
    }
}

async fn measure(registry: &TestRegistry, client: &RegistryClient, tag: &str, stored: usize) {
    // Resets the peak to the current memory.
    fs::write("/proc/self/clear_refs", "5").expect("Linux resets the peak");
    let idle = memory("VmRSS");
    let started = Instant::now();
    let pulled = client
        .pull(&registry.image(tag), &RegistryCredentials::default())
        .await
        .expect("the image can be pulled");
    let took_pull = started.elapsed();
    let started = Instant::now();
    let limits = LayerLimits {
        bytes: 2 * (FILES * FILE_BYTES) as u64,
        entries: FILES + 1,
    };
    let files = pulled
        .files(&[FOLDER], limits)
        .expect("the image can be unpacked");
    let took_unpack = started.elapsed();
    assert_eq!(files.len(), FILES);
    let peak = memory("VmHWM").saturating_sub(idle);
    println!(
        "  {tag}, stored {:>4.1} MB: pulled in {}, unpacked in {}, peak {:>3} MB above idle ({} MB)",
        stored as f64 / 1e6,
        seconds(took_pull),
        seconds(took_unpack),
        peak / 1_000_000,
        idle / 1_000_000
    );
}

fn seconds(took: Duration) -> String {
    format!("{:.2} s", took.as_secs_f64())
}

fn client(registry: &TestRegistry) -> RegistryClient {
    let insecure = format!("[[registry]]\nlocation = {:?}\ninsecure = true", registry.host());
    let options = RegistryOptions {
        registries: RegistriesConfig::parse("registries.conf", &insecure).expect("the URL is valid"),
        certificate_authorities: TestAuthority::new("Unused").pem().into_bytes(),
        proxies: false,
        ..RegistryOptions::default()
    };
    RegistryClient::new(options).expect("the client has a CA")
}

/// Stores the image and returns the size of its layer.
fn store(registry: &TestRegistry, tag: &str, media_type: &str, pack: fn(&[u8]) -> Vec<u8>) -> usize {
    let layer = pack(&archive());
    let size = layer.len();
    let manifest = json!({
        "schemaVersion": 2, "mediaType": IMAGE_MANIFEST,
        "config": {"mediaType": IMAGE_CONFIG, "digest": ContentDigest::compute(b"{}"), "size": 2},
        "layers": [{"mediaType": media_type, "digest": ContentDigest::compute(&layer), "size": size}],
    });
    registry.store_blob(&b"{}".as_slice().into());
    registry.store_blob(&layer.into());
    registry.store_manifest(tag, IMAGE_MANIFEST, manifest.to_string().into_bytes().into());
    size
}

/// A layer whose files resemble the JSON of a catalog: repeated names, and unique digests.
fn archive() -> Vec<u8> {
    let mut archive = Builder::new(Vec::new());
    let mut state = 1_u64;
    for number in 0..FILES {
        let mut content = String::new();
        while content.len() < FILE_BYTES {
            // xorshift64 (Marsaglia 2003), deterministic.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let _ = writeln!(
                content,
                r#"{{"schema": "olm.bundle", "name": "operator.v1.{number}", "image": "quay.io/operators/bundle@sha256:{state:016x}", "properties": []}}"#
            );
        }
        content.truncate(FILE_BYTES);
        let mut header = Header::new_gnu();
        header.set_size(FILE_BYTES as u64);
        header.set_mode(0o644);
        let path = format!("{FOLDER}/package-{}/bundle-{number}.json", number / 100);
        let appended = archive.append_data(&mut header, path, content.as_bytes());
        appended.expect("writes to memory succeed");
    }
    archive.into_inner().expect("writes to memory succeed")
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content).expect("writes to memory succeed");
    encoder.finish().expect("writes to memory succeed")
}

fn zstd(content: &[u8]) -> Vec<u8> {
    compress_to_vec(content, CompressionLevel::Fastest)
}

/// A memory figure of this process, in bytes.
fn memory(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux reports it");
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|line| {
        line.trim_matches([':', '\t', ' '])
            .trim_end_matches(" kB")
            .parse::<u64>()
            .ok()
    });
    1024 * kib.expect("Linux reports it")
}
