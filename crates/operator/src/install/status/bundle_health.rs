//! Whether the objects of a bundle do what they are for.

use windlass_api::ConditionUpdate;
use windlass_object::text::Listing;

use super::ailment::Ailment;

/// Whether the objects of a bundle are healthy, apart from its Deployments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BundleHealth {
    /// They do, or nobody knows their kinds.
    #[default]
    Healthy,
    /// Some do not.
    Unhealthy {
        /// Which, and why.
        message: String,
    },
    /// Of some it cannot be said.
    Unknown {
        /// Of which, and what to do about it.
        message: String,
    },
}

/// How a message lists objects.
const AILMENTS: Listing = Listing {
    most: 5,
    separator: "; ",
    way_to_rest: "",
};

/// What can be done about a customization that fails.
const WAY_OUT: &str = "correct that, or set spec.interpretation to Disabled";

impl BundleHealth {
    /// That of a bundle with these ailing objects.
    pub fn of(ailments: &[Ailment]) -> Self {
        let listed = |is_known: bool| {
            let of = ailments.iter().filter(|ailment| ailment.is_known == is_known);
            let of: Vec<_> = of
                .map(|ailment| format!("{}: {}", ailment.key, ailment.why))
                .collect();
            (!of.is_empty()).then(|| AILMENTS.summarize(&of))
        };
        let waiting = listed(true).map(|listed| format!("waiting for {listed}"));
        let unknown =
            listed(false).map(|listed| format!("cannot determine the health of {listed}; {WAY_OUT}"));
        match (waiting, unknown) {
            (None, None) => Self::Healthy,
            (Some(message), None) => Self::Unhealthy { message },
            (None, Some(message)) => Self::Unknown { message },
            (Some(waiting), Some(unknown)) => Self::Unhealthy {
                message: format!("{waiting}; {unknown}"),
            },
        }
    }

    /// The same, where it is not known moreover what somebody says.
    #[must_use]
    pub fn and_unknown(self, why: String) -> Self {
        match self {
            Self::Healthy => Self::Unknown { message: why },
            Self::Unhealthy { message } => Self::Unhealthy {
                message: format!("{message}; {why}"),
            },
            Self::Unknown { message } => Self::Unknown {
                message: format!("{message}; {why}"),
            },
        }
    }

    /// What is wrong.
    pub fn message(&self) -> Option<&str> {
        match self {
            Self::Healthy => None,
            Self::Unhealthy { message } | Self::Unknown { message } => Some(message),
        }
    }

    /// The condition that the bundle is not known to be available.
    pub(super) fn verdict(&self) -> Option<ConditionUpdate> {
        match self {
            Self::Healthy => None,
            Self::Unhealthy { message } => Some(ConditionUpdate::fails("ObjectUnhealthy", message)),
            Self::Unknown { message } => Some(ConditionUpdate::unknown("HealthUnknown", message)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_object::ObjectKey;

    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::from_object(&json!({"apiVersion": "v1", "kind": "Widget", "metadata": {"name": name}}))
            .unwrap()
    }

    #[test]
    fn what_is_known_to_ail_comes_before_what_nobody_knows() {
        let unknown = Ailment::unknown(key("b"), "the script fails");
        assert_eq!(BundleHealth::of(&[]), BundleHealth::Healthy);
        assert_eq!(
            BundleHealth::of(std::slice::from_ref(&unknown)),
            BundleHealth::Unknown {
                message: format!("cannot determine the health of Widget b: the script fails; {WAY_OUT}")
            }
        );
        assert_eq!(
            BundleHealth::of(&[unknown, Ailment::absent(key("a"))]),
            BundleHealth::Unhealthy {
                message: format!(
                    "waiting for Widget a: it was not found; cannot determine the health of Widget b: the script fails; {WAY_OUT}"
                )
            }
        );
    }

    #[test]
    fn many_objects_are_counted() {
        let many: Vec<_> = (0..9)
            .map(|index| Ailment::absent(key(&index.to_string())))
            .collect();
        let health = BundleHealth::of(&many);
        let message = health.message().unwrap();
        assert!(
            message.ends_with("Widget 4: it was not found; and 4 more"),
            "{message}"
        );
    }
}
