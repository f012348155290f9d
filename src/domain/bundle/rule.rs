//! The rules that a bundle can break, by name.

/// One rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The name, in kebab case; stable across releases.
    pub name: &'static str,
    /// What the rule asks for, in one line.
    pub explanation: &'static str,
}

/// Declares each rule as a constant and all of them as one table.
macro_rules! rules {
    ($($constant:ident = $name:literal: $explanation:literal;)*) => {
        $(
            #[doc = $explanation]
            pub const $constant: Rule = Rule { name: $name, explanation: $explanation };
        )*

        /// Every rule.
        pub const ALL: &[Rule] = &[$($constant),*];
    };
}

rules! {
    // Files and their syntax.
    SOURCE = "source": "the bundle is a folder or a .tar.gz within limits, and nothing in it leads out of it";
    ANNOTATIONS_MISSING = "annotations-missing": "a bundle has the file metadata/annotations.yaml";
    MANIFESTS_MISSING = "manifests-missing": "a bundle has files in manifests/";
    SUBDIRECTORY = "subdirectory": "manifests/ has no folders in it";
    SYNTAX = "syntax": "every file in manifests/ is YAML or JSON";
    NOT_AN_OBJECT = "not-an-object": "every document is one Kubernetes object";
    KIND_MISSING = "kind-missing": "every object has a kind";
    FIELD_TYPE = "field-type": "every field has the type that its API gives it";
    PROPERTY = "property": "properties have a type and a value";
    CSV_MISSING = "csv-missing": "a bundle has a ClusterServiceVersion";
    CSV_DUPLICATE = "csv-duplicate": "a bundle has one ClusterServiceVersion";
}
