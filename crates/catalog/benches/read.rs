//! Measures the time and the memory of reading a catalog: `cargo bench -p catalog`.
//!
//! `WINDLASS_BENCH_CATALOG_MIB` is its size in MiB, by default 100.

#![expect(clippy::expect_used, reason = "a failure ends the benchmark")]

use std::{env, io};

use catalog::{CatalogFormat, CatalogReader, GeneratedCatalog, UpgradeRequest};
use divan::{AllocProfiler, Bencher, counter::BytesCount};

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

const PACKAGES: usize = 100;
const BUNDLES: usize = 20;

fn main() {
    divan::main();
}

/// A catalog of the configured size, with 100 packages of 20 bundles.
fn generated(format: CatalogFormat) -> GeneratedCatalog {
    let mebibytes = env::var("WINDLASS_BENCH_CATALOG_MIB").ok();
    let mebibytes: usize = mebibytes.map_or(100, |text| text.parse().expect("the size is a number"));
    GeneratedCatalog::new(
        format,
        PACKAGES,
        BUNDLES,
        (mebibytes << 20) / (PACKAGES * BUNDLES),
    )
}

/// The baseline of the other benchmarks, which also write the catalog.
#[divan::bench(args = [CatalogFormat::Json, CatalogFormat::Yaml], sample_count = 3, sample_size = 1)]
fn generate(bencher: Bencher<'_, '_>, format: CatalogFormat) {
    bencher.bench_local(|| {
        io::copy(&mut generated(format), &mut io::sink()).expect("the generator does not fail")
    });
}

#[divan::bench(args = [CatalogFormat::Json, CatalogFormat::Yaml], sample_count = 3, sample_size = 1)]
fn generate_and_read(bencher: Bencher<'_, '_>, format: CatalogFormat) {
    let bytes = io::copy(&mut generated(format), &mut io::sink()).expect("the generator does not fail");
    bencher.counter(BytesCount::new(bytes)).bench_local(|| {
        let mut reader = CatalogReader::default();
        reader
            .read("catalog", generated(format))
            .expect("the catalog is within the limits");
        let read = reader.finish();
        assert_eq!(
            (read.catalog.packages.len(), read.problems),
            (PACKAGES, Vec::new())
        );
    });
}

#[divan::bench(args = [20, 200, 2000])]
fn resolve(bencher: Bencher<'_, '_>, bundles: usize) {
    let mut reader = CatalogReader::default();
    reader
        .read(
            "catalog",
            GeneratedCatalog::new(CatalogFormat::Json, 1, bundles, 0),
        )
        .expect("the catalog is within the limits");
    let read = reader.finish();
    let installed = catalog::InstalledRelease {
        name: "operator-0.v1.0.0",
        version: read.catalog.packages["operator-0"].bundles["operator-0.v1.0.0"]
            .parsed_version()
            .expect("the version is valid"),
    };
    bencher.bench_local(|| {
        let request = UpgradeRequest {
            installed: Some(installed.clone()),
            ..UpgradeRequest::default()
        };
        let path = read.catalog.packages["operator-0"]
            .resolve(&request)
            .expect("each bundle replaces its predecessor");
        assert_eq!(path.edges.len(), bundles - 1);
    });
}
