//! An API, by the names of which there is one of each in a cluster.

use serde_json::Value;
use windlass_object::object;

/// What a CustomResourceDefinition provides: a second one of its name, or of its kind in its group, cannot be served
/// beside it (`pkg/controller/status/naming_controller.go` of apiextensions-apiserver).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Api {
    /// The CustomResourceDefinition, `plural.group`.
    pub crd: String,
    /// The kind; empty where it is not known.
    pub kind: String,
}

// === impl Api ===

impl Api {
    /// The API of a CustomResourceDefinition; `None` where it has no name.
    pub fn from_crd(crd: &Value) -> Option<Self> {
        Some(Self {
            crd: object::text(crd, "/metadata/name")?.to_owned(),
            kind: object::text(crd, "/spec/names/kind")
                .unwrap_or_default()
                .to_owned(),
        })
    }

    /// The group, which the name of a CustomResourceDefinition ends with.
    pub fn group(&self) -> &str {
        self.crd.split_once('.').map_or("", |(_, group)| group)
    }

    /// Whether the cluster cannot serve both, unless they are one.
    pub fn clashes_with(&self, other: &Self) -> bool {
        let same_kind = !self.kind.is_empty() && self.kind == other.kind;
        self.crd == other.crd || (same_kind && self.group() == other.group())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apis_clash_by_name_and_by_kind_within_a_group() {
        let api = |crd: &str, kind: &str| Api {
            crd: crd.into(),
            kind: kind.into(),
        };
        let widgets = api("widgets.example.com", "Widget");
        for (other, expected) in [
            (api("widgets.example.com", "Widget"), true),
            (api("widgets.example.com", "Gadget"), true),
            (api("widgetes.example.com", "Widget"), true),
            (api("widgets.example.org", "Widget"), false),
            (api("gadgets.example.com", "Gadget"), false),
            (api("gadgets.example.com", ""), false),
        ] {
            assert_eq!(widgets.clashes_with(&other), expected, "{other:?}");
            assert_eq!(other.clashes_with(&widgets), expected, "{other:?}");
        }
        let unknown = api("gadgets.example.com", "");
        assert!(!unknown.clashes_with(&api("widgets.example.com", "")));
    }
}
