//! Whether the next bundle of a path is taken.

use catalog::{UpgradeEdge, UpgradePath};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use oci::ImageReference;
use windlass_api::{BundleDeploymentStatus, Conditions, UpgradeApproval};

use super::approval::BundleApproval;
use crate::install::status::Milestone;

/// What decides on the next bundle.
#[derive(Clone, Copy, Debug)]
pub struct FollowObservation<'a> {
    /// The status that was written last.
    pub status: &'a BundleDeploymentStatus,
    /// The generation of the spec as it is.
    pub generation: Option<i64>,
    /// The revision after the installed one that is recorded, came from the same channel, and that the status speaks of as the next.
    pub begun: Option<BegunBundle<'a>>,
    /// Who approves.
    pub approval: UpgradeApproval,
    /// The value of the annotation `windlass.dev/approve`.
    pub approved: Option<&'a str>,
}

/// A bundle some of whose objects may be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BegunBundle<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its image, by its digest.
    pub image: Option<&'a str>,
}

/// What is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextBundle<'a> {
    /// The installed bundle.
    Installed(Staying),
    /// This one.
    Edge(&'a UpgradeEdge),
}

/// Why the installed bundle is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Staying {
    /// Nothing follows it.
    Newest,
    /// What follows waits until it is ready, and nothing is left to do for it.
    Unready,
    /// What follows waits for an approval.
    Unapproved,
}

impl<'a> FollowObservation<'a> {
    /// Whether what has begun is wanted, whatever the catalog says: it goes on by itself.
    pub fn goes_on(&self) -> bool {
        self.begun.is_some() && self.status.conditions.holds("Progressing")
    }

    /// Returns the bundle of the catalog to install next: the first of `path`, if it is approved and the
    /// installed one is complete and healthy; otherwise the installed one.
    pub fn next_bundle(&self, path: &'a UpgradePath) -> NextBundle<'a> {
        let Some(edge) = path.edges.first() else {
            return NextBundle::Installed(Staying::Newest);
        };
        if !self.is_approved(edge) {
            NextBundle::Installed(Staying::Unapproved)
        } else if self.status.installed.is_none() || self.begun.is_some() || self.is_through(edge) {
            NextBundle::Edge(edge)
        } else {
            NextBundle::Installed(Staying::Unready)
        }
    }

    /// Whether a bundle may be installed. One that has begun was approved.
    fn is_approved(&self, edge: &UpgradeEdge) -> bool {
        if self.approval == UpgradeApproval::Automatic || self.begun.is_some_and(|begun| begun.is_of(edge)) {
            return true;
        }
        let used = self
            .status
            .catalog
            .as_ref()
            .and_then(|catalog| catalog.approved.as_deref());
        let valid = self.approved.filter(|value| Some(*value) != used);
        valid
            .and_then(BundleApproval::parse)
            .is_some_and(|approval| approval.is_of(edge))
    }

    /// Whether the installed bundle is wholly through: nothing is left to do for it, and it works. While `edge` is wanted already
    /// and refused, the other conditions say that of it, as far as they say anything.
    fn is_through(&self, edge: &UpgradeEdge) -> bool {
        let conditions = &self.status.conditions;
        let next = self.status.next.as_ref().and_then(|next| next.name.as_ref());
        if next == Some(&edge.bundle) {
            return !OF_INSTALLED
                .iter()
                .any(|step| status_of(conditions, step.condition()) == Some("False"));
        }
        let is_current = self.generation.is_some() && self.status.observed_generation == self.generation;
        is_current
            && self.status.next.is_none()
            && self.status.storage_migrations.is_empty()
            && conditions.holds("Ready")
    }
}

/// The steps that are about the installed revision while another one is refused.
const OF_INSTALLED: [Milestone; 4] = [
    Milestone::Installed,
    Milestone::Available,
    Milestone::Armed,
    Milestone::Migrated,
];

fn status_of<'c>(conditions: &'c Vec<Condition>, condition_type: &str) -> Option<&'c str> {
    conditions
        .find(condition_type)
        .map(|condition| &*condition.status)
}

impl BegunBundle<'_> {
    /// Whether it is this bundle of a catalog: that names it so, and no other image of it.
    pub fn is_of(&self, edge: &UpgradeEdge) -> bool {
        self.name == edge.bundle && self.pinned(edge).is_some()
    }

    /// Its image, where the catalog names that, or a tag that led there.
    pub fn pinned(&self, edge: &UpgradeEdge) -> Option<ImageReference> {
        let recorded: ImageReference = self.image?.parse().ok()?;
        let named: ImageReference = edge.image.parse().ok()?;
        let place = |image: &ImageReference| (image.registry.clone(), image.repository.clone());
        let is_it = place(&recorded) == place(&named)
            && named
                .digest
                .as_ref()
                .is_none_or(|_| named.digest == recorded.digest);
        is_it.then_some(recorded)
    }
}

