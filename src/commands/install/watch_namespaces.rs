//! The namespaces that an operator watches: an upgrade adds namespaces only on request.

use serde_json::Value;
use windlass_object::{names, object};

/// The namespaces that an operator watches after the install.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WatchNamespaces {
    /// Names of the namespaces; empty for all.
    pub(super) names: Vec<String>,
    /// Whether they are taken from the installed operator, without a flag.
    pub(super) kept: bool,
    /// Whether this command manages the field, now or before.
    ours: bool,
}

impl WatchNamespaces {
    /// Returns the namespaces from the flags, or else from the BundleDeployment `before`.
    pub(super) fn new(requested: &[String], all: bool, before: Option<&Value>) -> Self {
        if all || !requested.is_empty() {
            return Self {
                names: requested.to_vec(),
                kept: false,
                ours: before.is_some() || !requested.is_empty(),
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
            ours: !names.is_empty() && before.is_some_and(is_set_by_command),
            names,
        }
    }

    /// Reports whether the command writes the field. It never changes the value of another field manager.
    pub(super) fn is_written(&self) -> bool {
        self.ours
    }
}

/// Reports whether this command has set the field: omitting it from an apply would remove it.
fn is_set_by_command(before: &Value) -> bool {
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
    fn an_upgrade_watches_more_namespaces_only_on_request() {
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
        for (requested, all, before, names, kept, written) in [
            (&[][..], false, None, &[][..], false, false),
            (&["c"], false, None, &["c"], false, true),
            (&[], true, None, &[], false, false),
            (&[], false, Some(&ours), &["a", "b"], true, true),
            (&[], false, Some(&others), &["a", "b"], true, false),
            (&[], false, Some(&unscoped), &[], false, false),
            (&["c"], false, Some(&ours), &["c"], false, true),
            (&[], true, Some(&ours), &[], false, true),
        ] {
            let requested: Vec<String> = requested.iter().map(|name| (*name).to_owned()).collect();
            let watch = WatchNamespaces::new(&requested, all, before);
            assert_eq!(watch.names, names, "{before:?}");
            assert_eq!((watch.kept, watch.is_written()), (kept, written), "{before:?}");
        }
    }
}
