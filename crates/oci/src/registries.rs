//! Locations of images: containers-registries.conf(5), version 2.

use serde::Deserialize;

use crate::reference::{ImageReference, ReferenceError};

/// The content of a `registries.conf`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RegistriesConfig {
    /// Registries of references without one. If there are several, none is guessed.
    #[serde(default)]
    pub unqualified_search_registries: Vec<String>,
    /// `[[registry]]`: entries for registries, in the order of the file.
    #[serde(default)]
    pub registry: Vec<RegistryEntry>,
    /// `[aliases]`: images by their short names.
    #[serde(default)]
    pub aliases: std::collections::BTreeMap<String, String>,
}

/// One `[[registry]]`: where to find the images of a registry or a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RegistryEntry {
    /// The prefix of matching images: `host[:port][/path]` or `*.domain`; by default `location`.
    #[serde(default)]
    pub prefix: String,
    /// The replacement of the prefix.
    #[serde(default)]
    pub location: String,
    /// Whether requests without TLS are allowed.
    #[serde(default)]
    pub insecure: bool,
    /// Whether pulls are forbidden.
    #[serde(default)]
    pub blocked: bool,
    /// Whether mirrors serve only images by digest.
    #[serde(default)]
    pub mirror_by_digest_only: bool,
    /// `[[registry.mirror]]`, in the order of requests.
    #[serde(default)]
    pub mirror: Vec<MirrorEntry>,
}

/// A mirror of a registry: `[[registry.mirror]]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct MirrorEntry {
    /// The replacement of the prefix.
    #[serde(default)]
    pub location: String,
    /// Whether requests without TLS are allowed.
    #[serde(default)]
    pub insecure: bool,
    /// Which images the mirror serves.
    #[serde(default)]
    pub pull_from_mirror: PullFromMirror,
}

/// The images that a mirror serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PullFromMirror {
    /// All images.
    #[default]
    All,
    /// Images by digest.
    DigestOnly,
    /// Images by tag.
    TagOnly,
}

/// A name by which an image can be requested: that of a mirror, or its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageLocation {
    /// The name of the image at this location.
    pub image: ImageReference,
    /// Whether requests without TLS are allowed.
    pub insecure: bool,
}

/// Why a `registries.conf` is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {}", problems.join("; "))]
pub struct RegistriesConfigError {
    /// Path of the file.
    pub file: String,
    /// Every problem, with its field.
    pub problems: Vec<String>,
}

/// Why an image has no location.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the message explains each field")]
pub enum LocationError {
    /// The administrator blocks the image.
    #[error("{0} is blocked in registries.conf")]
    Blocked(String),
    /// Several registries could have the image.
    #[error("{name} has no registry, and registries.conf lists several: use one of {}", candidates.join(", "))]
    Ambiguous {
        /// The image, as written.
        name: String,
        candidates: Vec<String>,
    },
    /// A rule rewrites the name to an invalid reference.
    #[error("registries.conf rewrites {0} to an invalid name: {1}")]
    Renamed(String, ReferenceError),
}

impl RegistriesConfig {
    /// Parses a `registries.conf`.
    ///
    /// # Errors
    ///
    /// Every problem in it.
    pub fn parse(file: &str, content: &str) -> Result<Self, RegistriesConfigError> {
        let failed = |problems| RegistriesConfigError {
            file: file.to_owned(),
            problems,
        };
        let mut config: Self = toml::from_str(content)
            .map_err(|error| failed(vec![error.to_string().trim().replace('\n', " ")]))?;
        let mut problems = Vec::new();
        for (index, registry) in config.registry.iter_mut().enumerate() {
            let is_pattern = registry.prefix.starts_with("*.");
            if registry.prefix.is_empty() && registry.location.is_empty() {
                problems.push(format!("registry[{index}]: prefix or location must be set"));
            }
            if registry.prefix.contains('*') && (!is_pattern || registry.prefix[1..].contains(['*', '/'])) {
                problems.push(format!(
                    "registry[{index}].prefix: must have * in front of a domain only: *.DOMAIN"
                ));
            }
            if registry.prefix.is_empty() {
                registry.prefix.clone_from(&registry.location);
            }
            if registry.location.is_empty() && !is_pattern {
                registry.location.clone_from(&registry.prefix);
            }
            for (place, mirror) in registry.mirror.iter().enumerate() {
                let field = format!("registry[{index}].mirror[{place}]");
                if mirror.location.is_empty() {
                    problems.push(format!("{field}.location: must be set"));
                }
                if registry.mirror_by_digest_only && mirror.pull_from_mirror != PullFromMirror::All {
                    problems.push(format!(
                        "{field}.pull-from-mirror: must not be set with mirror-by-digest-only"
                    ));
                }
            }
            let locations = registry.mirror.iter().map(|mirror| &mirror.location);
            for location in locations.chain([&registry.location, &registry.prefix]) {
                if location.contains("://") {
                    problems.push(format!(
                        "registry[{index}]: {location}: must be HOST[:PORT][/PATH], without a scheme"
                    ));
                }
            }
        }
        for (name, image) in &config.aliases {
            if !image
                .parse::<ImageReference>()
                .is_ok_and(|image| image.is_qualified)
            {
                problems.push(format!("aliases.{name}: must be REGISTRY/REPOSITORY"));
            }
        }
        if problems.is_empty() {
            Ok(config)
        } else {
            Err(failed(problems))
        }
    }

