//! What the status of an ExtensionConfig says, as those read it who call its server.
//!
//! They require `Discovered` to be true for the generation that they see, and all of `handlers` (`validateExtensionConfig` of Cluster
//! API's `core/reconcilers/extensionconfig`): all of it is written at once, or they could see one without the other.

use jiff::Timestamp;
use runtime_hooks::{HookReference, discovery::Discovered};
use serde_json::{Value, json};
use windlass_object::object;

/// What is known of an ExtensionConfig.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Discovery {
    /// Nobody is to be asked, by its annotation.
    Paused,
    /// What its server answers.
    Discovered(Discovered),
    /// It is not known, for this reason. What was known before stays.
    NotDiscovered(String),
}

/// A condition, but for when it changed.
struct Word {
    condition_type: &'static str,
    is_true: bool,
    reason: &'static str,
    message: String,
}

/// The longest message that the CRD takes in conditions of v1beta1; others may be longer.
const LONGEST_MESSAGE: usize = 10_240;

/// Where a version has its conditions, and where those of before.
struct ConditionPlaces {
    conditions: &'static [&'static str],
    legacy: &'static [&'static str],
}

/// The patch that makes the status of `config` say what is known; `None` where it does. It is guarded by the resourceVersion.
pub(super) fn status_patch(config: &Value, discovery: &Discovery, now: Timestamp) -> Option<Value> {
    let live = config.get("status").cloned().unwrap_or_else(|| json!({}));
    let places = ConditionPlaces::of(config);
    let mut status = live.clone();
    for word in discovery.words() {
        let generation = config.pointer("/metadata/generation");
        let mut said = json!({
            "type": word.condition_type, "status": word.status(), "reason": word.reason, "message": word.message,
        });
        if let Some(generation) = generation {
            said["observedGeneration"] = generation.clone();
        }
        put(at(&mut status, places.conditions), said, now);
    }
    if let Some(said) = discovery.legacy() {
        put(at(&mut status, places.legacy), said, now);
    }
    if let Discovery::Discovered(discovered) = discovery {
        let name = object::text(config, "/metadata/name").unwrap_or_default();
        let handlers = discovered.handlers.iter();
        status["handlers"] = handlers.map(|handler| handler.to_status(name)).collect();
    }
    let is_said = status == live
        || is_nothing(&status["handlers"]) && without_handlers(&status) == without_handlers(&live);
    (!is_said).then(|| {
        json!({
            "metadata": { "resourceVersion": config["metadata"]["resourceVersion"] },
            "status": status,
        })
    })
}

/// Whether the server of `config` has failed when it was asked last.
pub(super) fn has_failed(config: &Value) -> bool {
    let conditions = ConditionPlaces::of(config).conditions.join("/");
    let mut conditions = object::items(config, &format!("/status/{conditions}")).iter();
    conditions.any(|condition| condition["type"] == "Discovered" && condition["status"] == "False")
}

fn at<'a>(status: &'a mut Value, path: &[&str]) -> &'a mut Value {
    path.iter().fold(status, |place, name| &mut place[*name])
}

fn is_nothing(handlers: &Value) -> bool {
    handlers.as_array().is_none_or(Vec::is_empty)
}

/// The same, and whether there are any handlers: none at all is as good as an empty list.
fn without_handlers(status: &Value) -> (Value, bool) {
    let mut rest = status.clone();
    let handlers = rest.as_object_mut().and_then(|fields| fields.remove("handlers"));
    (rest, handlers.is_none_or(|handlers| is_nothing(&handlers)))
}

/// Puts a condition into a list of conditions. When it changed last stays as it is, unless it does now.
fn put(conditions: &mut Value, mut said: Value, now: Timestamp) {
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Value::Array(conditions) = conditions else {
        return;
    };
    let known = conditions.iter_mut().find(|known| known["type"] == said["type"]);
    let since = known.as_ref().filter(|known| known["status"] == said["status"]);
    said["lastTransitionTime"] = match since.and_then(|known| known.get("lastTransitionTime")) {
        Some(since) => since.clone(),
        None => now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into(),
    };
    match known {
        Some(known) => *known = said,
        None => conditions.push(said),
    }
}

// === impl ConditionPlaces ===

