//! Where the bundle of a command is: on this machine, or in an image.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use anyhow::anyhow;
use clap::builder::{OsStringValueParser, TypedValueParser};
use oci::ImageReference;
use windlass_object::{rfc1123::is_label, text::OneLine};

/// Where a bundle is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BundleLocation {
    /// A directory or an archive of this machine; `-` is an archive from standard input.
    Local(PathBuf),
    /// An image, with its registry.
    Image(ImageReference),
    /// A package, by its name: only a catalog knows more.
    Package(String),
}

/// How a location is parsed: what is there, `-` and what begins with `.` or `/` is of this machine; all else is an image, which must
/// name its registry, or the name of a package.
pub(super) fn parser() -> impl TypedValueParser<Value = BundleLocation> {
    OsStringValueParser::new().try_map(|text| BundleLocation::of(&text, Path::exists))
}

// === impl BundleLocation ===

impl BundleLocation {
    /// Whether it is one without any catalog.
    ///
    /// # Errors
    ///
    /// When it is the name of a package.
    pub(super) fn without_catalog(&self) -> anyhow::Result<()> {
        match self {
            Self::Package(package) => Err(without_catalog(package)),
            _ => Ok(()),
        }
    }

    fn of(text: &OsStr, exists: impl Fn(&Path) -> bool) -> Result<Self, String> {
        let path = Path::new(text);
        let is_path = text == "-" || text.as_encoded_bytes().starts_with(b".") || path.is_absolute();
        if is_path || exists(path) {
            return Ok(Self::Local(path.to_owned()));
        }
        if let Some(name) = text.to_str().filter(|text| is_label(text)) {
            return Ok(Self::Package(name.to_owned()));
        }
        let said = OneLine(&text.to_string_lossy()).to_string();
        let Some(text) = text.to_str() else {
            return Err(format!("{said} not found"));
        };
        match text.parse::<ImageReference>() {
            Ok(image) if image.is_qualified => Ok(Self::Image(image)),
            Ok(_) => Err(format!(
                "{said} not found, and it is not an image with its registry: write ./{said} or REGISTRY/{said}"
            )),
            Err(error) => Err(format!("{said} not found, and it is not an image: {error}")),
        }
    }
}

/// What is said where the name of a package is not enough.
pub(super) fn without_catalog(package: &str) -> anyhow::Error {
    anyhow!(
        "{package} not found, and it is not an image with its registry: write ./{package} or REGISTRY/{package}, or name a \
         catalog for `windlass install` with --catalog"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<BundleLocation, String> {
        BundleLocation::of(OsStr::new(text), |path| path == Path::new("quay.io/here"))
    }

    #[test]
    fn a_bundle_is_of_this_machine_or_in_an_image() {
        for path in ["-", "./a", "../a", ".", "/a", "/quay.io/a", "quay.io/here"] {
            assert_eq!(of(path).unwrap(), BundleLocation::Local(path.into()), "{path}");
        }
        for image in ["quay.io/a:v1", "localhost:5000/a/b", "[::1]:5000/a"] {
            let reference = image.parse().unwrap();
            assert_eq!(of(image).unwrap(), BundleLocation::Image(reference), "{image}");
        }
    }

    #[test]
    fn a_name_may_be_that_of_a_package() {
        assert_eq!(of("widgets"), Ok(BundleLocation::Package("widgets".to_owned())));
        let said = without_catalog("widgets").to_string();
        assert!(
            said.starts_with(
                "widgets not found, and it is not an image with its registry: write ./widgets or"
            )
        );
    }

    #[test]
    fn what_is_neither_is_refused_with_what_to_write() {
        for (text, words) in [
            (
                "team/app:v1",
                "team/app:v1 not found, and it is not an image with its registry: write",
            ),
            (
                "bundles/My.v1",
                "bundles/My.v1 not found, and it is not an image: ",
            ),
            ("quay.io/a:", "the tag must be of"),
            ("", "empty"),
        ] {
            let error = of(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