#[cfg(test)]
mod tests {
    use catalog::EdgeReason;
    use serde_json::json;

    use super::*;

    const OLD: &str = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
    const NEW: &str = "sha256:60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752";

    fn path(bundles: &[&str]) -> UpgradePath {
        UpgradePath {
            package: "widgets".to_owned(),
            channel: "stable".to_owned(),
            from: Some("widgets.v1".to_owned()),
            edges: bundles
                .iter()
                .map(|bundle| UpgradeEdge {
                    bundle: (*bundle).to_owned(),
                    version: "2.0.0".to_owned(),
                    image: format!("quay.io/widgets/bundle@{OLD}"),
                    reason: EdgeReason::Replaces,
                    deprecated: None,
                })
                .collect(),
        }
    }

    /// A status with these conditions, and with what is next.
    fn status(conditions: &[(&str, &str)], next: Option<&str>) -> BundleDeploymentStatus {
        let conditions: Vec<_> = conditions
            .iter()
            .map(|(name, status)| {
                json!({"type": name, "status": status, "reason": "A", "message": "",
                    "lastTransitionTime": "2026-11-27T12:00:00Z"})
            })
            .collect();
        let mut status = json!({
            "observedGeneration": 1, "conditions": conditions,
            "installed": {"revision": 1, "package": "widgets", "name": "widgets.v1", "version": "1.0.0", "digest": "d"},
        });
        if let Some(next) = next {
            status["next"] = json!({"name": next, "reason": "A", "message": ""});
        }
        serde_json::from_value(status).unwrap()
    }