impl ConditionPlaces {
    fn of(config: &Value) -> Self {
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

// === impl Discovery ===

impl Discovery {
    /// The conditions that say it.
    fn words(&self) -> Vec<Word> {
        let paused = Word {
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
            Self::Discovered(discovered) => Word {
                condition_type: "Discovered",
                is_true: true,
                reason: "Discovered",
                message: remarks(discovered).unwrap_or_default(),
            },
            Self::NotDiscovered(problem) => Word {
                condition_type: "Discovered",
                is_true: false,
                reason: "NotDiscovered",
                message: message(problem),
            },
        };
        vec![discovered, paused]
    }

    /// The condition of v1beta1, which says less.
    fn legacy(&self) -> Option<Value> {
        match self {
            Self::Paused => None,
            Self::Discovered(_) => Some(json!({ "type": "Discovered", "status": "True" })),
            Self::NotDiscovered(problem) => Some(json!({
                "type": "Discovered", "status": "False", "severity": "Error", "reason": "DiscoveryFailed",
                "message": message(problem),
            })),
        }
    }
}

/// Says which handlers are not as they should be, where any are: those that are left out of the status, since a reader would not know
/// what to call them with, and those that answer what will not be asked for much longer.
pub(super) fn remarks(discovered: &Discovered) -> Option<String> {
    let listed = |handlers: &[(String, HookReference)]| {
        let handlers = handlers.iter().map(|(name, hook)| format!("{name} ({hook})"));
        handlers.collect::<Vec<_>>().join(", ")
    };
    let remarks = [
        ("Left out, as their hooks are not known", &discovered.unknown),
        (
            "Deprecated, to be replaced by a newer version",
            &discovered.deprecated,
        ),
    ];
    let remarks = remarks.into_iter().filter(|(_, handlers)| !handlers.is_empty());
    let remarks: Vec<_> = remarks
        .map(|(remark, handlers)| format!("{remark}: {}", listed(handlers)))
        .collect();
    (!remarks.is_empty()).then(|| remarks.join("; "))
}

fn message(problem: &str) -> String {
    let message = format!("Error in discovery: {problem}");
    message.chars().take(LONGEST_MESSAGE).collect()
}

// === impl Word ===

impl Word {
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
        Discovery::Discovered(read_answer(answer.to_string().as_bytes(), &Catalog::of_cluster_api()).unwrap())
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// The object after the patch, if there is one.
    fn patched(mut config: Value, discovery: &Discovery, second: i64) -> Option<Value> {
        let patch = status_patch(&config, discovery, at(second))?;
        assert_eq!(patch["metadata"], json!({"resourceVersion": "7"}));
        json_patch::merge(&mut config, &patch);
        assert_eq!(
            status_patch(&config, discovery, at(second + 100)),
            None,
            "it is said"
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
    fn readers_find_all_that_they_require() {
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
            "the last good ones stay"
        );
        let legacy = &failed["status"]["deprecated"]["v1beta1"]["conditions"];
        assert_eq!(legacy[0]["reason"], "DiscoveryFailed");
        assert_eq!(legacy.as_array().unwrap().len(), 1);

        let paused = patched(failed.clone(), &Discovery::Paused, 120).unwrap();
        assert_eq!(condition(&paused, "Paused")["status"], "True");
        assert_eq!(
            condition(&paused, "Discovered"),
            discovered,
            "what is known stays"
        );

        let back = patched(paused, &handlers(&["second"]), 180).unwrap();
        assert_eq!(back["status"]["handlers"].as_array().unwrap().len(), 1);
        assert_eq!(
            back["status"]["deprecated"]["v1beta1"]["conditions"][0].get("severity"),
            None
        );
    }

    #[test]
    fn handlers_of_unknown_hooks_are_left_out_and_told() {
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
            "Left out, as their hooks are not known: second (hooks.runtime.cluster.x-k8s.io/v1alpha1, Hook=BeforeCoffee)"
        );
    }

    #[test]
    fn handlers_of_deprecated_versions_are_told() {
        let Discovery::Discovered(mut discovered) = handlers(&["first"]) else {
            unreachable!()
        };
        assert_eq!(remarks(&discovered), None);
        discovered.deprecated = vec![("first".into(), discovered.handlers[0].hook.clone())];
        let deprecated = "Deprecated, to be replaced by a newer version: first (hooks.runtime.cluster.x-k8s.io/v1alpha1, Hook=GeneratePatches)";
        assert_eq!(remarks(&discovered).unwrap(), deprecated);
        discovered.unknown = discovered.deprecated.clone();
        let both = remarks(&discovered).unwrap();
        assert!(
            both.starts_with("Left out, ") && both.ends_with(&format!("; {deprecated}")),
            "{both}"
        );
    }

    #[test]
    fn what_others_say_stays() {
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
    fn the_older_version_has_its_conditions_elsewhere() {
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
    fn a_new_generation_is_said_although_nothing_else_changes() {
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
