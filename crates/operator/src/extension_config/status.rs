//! Status of an ExtensionConfig, as expected by the managers that call its server.
//!
//! They require `Discovered` to be true for the observed generation, and all `handlers`
//! (`validateExtensionConfig` of Cluster API's `core/reconcilers/extensionconfig`). One patch writes both, so
//! that a reader cannot see one without the other.

use jiff::Timestamp;
use runtime_hooks::{HookReference, discovery::Discovered};
use serde_json::{Value, json};
use windlass_object::object;

/// Result of the discovery of an ExtensionConfig.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Discovery {
    /// Discovery is paused by an annotation.
    Paused,
    /// The handlers of the server.
    Discovered(Discovered),
    /// Discovery failed for this reason. The handlers in the status stay.
    NotDiscovered(String),
}

/// A condition without its transition time.
struct DiscoveryCondition {
    condition_type: &'static str,
    is_true: bool,
    reason: &'static str,
    message: String,
}

/// Maximum length of a message in a v1beta1 condition. Other conditions allow more.
const MAX_MESSAGE_LENGTH: usize = 10_240;

/// Paths of the conditions and of the legacy conditions in an API version.
struct ConditionPaths {
    conditions: &'static [&'static str],
    legacy: &'static [&'static str],
}

/// Returns the patch for the status of `config`, or `None` if it is up to date. The patch requires the
/// observed resourceVersion.
pub(super) fn status_patch(config: &Value, discovery: &Discovery, now: Timestamp) -> Option<Value> {
    let live = config.get("status").cloned().unwrap_or_else(|| json!({}));
    let paths = ConditionPaths::from_config(config);
    let mut status = live.clone();
    for entry in discovery.conditions() {
        let generation = config.pointer("/metadata/generation");
        let mut condition = json!({
            "type": entry.condition_type, "status": entry.status(), "reason": entry.reason, "message": entry.message,
        });
        if let Some(generation) = generation {
            condition["observedGeneration"] = generation.clone();
        }
        set_condition(field_mut(&mut status, paths.conditions), condition, now);
    }
    if let Some(condition) = discovery.legacy_condition() {
        set_condition(field_mut(&mut status, paths.legacy), condition, now);
    }
    if let Discovery::Discovered(discovered) = discovery {
        let name = object::text(config, "/metadata/name").unwrap_or_default();
        let handlers = discovered.handlers.iter();
        status["handlers"] = handlers.map(|handler| handler.to_status(name)).collect();
    }
    let is_up_to_date = status == live
        || has_no_handlers(&status["handlers"]) && without_handlers(&status) == without_handlers(&live);
    (!is_up_to_date).then(|| {
        json!({
            "metadata": { "resourceVersion": config["metadata"]["resourceVersion"] },
            "status": status,
        })
    })
}

/// Reports whether the last discovery of `config` failed.
pub(super) fn has_failed(config: &Value) -> bool {
    let conditions = ConditionPaths::from_config(config).conditions.join("/");
    let mut conditions = object::items(config, &format!("/status/{conditions}")).iter();
    conditions.any(|condition| condition["type"] == "Discovered" && condition["status"] == "False")
}

fn field_mut<'a>(status: &'a mut Value, path: &[&str]) -> &'a mut Value {
    path.iter().fold(status, |place, name| &mut place[*name])
}

fn has_no_handlers(handlers: &Value) -> bool {
    handlers.as_array().is_none_or(Vec::is_empty)
}

/// Returns the status without its handlers, and whether it has none. A missing list counts as empty.
fn without_handlers(status: &Value) -> (Value, bool) {
    let mut rest = status.clone();
    let handlers = rest.as_object_mut().and_then(|fields| fields.remove("handlers"));
    (rest, handlers.is_none_or(|handlers| has_no_handlers(&handlers)))
}

/// Sets a condition. `lastTransitionTime` changes only with the status.
fn set_condition(conditions: &mut Value, mut condition: Value, now: Timestamp) {
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Value::Array(conditions) = conditions else {
        return;
    };
    let known = conditions
        .iter_mut()
        .find(|known| known["type"] == condition["type"]);
    let since = known
        .as_ref()
        .filter(|known| known["status"] == condition["status"]);
    condition["lastTransitionTime"] = match since.and_then(|known| known.get("lastTransitionTime")) {
        Some(since) => since.clone(),
        None => now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into(),
    };
    match known {
        Some(known) => *known = condition,
        None => conditions.push(condition),
    }
}

impl ConditionPaths {
    fn from_config(config: &Value) -> Self {
        match object::text(config, "/apiVersion") {
            Some("runtime.cluster.x-k8s.io/v1alpha1") => Self {
                conditions: &["v1beta2", "conditions"],
                legacy: &["conditions"],
            },
            _ => Self {
                conditions: &["conditions"],
                legacy: &["deprecated", "v1beta1", "conditions"],
            },
        }
    }
}

