//! Reads streams of blobs.

use std::{collections::BTreeSet, io::Read};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use version_range::{Version, VersionRange};

use crate::{
    blob::{RawBlob, RawText},
    documents::{Documents, DocumentsError},
    limits::CatalogLimits,
    package::{CatalogBundle, CatalogPackage, ChannelEntry, FileBasedCatalog},
    problem::CatalogProblem,
};

/// Reads the files of a catalog one after the other.
///
/// Only one blob is in memory at a time. An invalid blob does not prevent reading the others.
#[derive(Debug, Default)]
pub struct CatalogReader {
    /// The packages to keep; `None` for all.
    only: Option<BTreeSet<String>>,
    limits: CatalogLimits,
    catalog: FileBasedCatalog,
    problems: Vec<CatalogProblem>,
    /// The number of problems beyond the limit.
    more_problems: usize,
    kept: usize,
}

/// The contents of a catalog, and its problems.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadCatalog {
    /// The valid part of the catalog.
    pub catalog: FileBasedCatalog,
    /// Problems of the rest, and of the channels.
    pub problems: Vec<CatalogProblem>,
}

/// The catalog exceeds the memory limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the names and versions of the catalog exceed {} MiB", .0 >> 20)]
pub struct CatalogTooLarge(usize);

/// The location and subject of a blob.
struct Place<'a> {
    place: &'a str,
    package: Option<&'a str>,
    channel: Option<&'a str>,
}

impl CatalogReader {
    /// Creates a reader with these limits.
    pub fn new(limits: CatalogLimits) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    /// Keeps this package and those of earlier calls; skips all others.
    #[must_use]
    pub fn only(mut self, package: &str) -> Self {
        self.only.get_or_insert_default().insert(package.to_owned());
        self
    }

    /// Reads a file; `file` is its name in problems.
    ///
    /// # Errors
    ///
    /// If the memory limit is exceeded; everything else is a problem of the catalog.
    pub fn read(&mut self, file: &str, stream: impl Read) -> Result<(), CatalogTooLarge> {
        let mut documents = Documents::new(stream, self.limits.blob);
        loop {
            match documents.next() {
                Ok(Some(document)) => {
                    let place = format!("{file}:{}", document.line);
                    match RawBlob::parse(&document) {
                        Ok(Some(blob)) => self.add(&place, blob),
                        Ok(None) => {}
                        Err(message) => self.report(&Place::in_file(&place), message),
                    }
                    if self.kept > self.limits.kept {
                        return Err(CatalogTooLarge(self.limits.kept));
                    }
                }
                Ok(None) => return Ok(()),
                Err(error) => self.report_documents(file, &error),
            }
        }
    }

    /// Returns the catalog and all problems.
    pub fn finish(mut self) -> ReadCatalog {
        let packages = std::mem::take(&mut self.catalog.packages);
        for package in packages.values() {
            for problem in package.check() {
                self.push(problem);
            }
        }
        self.catalog.packages = packages;
        if self.more_problems > 0 {
            self.problems.push(CatalogProblem {
                place: "the catalog".to_owned(),
                package: None,
                channel: None,
                message: format!("{} more problems are not shown", self.more_problems),
            });
        }
        ReadCatalog {
            catalog: self.catalog,
            problems: self.problems,
        }
    }

    fn add(&mut self, place: &str, blob: RawBlob) {
        let Some(schema) = blob.schema.text() else {
            let message = "schema is missing: it is the type of the blob, for example olm.bundle";
            return self.report(&Place::in_file(place), message.to_owned());
        };
        match schema {
            "olm.package" => self.add_package(place, &blob),
            "olm.channel" => self.add_channel(place, &blob),
            "olm.bundle" => self.add_bundle(place, &blob),
            "olm.deprecations" => self.add_deprecations(place, &blob),
            _ => {}
        }
    }

