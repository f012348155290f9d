//! Writes a generated catalog of any size to standard output: `cargo run -p catalog --features generator
//! --example generate -- json 1024 > catalog/catalog.json`

use std::{env, io, process::ExitCode};

use catalog::{CatalogFormat, GeneratedCatalog};

/// The same numbers as in `benches/read.rs`.
const PACKAGES: usize = 100;
const BUNDLES: usize = 20;

fn main() -> io::Result<ExitCode> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (format, mebibytes) = match arguments.as_slice() {
        [format, mebibytes] => (format.as_str(), mebibytes.parse::<usize>()),
        _ => ("", "".parse()),
    };
    let (format, Ok(mebibytes)) = (
        match format {
            "json" => CatalogFormat::Json,
            "yaml" => CatalogFormat::Yaml,
            _ => return Ok(usage()),
        },
        mebibytes,
    ) else {
        return Ok(usage());
    };
    let manifests = (mebibytes << 20) / (PACKAGES * BUNDLES);
    let mut catalog = GeneratedCatalog::new(format, PACKAGES, BUNDLES, manifests);
    io::copy(&mut catalog, &mut io::stdout().lock())?;
    Ok(ExitCode::SUCCESS)
}

fn usage() -> ExitCode {
    eprintln!("usage: generate json|yaml MEBIBYTES");
    ExitCode::from(2)
}
