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
            example: sample::widget(if versions.contains(&"v1") { "v1" } else { "v2" }),
            expectation,
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
