//! What the annotation `windlass.dev/approve` says.

use catalog::UpgradeEdge;
use oci::ImageReference;

/// An approval of a bundle of a catalog by a user: `<bundle>[@<digest of its image>] [<reason>]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BundleApproval<'a> {
    /// The name of the bundle.
    pub bundle: &'a str,
    /// The digest of its image, if that is approved alone.
    pub digest: Option<&'a str>,
}

impl<'a> BundleApproval<'a> {
    /// What a value of the annotation approves; `None` where it names nothing.
    pub fn parse(value: &'a str) -> Option<Self> {
        let named = value.split_whitespace().next()?;
        let (bundle, digest) = match named.split_once('@') {
            Some((bundle, digest)) => (bundle, Some(digest)),
            None => (named, None),
        };
        Some(Self { bundle, digest })
    }

    /// Whether it approves what the catalog names now.
    pub fn is_of(&self, edge: &UpgradeEdge) -> bool {
        self.bundle == edge.bundle
            && self
                .digest
                .is_none_or(|digest| digest_of(&edge.image) == Some(digest.to_owned()))
    }
}

/// The digest in the name of an image.
pub(super) fn digest_of(image: &str) -> Option<String> {
    let image: ImageReference = image.parse().ok()?;
    image.digest.map(|digest| digest.to_string())
}

#[cfg(test)]
mod tests {
    use catalog::EdgeReason;

    use super::*;

    const DIGEST: &str = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

    fn edge(image: &str) -> UpgradeEdge {
        UpgradeEdge {
            bundle: "widgets.v2".to_owned(),
            version: "2.0.0".to_owned(),
            image: image.to_owned(),
            reason: EdgeReason::Install,
            deprecated: None,
        }
    }

    #[test]
    fn what_is_approved_is_one_bundle_and_where_it_says_so_one_image() {
        let pinned = format!("quay.io/widgets/bundle@{DIGEST}");
        let by_digest = format!("widgets.v2@{DIGEST} at 2026-11-27T12:00:00Z");
        for (value, image, expected) in [
            ("widgets.v2", &*pinned, true),
            ("widgets.v2 after the freeze", &pinned, true),
            (" widgets.v2 ", "quay.io/widgets/bundle:2", true),
            ("widgets.v20", &pinned, false),
            ("widgets", &pinned, false),
            ("", &pinned, false),
            ("after widgets.v2", &pinned, false),
            (&by_digest, &pinned, true),
            // It is another one by now.
            (&by_digest, "quay.io/widgets/bundle:2", false),
            ("widgets.v2@sha256:00", &pinned, false),
            ("widgets.v2@", &pinned, false),
        ] {
            let approves = BundleApproval::parse(value).is_some_and(|approval| approval.is_of(&edge(image)));
            assert_eq!(approves, expected, "{value:?} {image}");
        }
    }
}
