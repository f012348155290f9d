//! Custom resources that receive traffic, and the expected answers.

use serde_json::Value;

use crate::sample;

/// A custom resource that receives traffic.
#[derive(Clone, Debug)]
pub struct Resource {
    /// The API group.
    pub group: String,
    /// The plural name.
    pub plural: String,
    /// Whether it is namespaced.
    pub namespaced: bool,
    /// The versions that clients use.
    pub versions: Vec<String>,
    /// Versions that some revisions do not serve. A request may get 404 because the version is not served; any
    /// other error is a failure.
    pub optional_versions: Vec<String>,
    /// An example object without a name.
    pub example: Value,
    /// The expected content of answers.
    pub expectation: Expectation,
}

/// The expected content of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// Only the requested version.
    Version,
    /// The result of the sample operator's conversion.
    Converted,
    /// The results of all webhooks of the sample operator.
    Admitted,
}

impl Resource {
    /// The sample's widgets at `versions`; created at v1, or at v2 if `versions` lacks v1.
    pub fn widgets(versions: &[&str], expectation: Expectation) -> Self {
        Self {
            group: sample::GROUP.to_owned(),
            plural: "widgets".to_owned(),
            namespaced: true,
            versions: versions.iter().map(|version| (*version).to_owned()).collect(),
            optional_versions: Vec::new(),
            example: sample::widget(if versions.contains(&"v1") { "v1" } else { "v2" }),
            expectation,
        }
    }

    /// The same resource, used at `versions` too while they are served.
    #[must_use]
    pub fn with_optional(self, versions: &[&str]) -> Self {
        let optional_versions = versions.iter().map(|version| (*version).to_owned()).collect();
        Self {
            optional_versions,
            ..self
        }
    }

    /// The path of the collection in `version`.
    pub fn path(&self, namespace: &str, version: &str) -> String {
        let Self { group, plural, .. } = self;
        if self.namespaced {
            format!("/apis/{group}/{version}/namespaces/{namespace}/{plural}")
        } else {
            format!("/apis/{group}/{version}/{plural}")
        }
    }

    /// Describes what is wrong with an answered object.
    pub fn problem(&self, answer: &Value) -> Option<String> {
        match self.expectation {
            Expectation::Version => None,
            Expectation::Converted => sample::misconverted(&self.example, answer),
            Expectation::Admitted => {
                sample::misconverted(&self.example, answer).or_else(|| sample::unmutated(answer))
            }
        }
    }
}