impl Discovery {
    /// Returns the conditions for this result.
    fn conditions(&self) -> Vec<DiscoveryCondition> {
        let paused = DiscoveryCondition {
            condition_type: "Paused",
            is_true: *self == Self::Paused,
            reason: if *self == Self::Paused {
                "Paused"
            } else {
                "NotPaused"
            },
            message: match self {
                Self::Paused => "ExtensionConfig has the cluster.x-k8s.io/paused annotation".to_owned(),
                _ => String::new(),
            },
        };
        let discovered = match self {
            Self::Paused => return vec![paused],
            Self::Discovered(discovered) => DiscoveryCondition {
                condition_type: "Discovered",
                is_true: true,
                reason: "Discovered",
                message: remarks(discovered).unwrap_or_default(),
            },
            Self::NotDiscovered(problem) => DiscoveryCondition {
                condition_type: "Discovered",
                is_true: false,
                reason: "NotDiscovered",
                message: failure_message(problem),
            },
        };
        vec![discovered, paused]
    }

    /// Returns the v1beta1 condition, which has fewer fields.
    fn legacy_condition(&self) -> Option<Value> {
        match self {
            Self::Paused => None,
            Self::Discovered(_) => Some(json!({ "type": "Discovered", "status": "True" })),
            Self::NotDiscovered(problem) => Some(json!({
                "type": "Discovered", "status": "False", "severity": "Error", "reason": "DiscoveryFailed",
                "message": failure_message(problem),
            })),
        }
    }
}

/// Describes handlers with problems: those with unknown hooks, which are omitted from the status because no
/// reader could call them, and those of deprecated versions.
pub(super) fn remarks(discovered: &Discovered) -> Option<String> {
    let listed = |handlers: &[(String, HookReference)]| {
        let handlers = handlers.iter().map(|(name, hook)| format!("{name} ({hook})"));
        handlers.collect::<Vec<_>>().join(", ")
    };
    let remarks = [
        ("Omitted because their hooks are unknown", &discovered.unknown),
        ("Deprecated, replace with a newer version", &discovered.deprecated),
    ];
    let remarks = remarks.into_iter().filter(|(_, handlers)| !handlers.is_empty());
    let remarks: Vec<_> = remarks
        .map(|(remark, handlers)| format!("{remark}: {}", listed(handlers)))
        .collect();
    (!remarks.is_empty()).then(|| remarks.join("; "))
}

fn failure_message(problem: &str) -> String {
    let message = format!("Error in discovery: {problem}");
    message.chars().take(MAX_MESSAGE_LENGTH).collect()
}

impl DiscoveryCondition {
    fn status(&self) -> &'static str {
        if self.is_true { "True" } else { "False" }
    }
}

#[cfg(test)]
mod tests {
    use runtime_hooks::{Catalog, discovery::read_answer};

    use super::*;