    fn add_package(&mut self, place: &str, blob: &RawBlob) {
        let at = Place::in_file(place);
        let name = self.require(&at, "name", &blob.name);
        let channel = self.require(&at, "defaultChannel", &blob.default_channel);
        let (Some(name), Some(channel)) = (name, channel) else {
            return;
        };
        let at = Place {
            package: Some(name),
            ..at
        };
        if !self.is_wanted(name) {
            return;
        }
        let description = blob.description.text().unwrap_or_default();
        self.kept += place.len() + channel.len() + description.len();
        let package = self.package(name);
        if package.place.is_empty() {
            place.clone_into(&mut package.place);
            channel.clone_into(&mut package.default_channel);
            description.clone_into(&mut package.description);
        } else {
            let message = format!("olm.package is in {} already", package.place);
            self.report(&at, message);
        }
    }

    fn add_channel(&mut self, place: &str, blob: &RawBlob) {
        let Some((package, name)) = self.package_and_name(place, blob) else {
            return;
        };
        let at = Place {
            place,
            package: Some(package),
            channel: Some(name),
        };
        let Some(items) = blob.entries.as_array().filter(|items| !items.is_empty()) else {
            return self.report(&at, "entries must be a list of bundles".to_owned());
        };
        if let Some(known) = self.package(package).channels.get(name) {
            let message = format!("the channel is in {} already", known.place);
            return self.report(&at, message);
        }
        let mut entries = std::collections::BTreeMap::new();
        for (index, item) in items.iter().enumerate() {
            let mut wrong = |message: String| self.report(&at, format!("entries[{index}]{message}"));
            let Some((bundle, entry)) = entry(item, &mut wrong) else {
                continue;
            };
            let size = 64 + bundle.len() + entry.skips.iter().map(|skip| skip.len() + 24).sum::<usize>();
            if entries.insert(bundle.clone(), entry).is_some() {
                wrong(format!(".name: {bundle} is in the channel already"));
            }
            self.kept += size;
        }
        self.kept += place.len() + name.len();
        let channel = self.package(package).channels.entry(name.to_owned()).or_default();
        place.clone_into(&mut channel.place);
        channel.entries = entries;
    }

    fn add_bundle(&mut self, place: &str, blob: &RawBlob) {
        let Some((package, name)) = self.package_and_name(place, blob) else {
            return;
        };
        let at = Place {
            package: Some(package),
            ..Place::in_file(place)
        };
        let image = self.require(&at, &format!("image of {name}"), &blob.image);
        let version = match blob.versions.as_slice() {
            [property] => {
                if property.package.text() != Some(package) {
                    let message = format!("the property olm.package of {name} names another package");
                    self.report(&at, message);
                }
                let version = self.require(
                    &at,
                    &format!("version in the property olm.package of {name}"),
                    &property.version,
                );
                version.filter(|version| {
                    let is_version = Version::parse(version).is_some();
                    if !is_version {
                        self.report(
                            &at,
                            format!("{version:?}, the version of {name}, is not a semantic version"),
                        );
                    }
                    is_version
                })
            }
            several => {
                let message = format!(
                    "{name} must have one property olm.package, and has {}",
                    several.len()
                );
                self.report(&at, message);
                None
            }
        };
        let (Some(image), Some(version)) = (image, version) else {
            return;
        };
        self.kept += 96 + place.len() + name.len() + image.len() + version.len();
        let bundles = &mut self.package(package).bundles;
        if let Some(known) = bundles.get(name) {
            let message = format!("the bundle {name} is in {} already", known.place);
            return self.report(&at, message);
        }
        let bundle = CatalogBundle {
            place: place.to_owned(),
            version: version.to_owned(),
            image: image.to_owned(),
        };
        bundles.insert(name.to_owned(), bundle);
    }

    fn add_deprecations(&mut self, place: &str, blob: &RawBlob) {
        let at = Place::in_file(place);
        let Some(package) = self.require(&at, "package", &blob.package) else {
            return;
        };
        if !self.is_wanted(package) {
            return;
        }
        let at = Place {
            package: Some(package),
            ..at
        };
        let Some(items) = blob.entries.as_array() else {
            return self.report(&at, "entries must be a list of deprecations".to_owned());
        };
        for (index, item) in items.iter().enumerate() {
            let schema = item["reference"]["schema"].as_str().unwrap_or_default();
            let name = item["reference"]["name"].as_str().unwrap_or_default();
            let message = item["message"].as_str().unwrap_or_default();
            if message.is_empty() {
                self.report(&at, format!("entries[{index}].message must be a text"));
                continue;
            }
            self.kept += name.len() + message.len();
            let deprecations = &mut self.package(package).deprecations;
            match (schema, name) {
                ("olm.package", _) => deprecations.package = Some(message.to_owned()),
                ("olm.channel", name) if !name.is_empty() => {
                    deprecations.channels.insert(name.to_owned(), message.to_owned());
                }
                ("olm.bundle", name) if !name.is_empty() => {
                    deprecations.bundles.insert(name.to_owned(), message.to_owned());
                }
                _ => {
                    let wanted = "must be a package, or a channel or bundle with its name";
                    self.report(&at, format!("entries[{index}].reference {wanted}"));
                }
            }
        }
    }

