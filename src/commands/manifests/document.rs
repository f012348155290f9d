//! A document of the manifests, and names that all documents use.

use anyhow::Context as _;
use serde_json::{Value, json};

/// An object, and a comment for its readers.
pub(super) struct Document {
    comment: &'static str,
    pub(super) object: Value,
}

/// The namespace of the operator.
pub(super) const NAMESPACE: &str = "windlass-system";

/// The default name of objects.
pub(in crate::commands) const NAME: &str = "windlass";

impl Document {
    pub(super) fn new(object: Value) -> Self {
        Self { comment: "", object }
    }

    pub(super) fn commented(comment: &'static str, object: Value) -> Self {
        Self { comment, object }
    }

    pub(super) fn text(&self) -> anyhow::Result<String> {
        let comment: String = self.comment.lines().map(|line| format!("# {line}\n")).collect();
        let yaml = serde_saphyr::to_string(&self.object).context("cannot write YAML")?;
        Ok(format!("{comment}{}\n", yaml.trim_end()))
    }
}

pub(super) fn labels() -> Value {
    json!({ "app.kubernetes.io/name": NAME })
}
