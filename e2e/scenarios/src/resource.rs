//! Custom resources that traffic is sent to, and what their answers must show.

use serde_json::Value;

use crate::sample;

/// One custom resource that traffic is sent to.
#[derive(Clone, Debug)]
pub struct Resource {
    /// The API group.
    pub group: String,
    /// The plural name.
    pub plural: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// The versions that clients use.
    pub versions: Vec<String>,
    /// An object to create, complete but for its name.
    pub example: Value,
    /// What each answer must show besides its success.
    pub expectation: Expectation,
}

/// What an answer must show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// Nothing but the version that was asked for.
    Version,
    /// What the sample operator's conversion does.
    Converted,
    /// What all webhooks of the sample operator do.
    Admitted,
}

// === impl Resource ===

impl Resource {
    /// The sample's widgets at `versions`, created at v1, or at v2 where v1 is none of them.
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

    /// What is wrong with an object that was answered.
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