    /// Lists the locations of an image in order: mirrors first, then its own registry.
    ///
    /// # Errors
    ///
    /// If it has none.
    pub fn locations(&self, image: &ImageReference) -> Result<Vec<ImageLocation>, LocationError> {
        let image = self.qualified(image)?;
        let name = image.name();
        let entry = self.entry(&image, &name);
        let Some((prefix, entry)) = entry else {
            return Ok(vec![ImageLocation {
                image,
                insecure: false,
            }]);
        };
        if entry.blocked {
            return Err(LocationError::Blocked(entry.prefix.clone()));
        }
        let has_digest = image.digest.is_some();
        let is_asked = |mirror: &&MirrorEntry| match mirror.pull_from_mirror {
            PullFromMirror::All => has_digest || !entry.mirror_by_digest_only,
            PullFromMirror::DigestOnly => has_digest,
            PullFromMirror::TagOnly => !has_digest,
        };
        let mirrors = entry.mirror.iter().filter(is_asked);
        let places = mirrors
            .map(|mirror| (mirror.location.as_str(), mirror.insecure))
            .chain([(entry.location.as_str(), entry.insecure)]);
        places
            .map(|(location, insecure)| {
                let image = if location.is_empty() {
                    image.clone()
                } else {
                    let name = format!("{location}{}", &name[prefix.len()..]);
                    image
                        .with_name(&name)
                        .map_err(|error| LocationError::Renamed(image.to_string(), error))?
                };
                Ok(ImageLocation { image, insecure })
            })
            .collect()
    }

    /// The location to push an image to: its own registry, since mirrors serve pulls only.
    ///
    /// # Errors
    ///
    /// If the registry is blocked.
    pub fn destination(&self, image: &ImageReference) -> Result<ImageLocation, LocationError> {
        let image = self.qualified(image)?;
        let insecure = match self.entry(&image, &image.name()) {
            Some((_, entry)) if entry.blocked => {
                return Err(LocationError::Blocked(entry.prefix.clone()));
            }
            Some((_, entry)) => entry.insecure,
            None => false,
        };
        Ok(ImageLocation { image, insecure })
    }

    /// Finds the entry for an image of this name, and the part of the name that its prefix matches.
    fn entry<'a>(&self, image: &ImageReference, name: &'a str) -> Option<(&'a str, &RegistryEntry)> {
        self.registry
            .iter()
            .filter_map(|entry| Some((entry.prefix_of(&image.registry, name)?, entry)))
            .max_by_key(|(prefix, entry)| (entry.prefix.trim_start_matches('*').len(), prefix.len()))
    }

    /// Adds the registry to a short name.
    fn qualified(&self, image: &ImageReference) -> Result<ImageReference, LocationError> {
        if image.is_qualified {
            return Ok(image.clone());
        }
        let short = image
            .repository
            .strip_prefix("library/")
            .unwrap_or(&image.repository);
        let renamed = |name: &str| {
            image
                .with_name(name)
                .map_err(|error| LocationError::Renamed(image.to_string(), error))
        };
        if let Some(alias) = self.aliases.get(short) {
            return renamed(alias);
        }
        match self.unqualified_search_registries.as_slice() {
            [] => Ok(image.clone()),
            [registry] => renamed(&format!("{registry}/{short}")),
            several => {
                let candidates = several.iter().map(|registry| format!("{registry}/{short}"));
                Err(LocationError::Ambiguous {
                    name: short.to_owned(),
                    candidates: candidates.collect(),
                })
            }
        }
    }
}