    fn handlers(names: &[&str]) -> Discovery {
        let hook =
            json!({"apiVersion": "hooks.runtime.cluster.x-k8s.io/v1alpha1", "hook": "GeneratePatches"});
        let handlers: Vec<_> = names
            .iter()
            .map(|name| json!({"name": name, "requestHook": hook}))
            .collect();
        let answer = json!({"status": "Success", "handlers": handlers});
        Discovery::Discovered(read_answer(answer.to_string().as_bytes(), &Catalog::cluster_api()).unwrap())
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// Returns the object after the patch, if there is one.
    fn patched(mut config: Value, discovery: &Discovery, second: i64) -> Option<Value> {
        let patch = status_patch(&config, discovery, at(second))?;
        assert_eq!(patch["metadata"], json!({"resourceVersion": "7"}));
        json_patch::merge(&mut config, &patch);
        assert_eq!(
            status_patch(&config, discovery, at(second + 100)),
            None,
            "the status is up to date"
        );
        Some(config)
    }

    fn condition<'a>(config: &'a Value, condition_type: &str) -> &'a Value {
        let mut conditions = config["status"]["conditions"].as_array().unwrap().iter();
        conditions
            .find(|condition| condition["type"] == condition_type)
            .unwrap()
    }

    #[test]
    fn the_status_has_all_that_its_readers_require() {
        let new = json!({"metadata": {"name": "ext1", "resourceVersion": "7", "generation": 3}});
        let found = patched(new, &handlers(&["first", "second"]), 0).unwrap();
        assert_eq!(
            *condition(&found, "Discovered"),
            json!({
                "type": "Discovered", "status": "True", "reason": "Discovered", "message": "", "observedGeneration": 3,
                "lastTransitionTime": "1970-01-01T00:00:00Z",
            })
        );
        assert_eq!(condition(&found, "Paused")["status"], "False");
        assert_eq!(condition(&found, "Paused")["reason"], "NotPaused");
        assert_eq!(found["status"]["handlers"][1]["name"], "second.ext1");

        let failed = patched(found.clone(), &Discovery::NotDiscovered("no answer".into()), 60).unwrap();
        let discovered = condition(&failed, "Discovered");
        assert_eq!(discovered["message"], "Error in discovery: no answer");
        assert_eq!(discovered["reason"], "NotDiscovered");
        assert_eq!([&found, &failed].map(has_failed), [false, true]);
        assert_eq!(discovered["lastTransitionTime"], "1970-01-01T00:01:00Z");
        assert_eq!(
            failed["status"]["handlers"], found["status"]["handlers"],
            "the last discovered handlers stay"
        );
        let legacy = &failed["status"]["deprecated"]["v1beta1"]["conditions"];
        assert_eq!(legacy[0]["reason"], "DiscoveryFailed");
        assert_eq!(legacy.as_array().unwrap().len(), 1);

        let paused = patched(failed.clone(), &Discovery::Paused, 120).unwrap();
        assert_eq!(condition(&paused, "Paused")["status"], "True");
        assert_eq!(condition(&paused, "Discovered"), discovered, "handlers stay");

        let back = patched(paused, &handlers(&["second"]), 180).unwrap();
        assert_eq!(back["status"]["handlers"].as_array().unwrap().len(), 1);
        assert_eq!(
            back["status"]["deprecated"]["v1beta1"]["conditions"][0].get("severity"),
            None
        );
    }

    #[test]
    fn handlers_of_unknown_hooks_are_omitted_and_reported() {
        let config = json!({"metadata": {"name": "ext1", "resourceVersion": "7", "generation": 3}});
        let mut newer = handlers(&["first"]);
        let Discovery::Discovered(discovered) = &mut newer else {
            unreachable!()
        };
        let mut hook = discovered.handlers[0].hook.clone();
        hook.hook = "BeforeCoffee".into();
        discovered.unknown.push(("second".into(), hook));
        let found = patched(config, &newer, 0).unwrap();
        assert_eq!(found["status"]["handlers"].as_array().unwrap().len(), 1);
        assert_eq!(
            condition(&found, "Discovered")["message"],
            "Omitted because their hooks are unknown: second (hooks.runtime.cluster.x-k8s.io/v1alpha1, Hook=BeforeCoffee)"
        );
    }

    #[test]
    fn handlers_of_deprecated_versions_are_reported() {
        let Discovery::Discovered(mut discovered) = handlers(&["first"]) else {
            unreachable!()
        };
        assert_eq!(remarks(&discovered), None);
        discovered.deprecated = vec![("first".into(), discovered.handlers[0].hook.clone())];
        let deprecated = "Deprecated, replace with a newer version: first (hooks.runtime.cluster.x-k8s.io/v1alpha1, Hook=GeneratePatches)";
        assert_eq!(remarks(&discovered).unwrap(), deprecated);
        discovered.unknown = discovered.deprecated.clone();
        let both = remarks(&discovered).unwrap();
        assert!(
            both.starts_with("Omitted because ") && both.ends_with(&format!("; {deprecated}")),
            "{both}"
        );
    }

    #[test]
    fn conditions_of_other_controllers_stay() {
        let theirs = json!({"type": "Other", "status": "True", "reason": "a", "message": "b", "lastTransitionTime": "c"});
        let config = json!({
            "metadata": {"name": "ext1", "resourceVersion": "7", "generation": 3},
            "status": {"conditions": [theirs], "deprecated": {"v1beta1": {"conditions": [theirs]}}},
        });
        let found = patched(config, &handlers(&[]), 0).unwrap();
        assert_eq!(*condition(&found, "Other"), theirs);
        assert_eq!(found["status"]["deprecated"]["v1beta1"]["conditions"][0], theirs);
    }

    #[test]
    fn the_older_version_has_its_conditions_in_other_fields() {
        let config = json!({
            "apiVersion": "runtime.cluster.x-k8s.io/v1alpha1",
            "metadata": {"name": "ext1", "resourceVersion": "7", "generation": 3},
        });
        let failed = patched(config, &Discovery::NotDiscovered("no answer".into()), 0).unwrap();
        assert_eq!(failed["status"]["conditions"][0]["severity"], "Error");
        assert_eq!(
            failed["status"]["v1beta2"]["conditions"][0]["observedGeneration"],
            3
        );
        assert!(has_failed(&failed));
    }

    #[test]
    fn a_new_generation_is_recorded_even_if_nothing_else_changes() {
        let config = json!({"metadata": {"name": "ext1", "resourceVersion": "7", "generation": 3}});
        let mut found = patched(config, &handlers(&["first"]), 0).unwrap();
        found["metadata"]["generation"] = 4.into();
        let again = patched(found, &handlers(&["first"]), 60).unwrap();
        assert_eq!(condition(&again, "Discovered")["observedGeneration"], 4);
        assert_eq!(
            condition(&again, "Discovered")["lastTransitionTime"],
            "1970-01-01T00:00:00Z"
        );
    }
}
