//! The way through a catalog, as a status shows it.

use catalog::UpgradePath;
use windlass_api::{CatalogStatus, CatalogStep};
use windlass_object::text::{shortened, tidied};

use super::approval::digest_of;

/// How many bundles of a way are shown.
const SHOWN: usize = 10;

/// The most bytes of a name, a version or a reason of strangers.
const LONGEST: usize = 253;

/// What a status shows of the way through the catalog whose image has this `digest`. Nothing waits yet.
pub fn way(digest: &str, path: &UpgradePath) -> CatalogStatus {
    let text = |text: &str| shortened(tidied(text), LONGEST);
    let steps = path
        .explanations()
        .take(SHOWN)
        .map(|(edge, because)| CatalogStep {
            name: text(&edge.bundle),
            version: text(&edge.version),
            digest: digest_of(&edge.image),
            because: text(&because),
        });
    CatalogStatus {
        digest: Some(digest.to_owned()),
        channel: Some(text(&path.channel)),
        path: steps.collect(),
        more: path.edges.len().saturating_sub(SHOWN) as u64,
        waiting_for_approval: false,
        approved: None,
    }
}

/// How the next bundle of a way is approved; `None` where the way has ended.
pub fn approval_command(deployment: &str, status: &CatalogStatus) -> Option<String> {
    let next = status.path.first()?;
    Some(format!(
        "{} is next ({}): to install it, run windlass catalog approve {deployment} {}",
        next.name, next.because, next.version
    ))
}

#[cfg(test)]
mod tests {
    use catalog::{EdgeReason, UpgradeEdge};

    use super::*;

    fn path(bundles: impl IntoIterator<Item = String>) -> UpgradePath {
        UpgradePath {
            package: "widgets".to_owned(),
            channel: "stable".to_owned(),
            from: Some("widgets.v0".to_owned()),
            edges: bundles
                .into_iter()
                .map(|bundle| UpgradeEdge {
                    version: "1.0.0".to_owned(),
                    image: format!("quay.io/{bundle}:v1"),
                    bundle,
                    reason: EdgeReason::Replaces,
                    deprecated: None,
                })
                .collect(),
        }
    }

    #[test]
    fn of_a_long_way_the_beginning_is_shown_and_the_rest_is_counted() {
        let long = way(
            "sha256:0",
            &path((1..=25).map(|number| format!("widgets.v{number}"))),
        );
        assert_eq!((long.path.len(), long.more), (SHOWN, 15));
        assert_eq!(long.path[0].because, "replaces widgets.v0");
        assert_eq!(long.path[1].because, "replaces widgets.v1");
        assert_eq!(
            approval_command("widgets", &long).unwrap(),
            "widgets.v1 is next (replaces widgets.v0): to install it, run windlass catalog approve widgets 1.0.0"
        );
        let ended = way("sha256:0", &path([]));
        assert_eq!((ended.path.len(), ended.more), (0, 0));
        assert_eq!(approval_command("widgets", &ended), None);
    }

    #[test]
    fn what_a_catalog_calls_bundles_is_short_and_harmless() {
        let hostile = format!("\u{1b}[2J{}", "x".repeat(1 << 20));
        let shown = way("sha256:0", &path([hostile]));
        let name = &shown.path[0].name;
        assert!(name.len() < 300 && !name.contains('\u{1b}'), "{}", name.len());
    }
}
