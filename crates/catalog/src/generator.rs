//! Catalogs of any size, for tests and benchmarks.

use std::io::{self, Read};

use serde_json::{Value, json};

/// A catalog that is generated during reading, so that even a large one needs no memory.
///
/// Its packages are `operator-0` and so on, each with the channel `stable`, in which versions 1.0.0, 1.1.0
/// and so on replace each other.
#[derive(Clone, Debug)]
pub struct GeneratedCatalog {
    format: CatalogFormat,
    packages: usize,
    bundles: usize,
    manifests: usize,
    /// The next blob to write.
    next: usize,
    written: Vec<u8>,
    at: usize,
}

/// JSON or YAML.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CatalogFormat {
    /// The format of `opm render`.
    Json,
    /// The format of `opm render --output yaml`, but with JSON values.
    Yaml,
}

impl GeneratedCatalog {
    /// Creates a catalog with this number of packages, of bundles per package, and of bytes of manifests per
    /// bundle.
    pub fn new(format: CatalogFormat, packages: usize, bundles: usize, manifests: usize) -> Self {
        Self {
            format,
            packages,
            bundles,
            manifests,
            next: 0,
            written: Vec::new(),
            at: 0,
        }
    }

    /// The blobs of a package: itself, its channel, its bundles.
    fn blob(&self, package: usize, index: usize) -> Value {
        let name = format!("operator-{package}");
        match index {
            0 => {
                json!({"schema": "olm.package", "name": name, "defaultChannel": "stable", "description": "Operates things."})
            }
            1 => json!({"schema": "olm.channel", "package": name, "name": "stable",
                "entries": (0..self.bundles).map(|minor| entry(&name, minor)).collect::<Vec<_>>()}),
            _ => self.bundle(&name, index - 2),
        }
    }

    fn bundle(&self, package: &str, minor: usize) -> Value {
        // A few kilobytes each, like the manifests of a bundle.
        const MANIFEST: usize = 16 << 10;
        let object = |length: usize| json!({"type": "olm.bundle.object", "value": {"data": "bWFuaWZlc3Q9".repeat(length.div_ceil(12))}});
        let mut properties = vec![
            json!({"type": "olm.package", "value": {"packageName": package, "version": format!("1.{minor}.0")}}),
        ];
        let mut left = self.manifests;
        while left > 0 {
            properties.push(object(left.min(MANIFEST)));
            left = left.saturating_sub(MANIFEST);
        }
        json!({"schema": "olm.bundle", "package": package, "name": format!("{package}.v1.{minor}.0"),
            "image": format!("quay.io/generated/{package}:1.{minor}.0"), "properties": properties,
            "relatedImages": [{"name": "operator", "image": format!("quay.io/generated/{package}-operator:1.{minor}.0")}]})
    }

    fn write(&self, blob: &Value) -> Vec<u8> {
        let pretty = |value: &Value| serde_json::to_string_pretty(value).unwrap_or_default();
        let text = match (self.format, blob.as_object()) {
            (CatalogFormat::Yaml, Some(fields)) => {
                let fields = fields
                    .iter()
                    .map(|(name, value)| format!("{name}: {}\n", pretty(value).replace('\n', "\n  ")));
                format!("---\n{}", fields.collect::<String>())
            }
            _ => format!("{}\n", pretty(blob)),
        };
        text.into_bytes()
    }
}

fn entry(package: &str, minor: usize) -> Value {
    let name = |minor: usize| format!("{package}.v1.{minor}.0");
    match minor.checked_sub(1) {
        Some(before) => {
            json!({"name": name(minor), "replaces": name(before), "skipRange": format!(">=1.{before}.0 <1.{minor}.0")})
        }
        None => json!({"name": name(minor)}),
    }
}

impl Read for GeneratedCatalog {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.written.len() {
            let blobs = self.bundles + 2;
            if self.next == self.packages * blobs {
                return Ok(0);
            }
            let blob = self.blob(self.next / blobs, self.next % blobs);
            self.written = self.write(&blob);
            self.at = 0;
            self.next += 1;
        }
        let read = (&self.written[self.at..]).read(buffer)?;
        self.at += read;
        Ok(read)
    }
}