    fn is_wanted(&self, package: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(package))
    }

    fn package(&mut self, name: &str) -> &mut CatalogPackage {
        let kept = &mut self.kept;
        self.catalog.packages.entry(name.to_owned()).or_insert_with(|| {
            *kept += name.len() + 256;
            CatalogPackage {
                name: name.to_owned(),
                ..CatalogPackage::default()
            }
        })
    }

    /// Returns the package and name of a package member, unless the package is skipped.
    fn package_and_name<'b>(&mut self, place: &str, blob: &'b RawBlob) -> Option<(&'b str, &'b str)> {
        let at = Place::in_file(place);
        let package = self.require(&at, "package", &blob.package);
        let name = self.require(&Place { package, ..at }, "name", &blob.name);
        let (package, name) = (package?, name?);
        self.is_wanted(package).then_some((package, name))
    }

    /// Returns the text of a required field; reports a problem if it is missing.
    fn require<'a>(&mut self, at: &Place<'_>, field: &str, text: &'a RawText) -> Option<&'a str> {
        let found = text.text();
        if found.is_none() {
            let message = match text {
                RawText::Other => format!("{field} must be a text"),
                RawText::Missing | RawText::Text(_) => format!("{field} is missing"),
            };
            self.report(at, message);
        }
        found
    }

    fn report_documents(&mut self, file: &str, error: &DocumentsError) {
        let place = match error.line() {
            Some(line) => format!("{file}:{line}"),
            None => file.to_owned(),
        };
        self.report(&Place::in_file(&place), error.to_string());
    }

    fn report(&mut self, at: &Place<'_>, message: String) {
        // Problems of skipped packages are not reported.
        if at.package.is_some_and(|package| !self.is_wanted(package)) {
            return;
        }
        self.push(CatalogProblem {
            place: at.place.to_owned(),
            package: at.package.map(str::to_owned),
            channel: at.channel.map(str::to_owned),
            message,
        });
    }

    fn push(&mut self, problem: CatalogProblem) {
        if self.problems.len() < self.limits.problems {
            self.problems.push(problem);
        } else {
            self.more_problems += 1;
        }
    }
}

impl<'a> Place<'a> {
    fn in_file(place: &'a str) -> Self {
        Self {
            place,
            package: None,
            channel: None,
        }
    }
}

/// Parses an entry of a channel; returns it with its bundle name.
fn entry(item: &Value, wrong: &mut impl FnMut(String)) -> Option<(String, ChannelEntry)> {
    let mut text = |field: &str| match &item[field] {
        Value::Null => None,
        Value::String(text) if text.is_empty() => None,
        Value::String(text) => Some(text.clone()),
        _ => {
            wrong(format!(".{field} must be a text"));
            None
        }
    };
    let (name, replaces, skip_range) = (text("name"), text("replaces"), text("skipRange"));
    if let Some(range) = &skip_range
        && VersionRange::parse(range).is_none()
    {
        wrong(format!(
            ".skipRange: {range:?} is not a range of versions, for example \">=1.0.0 <1.2.0\""
        ));
    }
    let skips = match &item["skips"] {
        Value::Null => Vec::new(),
        Value::Array(skips) if skips.iter().all(Value::is_string) => skips
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        _ => {
            wrong(".skips must be a list of names".to_owned());
            Vec::new()
        }
    };
    let Some(name) = name else {
        wrong(".name is missing".to_owned());
        return None;
    };
    Some((
        name,
        ChannelEntry {
            replaces,
            skips,
            skip_range,
        },
    ))
}