    fn observe(status: &BundleDeploymentStatus) -> FollowObservation<'_> {
        FollowObservation {
            status,
            generation: Some(1),
            begun: None,
            approval: UpgradeApproval::Automatic,
            approved: None,
        }
    }

    fn chosen(observation: &FollowObservation<'_>, bundles: &[&str]) -> String {
        match observation.next_bundle(&path(bundles)) {
            NextBundle::Installed(why) => format!("{why:?}"),
            NextBundle::Edge(edge) => edge.bundle.clone(),
        }
    }

    const READY: &[(&str, &str)] = &[("Ready", "True"), ("Progressing", "False")];

    #[test]
    fn the_next_one_is_taken_when_the_installed_one_is_wholly_through() {
        let kept = [
            ("Accepted", "False"),
            ("Installed", "True"),
            ("Available", "True"),
            ("Armed", "True"),
            ("Migrated", "True"),
            ("Ready", "False"),
        ];
        let down = kept.map(|(name, status)| (name, if name == "Available" { "False" } else { status }));
        let unasked = kept.map(|(name, status)| (name, if name == "Migrated" { "Unknown" } else { status }));
        let migrating = [("Migrated", "False"), ("Ready", "False"), ("Progressing", "True")];
        for (conditions, next, generation, expected) in [
            (READY, None, 1, "widgets.v2"),
            // What is known is about the spec of before.
            (READY, None, 2, "Unready"),
            (&migrating, None, 1, "Unready"),
            (&[], None, 1, "Unready"),
            // It is refused, and wanted all the same, while the installed one works.
            (&kept, Some("widgets.v2"), 1, "widgets.v2"),
            (&kept, Some("widgets.v2"), 2, "widgets.v2"),
            (&unasked, Some("widgets.v2"), 1, "widgets.v2"),
            (&down, Some("widgets.v2"), 1, "Unready"),
            // Another one was wanted and refused: the installed one is looked at first.
            (&kept, Some("widgets.v3"), 1, "Unready"),
            // The installed bundle with other settings is under way.
            (&kept, Some("widgets.v1"), 1, "Unready"),
        ] {
            let status = status(conditions, next);
            let observation = FollowObservation {
                generation: Some(generation),
                ..observe(&status)
            };
            let found = chosen(&observation, &["widgets.v2", "widgets.v3"]);
            assert_eq!(found, expected, "{conditions:?} {next:?} {generation}");
            assert_eq!(chosen(&observation, &[]), "Newest");
        }
    }

    #[test]
    fn stored_objects_are_rewritten_before_anything_follows() {
        let mut status = status(READY, None);
        status.storage_migrations = serde_json::from_value(json!([{
            "crd": "widgets.example.com", "version": "v2", "rewritten": 1, "uid": "u", "generation": 1,
            "since": "2026-11-27T12:00:00.000000Z",
        }]))
        .unwrap();
        assert_eq!(chosen(&observe(&status), &["widgets.v2"]), "Unready");
    }

    #[test]
    fn the_first_one_needs_nothing_to_be_ready() {
        let mut nothing = status(&[("Ready", "False")], None);
        nothing.installed = None;
        assert_eq!(chosen(&observe(&nothing), &["widgets.v2"]), "widgets.v2");
        let manual = FollowObservation {
            approval: UpgradeApproval::Manual,
            ..observe(&nothing)
        };
        assert_eq!(chosen(&manual, &["widgets.v2"]), "Unapproved");
    }

    #[test]
    fn an_approval_is_for_one_bundle_once() {
        let by_digest = format!("widgets.v2@{OLD} at noon");
        let other = format!("widgets.v2@{NEW} at noon");
        let mut used = status(READY, None);
        used.catalog = serde_json::from_value(json!({"approved": "widgets.v2"})).unwrap();
        let ready = status(READY, None);
        let busy = status(&[("Ready", "False")], None);
        for (status, approved, expected) in [
            (&ready, None, "Unapproved"),
            (&ready, Some("widgets.v2"), "widgets.v2"),
            (&ready, Some(&*by_digest), "widgets.v2"),
            // The catalog names another image by now, or another bundle.
            (&ready, Some(&*other), "Unapproved"),
            (&ready, Some("widgets.v1"), "Unapproved"),
            (&used, Some("widgets.v2"), "Unapproved"),
            (&used, Some("widgets.v2 again"), "widgets.v2"),
            // It waits for both.
            (&busy, None, "Unapproved"),
            (&busy, Some("widgets.v2"), "Unready"),
        ] {
            let observation = FollowObservation {
                approval: UpgradeApproval::Manual,
                approved,
                ..observe(status)
            };
            assert_eq!(chosen(&observation, &["widgets.v2"]), expected, "{approved:?}");
        }
    }

    #[test]
    fn what_has_begun_goes_on_while_it_progresses_and_gives_way_when_it_is_stuck() {
        let image = |digest: &str| format!("quay.io/widgets/bundle@{digest}");
        let (old, new) = (image(OLD), image(NEW));
        let begun = |image| {
            Some(BegunBundle {
                name: "widgets.v2",
                image: Some(image),
            })
        };
        for (progressing, approval, image, next, goes_on, expected) in [
            (
                "True",
                UpgradeApproval::Automatic,
                &*old,
                "widgets.v3",
                true,
                "widgets.v3",
            ),
            (
                "False",
                UpgradeApproval::Automatic,
                &old,
                "widgets.v3",
                false,
                "widgets.v3",
            ),
            // It was approved, and no other one.
            (
                "False",
                UpgradeApproval::Manual,
                &old,
                "widgets.v2",
                false,
                "widgets.v2",
            ),
            (
                "False",
                UpgradeApproval::Manual,
                &new,
                "widgets.v2",
                false,
                "Unapproved",
            ),
            (
                "False",
                UpgradeApproval::Manual,
                &old,
                "widgets.v3",
                false,
                "Unapproved",
            ),
        ] {
            let status = status(
                &[("Ready", "False"), ("Progressing", progressing)],
                Some("widgets.v2"),
            );
            let observation = FollowObservation {
                approval,
                begun: begun(image),
                ..observe(&status)
            };
            assert_eq!(observation.goes_on(), goes_on);
            assert_eq!(
                chosen(&observation, &[next]),
                expected,
                "{progressing} {approval:?} {image}"
            );
        }
        let status = status(&[("Progressing", "True")], None);
        assert!(!observe(&status).goes_on(), "nothing has begun");
    }

    #[test]
    fn a_bundle_that_has_begun_is_that_of_its_image() {
        let edge = |image: &str| UpgradeEdge {
            image: image.to_owned(),
            ..path(&["widgets.v2"]).edges.remove(0)
        };
        let recorded = format!("quay.io/widgets/bundle@{OLD}");
        let begun = BegunBundle {
            name: "widgets.v2",
            image: Some(&recorded),
        };
        for (image, expected) in [
            // A tag led there once: it is not looked at again.
            ("quay.io/widgets/bundle:2", true),
            (&*recorded, true),
            (&format!("quay.io/widgets/bundle@{NEW}"), false),
            ("quay.io/others/bundle:2", false),
            ("not an image", false),
        ] {
            let pinned = begun.pinned(&edge(image));
            assert_eq!(
                pinned.map(|image| image.to_string()),
                expected.then(|| recorded.clone()),
                "{image}"
            );
        }
    }
}
