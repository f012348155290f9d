//! Tests with catalogs as text.

mod channels;
mod paths;
mod reading;

use crate::{CatalogReader, ReadCatalog};

/// Reads a catalog of several files.
fn read(files: &[(&str, &str)]) -> ReadCatalog {
    let mut reader = CatalogReader::default();
    for (file, text) in files {
        reader.read(file, text.as_bytes()).unwrap();
    }
    reader.finish()
}

/// A package with the channel `stable`, whose entries are `(version, predecessors)` in YAML's flow style.
fn package(entries: &[(&str, &str)]) -> String {
    let mut text = "{schema: olm.package, name: widgets, defaultChannel: stable}\n".to_owned();
    let listed: Vec<_> = entries
        .iter()
        .map(|(version, follows)| format!("{{name: widgets.v{version}, {follows}}}"))
        .collect();
    let bundles = entries.iter().map(|(version, _)| {
        format!(
            "--- {{schema: olm.bundle, package: widgets, name: widgets.v{version}, image: 'quay.io/widgets:{version}',\n \
             properties: [{{type: olm.package, value: {{packageName: widgets, version: {version}}}}}]}}\n"
        )
    });
    text += &format!(
        "--- {{schema: olm.channel, package: widgets, name: stable, entries: [{}]}}\n",
        listed.join(", ")
    );
    // A leading flow mapping would be detected as JSON.
    format!("---\n{text}{}", bundles.collect::<String>())
}

fn problems(read: &ReadCatalog) -> Vec<String> {
    read.problems.iter().map(ToString::to_string).collect()
}
