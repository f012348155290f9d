//! The namespaces that an operator watches after an install: never more than before unless that is said.

use serde_json::Value;
use windlass_object::{names, object};

/// The namespaces that an operator is to watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WatchNamespaces {
    /// None: all.
    pub(super) names: Vec<String>,
    /// Nothing was said, and the installed operator watches these.
    pub(super) kept: bool,
    /// Whether the field is ours: said now, or by this command before.
    ours: bool,
}

// === impl WatchNamespaces ===

impl WatchNamespaces {
    /// What was said now, or what the BundleDeployment `before` says.
    pub(super) fn new(said: &[String], all: bool, before: Option<&Value>) -> Self {
        if all || !said.is_empty() {
            return Self {
                names: said.to_vec(),
                kept: false,
                ours: before.is_some() || !said.is_empty(),
            };
        }
        let names: Vec<String> = before
            .map(|before| object::items(before, "/spec/watchNamespaces"))
            .unwrap_or_default()
            .iter()
            .filter_map(|name| name.as_str().map(str::to_owned))
            .collect();
        Self {
            kept: !names.is_empty(),
            ours: !names.is_empty() && before.is_some_and(is_ours),
            names,
        }
    }

    /// Whether the command writes the field. What others have set, it leaves to them.
    pub(super) fn is_written(&self) -> bool {
        self.ours
    }
}

/// Whether this command has set the field: what an apply leaves out that the same manager applied before, goes.
fn is_ours(before: &Value) -> bool {
    object::items(before, "/metadata/managedFields")
        .iter()
        .any(|entry| {
            object::text(entry, "/manager") == Some(names::COMMAND)
                && entry.pointer("/fieldsV1/f:spec/f:watchNamespaces").is_some()
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_upgrade_never_watches_more_unless_that_is_said() {
        let before = |manager: &str| {
            json!({
                "metadata": {"managedFields": [
                    {"manager": manager, "fieldsV1": {"f:spec": {"f:watchNamespaces": {}}}},
                ]},
                "spec": {"watchNamespaces": ["a", "b"]},
            })
        };
        let ours = before(names::COMMAND);
        let others = before("kubectl");
        let unscoped = json!({"spec": {}});
        for (said, all, before, names, kept, written) in [
            (&[][..], false, None, &[][..], false, false),
            (&["c"], false, None, &["c"], false, true),
            (&[], true, None, &[], false, false),
            (&[], false, Some(&ours), &["a", "b"], true, true),
            (&[], false, Some(&others), &["a", "b"], true, false),
            (&[], false, Some(&unscoped), &[], false, false),
            (&["c"], false, Some(&ours), &["c"], false, true),
            (&[], true, Some(&ours), &[], false, true),
        ] {
            let said: Vec<String> = said.iter().map(|name| (*name).to_owned()).collect();
            let watch = WatchNamespaces::new(&said, all, before);
            assert_eq!(watch.names, names, "{before:?}");
            assert_eq!((watch.kept, watch.is_written()), (kept, written), "{before:?}");
        }
    }
}