impl RegistryEntry {
    /// Returns the part of `name` that the prefix of the entry matches.
    fn prefix_of<'a>(&self, registry: &str, name: &'a str) -> Option<&'a str> {
        if let Some(domain) = self.prefix.strip_prefix('*') {
            let host = registry.split(':').next().unwrap_or(registry);
            let is_below = host.ends_with(domain) || registry.ends_with(domain);
            return is_below.then(|| &name[..registry.len()]);
        }
        let rest = name.strip_prefix(&self.prefix)?;
        // According to the manual, a prefix ends at a path separator.
        let is_whole = rest.is_empty() || rest.starts_with('/');
        is_whole.then(|| &name[..self.prefix.len()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    fn places(config: &RegistriesConfig, image: &str) -> Result<Vec<String>, String> {
        let locations = config.locations(&image.parse().unwrap());
        let locations = locations.map_err(|error| error.to_string())?;
        let places = locations.iter().map(|location| {
            let insecure = if location.insecure { " insecure" } else { "" };
            format!("{}{insecure}", location.image)
        });
        Ok(places.collect())
    }

    #[test]
    fn mirrors_come_first_and_the_longest_prefix_applies() {
        let config = RegistriesConfig::parse(
            "registries.conf",
            r#"
            [[registry]]
            prefix = "example.com/foo"
            location = "internal.test/bar"
            insecure = true
            [[registry.mirror]]
            location = "mirror.test:5000/m"
            insecure = true
            [[registry.mirror]]
            location = "tags.test"
            pull-from-mirror = "tag-only"
            [[registry.mirror]]
            location = "digests.test"
            pull-from-mirror = "digest-only"

            [[registry]]
            location = "example.com"

            [[registry]]
            prefix = "*.corp.test"
            [[registry.mirror]]
            location = "corp-mirror.test/all"

            [[registry]]
            prefix = "bad.corp.test/forbidden"
            blocked = true

            [[registry]]
            location = "quay.io"
            mirror-by-digest-only = true
            [[registry.mirror]]
            location = "quay-mirror.test/quay"
            "#,
        )
        .unwrap();
        let one = |text: &str| Ok(vec![text.to_owned()]);
        assert_eq!(places(&config, "other.test/a"), one("other.test/a"));
        assert_eq!(places(&config, "example.com/foobar"), one("example.com/foobar"));
        assert_eq!(
            places(&config, "example.com/foo/image:1").unwrap(),
            [
                "mirror.test:5000/m/image:1 insecure",
                "tags.test/image:1",
                "internal.test/bar/image:1 insecure"
            ]
        );
        assert_eq!(
            places(&config, &format!("example.com/foo/image{DIGEST}")).unwrap(),
            [
                format!("mirror.test:5000/m/image{DIGEST} insecure"),
                format!("digests.test/image{DIGEST}"),
                format!("internal.test/bar/image{DIGEST} insecure")
            ]
        );
        assert_eq!(
            places(&config, "a.b.corp.test/x/y").unwrap(),
            ["corp-mirror.test/all/x/y", "a.b.corp.test/x/y"]
        );
        let blocked = places(&config, "bad.corp.test/forbidden/a").unwrap_err();
        assert_eq!(blocked, "bad.corp.test/forbidden is blocked in registries.conf");
        assert_eq!(places(&config, "quay.io/a:1"), one("quay.io/a:1"));
        assert_eq!(places(&config, &format!("quay.io/a{DIGEST}")).unwrap().len(), 2);
    }

    #[test]
    fn short_names_are_never_guessed() {
        let config = |text| RegistriesConfig::parse("f", text).unwrap();
        let one = |text: &str| Ok(vec![text.to_owned()]);
        assert_eq!(
            places(&config(""), "busybox:1"),
            one("docker.io/library/busybox:1")
        );
        let single = config("unqualified-search-registries = ['quay.io']");
        assert_eq!(places(&single, "busybox:1"), one("quay.io/busybox:1"));
        assert_eq!(
            places(&single, "docker.io/busybox:1"),
            one("docker.io/library/busybox:1")
        );
        let several = config(
            "unqualified-search-registries = ['quay.io', 'docker.io']\n[aliases]\n'a/b' = 'ghcr.io/x/b'",
        );
        let error = places(&several, "busybox").unwrap_err();
        assert!(
            error.ends_with("use one of quay.io/busybox, docker.io/busybox"),
            "{error}"
        );
        assert_eq!(places(&several, "a/b:2"), one("ghcr.io/x/b:2"));
    }

    #[test]
    fn all_problems_of_a_file_are_reported() {
        let text = "[[registry]]\n[[registry]]\nprefix = 'a.*.b'\n[[registry]]\nlocation = 'https://a'\n[[registry.mirror]]\n[aliases]\na = 'b'";
        let error = RegistriesConfig::parse("registries.conf", text).unwrap_err();
        assert_eq!(error.problems.len(), 6, "{error}");
        assert!(error.to_string().starts_with("registries.conf: registry[0]: "));
        let error = RegistriesConfig::parse("f", "[[registry]]\nlocation = 1")
            .unwrap_err()
            .to_string();
        assert!(error.contains("line 2"), "{error}");
    }
}
