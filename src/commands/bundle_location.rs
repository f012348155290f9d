//! The location of a command's bundle: a local path or an image.

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
    /// A local directory or archive; `-` is an archive on standard input.
    Local(PathBuf),
    /// An image, with its registry.
    Image(ImageReference),
    /// A package name, which only a catalog can resolve.
    Package(String),
}

/// Returns the parser of a location. Existing paths, `-` and names that begin with `.` or `/` are local;
/// anything else is an image with its registry, or a package name.
pub(super) fn parser() -> impl TypedValueParser<Value = BundleLocation> {
    OsStringValueParser::new().try_map(|text| BundleLocation::parse(&text, Path::exists))
}

impl BundleLocation {
    /// Checks that a catalog is not needed.
    ///
    /// # Errors
    ///
    /// When it is a package name.
    pub(super) fn ensure_not_package(&self) -> anyhow::Result<()> {
        match self {
            Self::Package(package) => Err(needs_catalog(package)),
            _ => Ok(()),
        }
    }

    fn parse(text: &OsStr, exists: impl Fn(&Path) -> bool) -> Result<Self, String> {
        let path = Path::new(text);
        let is_path = text == "-" || text.as_encoded_bytes().starts_with(b".") || path.is_absolute();
        if is_path || exists(path) {
            return Ok(Self::Local(path.to_owned()));
        }
        if let Some(name) = text.to_str().filter(|text| is_label(text)) {
            return Ok(Self::Package(name.to_owned()));
        }
        let shown = OneLine(&text.to_string_lossy()).to_string();
        let Some(text) = text.to_str() else {
            return Err(format!("{shown} not found"));
        };
        match text.parse::<ImageReference>() {
            Ok(image) if image.is_qualified => Ok(Self::Image(image)),
            Ok(_) => Err(format!(
                "{shown} not found, and it is not an image with its registry: write ./{shown} or REGISTRY/{shown}"
            )),
            Err(error) => Err(format!("{shown} not found, and it is not an image: {error}")),
        }
    }
}

/// Returns the error for a package name without a catalog.
pub(super) fn needs_catalog(package: &str) -> anyhow::Error {
    anyhow!(
        "{package} not found, and it is not an image with its registry: write ./{package} or REGISTRY/{package}, or name a \
         catalog for `windlass install` with --catalog"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<BundleLocation, String> {
        BundleLocation::parse(OsStr::new(text), |path| path == Path::new("quay.io/here"))
    }

    #[test]
    fn a_bundle_is_a_local_path_or_an_image() {
        for path in ["-", "./a", "../a", ".", "/a", "/quay.io/a", "quay.io/here"] {
            assert_eq!(parse(path).unwrap(), BundleLocation::Local(path.into()), "{path}");
        }
        for image in ["quay.io/a:v1", "localhost:5000/a/b", "[::1]:5000/a"] {
            let reference = image.parse().unwrap();
            assert_eq!(parse(image).unwrap(), BundleLocation::Image(reference), "{image}");
        }
    }

    #[test]
    fn a_plain_name_is_a_package() {
        assert_eq!(
            parse("widgets"),
            Ok(BundleLocation::Package("widgets".to_owned()))
        );
        let shown = needs_catalog("widgets").to_string();
        assert!(
            shown.starts_with(
                "widgets not found, and it is not an image with its registry: write ./widgets or"
            )
        );
    }

    #[test]
    fn an_invalid_location_is_rejected_with_advice() {
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
            let error = parse(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
