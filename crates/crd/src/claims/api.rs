//! The identity of an API, which is unique in a cluster.

use serde_json::Value;
use windlass_object::object;

/// The API of a CustomResourceDefinition. The API server cannot serve a second one with the same name, or
/// with the same kind and group (`pkg/controller/status/naming_controller.go` of apiextensions-apiserver).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Api {
    /// The name of the CustomResourceDefinition, `plural.group`.
    pub crd: String,
    /// The kind; empty if unknown.
    pub kind: String,
}

impl Api {
    /// Returns the API of a CustomResourceDefinition, or `None` if it has no name.
    pub fn from_crd(crd: &Value) -> Option<Self> {
        Some(Self {
            crd: object::text(crd, "/metadata/name")?.to_owned(),
            kind: object::text(crd, "/spec/names/kind")
                .unwrap_or_default()
                .to_owned(),
        })
    }

    /// Returns the group, which is the end of the CustomResourceDefinition's name.
    pub fn group(&self) -> &str {
        self.crd.split_once('.').map_or("", |(_, group)| group)
    }

    /// Reports whether the cluster cannot serve both, or they are the same.
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
