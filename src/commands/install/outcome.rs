//! The progress and result of an install, from the status of its BundleDeployment.

use std::time::Duration;

use anyhow::bail;
use serde_json::Value;
use windlass_object::{
    object::{is_terminating, items, text},
    text::OneLine,
};

use crate::{
    commands::wait::{Condition, Judgement, condition},
    terminal::WaitStatus,
};

/// How long a failure must persist to count, if it may be outdated or about to resolve.
const LASTING: Duration = Duration::from_secs(15);

/// Time without a status after which the operator is reported as possibly down.
const MISSED: Duration = Duration::from_secs(60);

/// The conditions of an install in order.
const STEPS: [&str; 5] = ["Accepted", "Installed", "Available", "Armed", "Migrated"];

/// A BundleDeployment whose install is in progress.
#[derive(Debug)]
pub(in crate::commands) struct Watched {
    uid: String,
    source: Value,
    /// Whether the spec was changed, so that only a status of the new generation counts.
    is_changed: bool,
    operator_namespace: String,
    /// The latest failure, and when it was first seen.
    failing: Option<(String, Duration)>,
}

impl Watched {
    /// Returns a watcher after a write changed `before` to `written`.
    pub(in crate::commands) fn new(
        before: Option<&Value>,
        written: &Value,
        operator_namespace: &str,
    ) -> Self {
        let generation = before.map(|before| &before["metadata"]["generation"]);
        Self {
            uid: text(written, "/metadata/uid").unwrap_or_default().to_owned(),
            source: written["spec"]["source"].clone(),
            is_changed: generation != Some(&written["metadata"]["generation"]),
            operator_namespace: operator_namespace.to_owned(),
            failing: None,
        }
    }

    /// Judges the progress of the install: `Done` is the installed BundleDeployment.
    ///
    /// # Errors
    ///
    /// When the install cannot proceed without a user's action.
    pub(in crate::commands) fn judge(
        &mut self,
        object: Option<&Value>,
        after: Duration,
    ) -> anyhow::Result<Judgement<Value>> {
        let Some(object) = object.filter(|object| text(object, "/metadata/uid") == Some(&self.uid)) else {
            bail!("the BundleDeployment was deleted while waiting");
        };
        if is_terminating(object) {
            bail!("the BundleDeployment is being deleted");
        }
        if object["spec"]["source"] != self.source {
            bail!("another client changed the source of the BundleDeployment; this command no longer waits");
        }
        let Some(ready) = condition(object, "Ready") else {
            return Ok(Judgement::Wait(self.missing_status(after).into()));
        };
        if ready.status == "True" || is_rewriting(object) {
            return Ok(Judgement::Done(object.clone()));
        }
        let progressing = condition(object, "Progressing");
        let is_failure = progressing.is_some_and(|progressing| progressing.status == "False");
        let message = wait_status(object, &ready);
        if is_failure {
            self.fail(object, &message.to_string(), after)?;
        } else {
            self.failing = None;
        }
        Ok(Judgement::Wait(message))
    }

    /// Ends the wait if a failure persists.
    fn fail(&mut self, object: &Value, message: &str, after: Duration) -> anyhow::Result<()> {
        let since = match &self.failing {
            Some((failure, since)) if failure == message => *since,
            _ => after,
        };
        self.failing = Some((message.to_owned(), since));
        let accepted = condition(object, "Accepted");
        let is_refused = accepted.is_some_and(|accepted| accepted.status == "False");
        if (is_refused && self.is_changed) || after.saturating_sub(since) >= LASTING {
            let what = if is_refused {
                "the install was refused"
            } else {
                "the install failed"
            };
            let name = text(object, "/metadata/name").unwrap_or_default();
            let give_up = match object.pointer("/status/installed/revision") {
                Some(revision) => format!("windlass rollback {name} --to {revision}"),
                None => format!("windlass uninstall {name}"),
            };
            bail!(
                "{what}: {}; the operator keeps retrying, to give up run {give_up}",
                OneLine(message)
            );
        }
        Ok(())
    }

    fn missing_status(&self, after: Duration) -> String {
        let unseen = "the operator has not reported a status yet";
        if after < MISSED {
            return unseen.to_owned();
        }
        format!(
            "{unseen}: is it running? kubectl --namespace {} get pods",
            self.operator_namespace
        )
    }
}

/// Reports whether everything is armed and only stored objects are still rewritten, which can take hours and
/// disturbs no request.
fn is_rewriting(object: &Value) -> bool {
    let holds = |step: &str| condition(object, step).is_some_and(|condition| condition.status == "True");
    let (migrated, earlier) = (STEPS[4], &STEPS[..4]);
    object.pointer("/status/next").is_none()
        && object.pointer("/status/installed").is_some()
        && earlier.iter().all(|step| holds(step))
        && !holds(migrated)
        && holds("Progressing")
}

/// Returns the current step and its message. While a revision is installed, the conditions of most steps
/// describe that revision.
fn wait_status(object: &Value, ready: &Condition<'_>) -> WaitStatus {
    let is_upgrade =
        object.pointer("/status/next").is_some() && object.pointer("/status/installed").is_some();
    let is_done = |step: &str| condition(object, step).is_some_and(|condition| condition.status == "True");
    let steps = if is_upgrade {
        vec![(STEPS[0], is_done(STEPS[0])), ("Upgrade", false)]
    } else {
        STEPS.map(|step| (step, is_done(step))).to_vec()
    };
    let message = format!("{} ({})", ready.message, ready.reason);
    WaitStatus::from_steps(message, steps.into_iter().chain([("Ready", false)]))
}

/// Describes the installed bundle in a sentence.
pub(in crate::commands) fn summary(object: &Value) -> String {
    let bundle = text(object, "/status/installed/name").unwrap_or("the bundle");
    let namespace = text(object, "/spec/namespace").unwrap_or_default();
    let conversions = items(object, "/status/conversions").len();
    let webhooks = items(object, "/status/webhooks");
    let of = |kind: &str| {
        let types = webhooks.iter().map(|webhook| text(webhook, "/type"));
        types.filter(|of| *of == Some(kind)).count()
    };
    let others = ["ExtensionConfig", "APIService"].map(|kind| (of(kind), kind));
    let configurations = webhooks.len() - others.iter().map(|(count, _)| count).sum::<usize>();
    let others = others.into_iter().filter(|(count, _)| *count > 0);
    let others: String = others
        .map(|(count, kind)| format!(", {}", pluralized(count, kind)))
        .collect();
    let rest = if is_rewriting(object) {
        "; stored objects are still being rewritten, see windlass status"
    } else {
        ""
    };
    format!(
        "{bundle} is installed in {namespace}; armed: {}, {}{others}{rest}",
        pluralized(conversions, "conversion"),
        pluralized(configurations, "webhook configuration")
    )
}

fn pluralized(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const START: Duration = Duration::ZERO;

    fn deployment(generation: i64, observed: i64, conditions: &[(&str, &str)]) -> Value {
        let conditions: Vec<_> = conditions
            .iter()
            .map(|(name, status)| {
                json!({"type": name, "status": status, "reason": "Why", "message": "what\nto do",
                    "observedGeneration": observed})
            })
            .collect();
        json!({
            "metadata": {"name": "a", "uid": "u", "generation": generation}, "spec": {"source": {}},
            "status": {"observedGeneration": observed, "conditions": conditions},
        })
    }

    #[test]
    fn armed_extension_configs_are_counted_separately() {
        let webhook = |kind: &str| json!({"name": "a", "type": kind, "state": "Armed"});
        let mut object = deployment(1, 1, &[]);
        object["spec"]["namespace"] = "n".into();
        object["status"]["installed"] = json!({"name": "a.v1"});
        object["status"]["webhooks"] = json!([
            webhook("MutatingAdmissionWebhook"),
            webhook("ExtensionConfig"),
            webhook("ExtensionConfig"),
        ]);
        assert_eq!(
            summary(&object),
            "a.v1 is installed in n; armed: 0 conversions, 1 webhook configuration, 2 ExtensionConfigs"
        );
    }

    fn watched(before: Option<i64>) -> Watched {
        let before = before.map(|generation| deployment(generation, generation, &[]));
        Watched::new(before.as_ref(), &deployment(2, 1, &[]), "windlass-system")
    }

    fn judged(watched: &mut Watched, object: &Value, after: Duration) -> Result<Judgement<Value>, String> {
        watched
            .judge(Some(object), after)
            .map_err(|error| error.to_string())
    }

    fn waits(judgement: Result<Judgement<Value>, String>) -> String {
        match judgement {
            Ok(Judgement::Wait(waiting)) => waiting.to_string(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_status_of_an_older_generation_is_ignored() {
        let old = deployment(2, 1, &[("Ready", "True")]);
        let message = waits(judged(&mut watched(Some(1)), &old, START));
        assert_eq!(message, "the operator has not reported a status yet");
        let message = waits(judged(&mut watched(Some(1)), &old, MISSED));
        assert!(
            message.ends_with("is it running? kubectl --namespace windlass-system get pods"),
            "{message}"
        );
    }

    #[test]
    fn the_wait_reports_the_first_unfinished_step() {
        let object = deployment(
            2,
            2,
            &[
                ("Accepted", "True"),
                ("Installed", "False"),
                ("Progressing", "True"),
                ("Ready", "False"),
            ],
        );
        let message = waits(judged(&mut watched(None), &object, START));
        assert_eq!(message, "Installed: what\nto do (Why)");
    }

    #[test]
    fn a_ready_bundle_deployment_ends_the_wait() {
        let object = deployment(2, 2, &[("Ready", "True")]);
        assert_eq!(
            judged(&mut watched(Some(1)), &object, START),
            Ok(Judgement::Done(object))
        );
    }

    #[test]
    fn the_wait_ends_while_objects_are_still_rewritten() {
        let mut object = deployment(
            2,
            2,
            &[
                ("Accepted", "True"),
                ("Installed", "True"),
                ("Available", "True"),
                ("Armed", "True"),
                ("Migrated", "False"),
                ("Progressing", "True"),
                ("Ready", "False"),
            ],
        );
        object["status"]["installed"] = json!({"name": "a.v2"});
        let mut watched = watched(Some(1));
        assert_eq!(
            judged(&mut watched, &object, START),
            Ok(Judgement::Done(object.clone()))
        );
        assert!(summary(&object).ends_with("stored objects are still being rewritten, see windlass status"));
        // Another revision is still in progress.
        object["status"]["next"] = json!({"name": "a.v3"});
        assert_eq!(
            waits(judged(&mut watched, &object, START)),
            "Upgrade: what\nto do (Why)"
        );
    }

    #[test]
    fn a_refusal_of_the_written_spec_ends_the_wait() {
        let refused = deployment(
            2,
            2,
            &[
                ("Accepted", "False"),
                ("Progressing", "False"),
                ("Ready", "False"),
            ],
        );
        for before in [None, Some(1)] {
            assert_eq!(
                judged(&mut watched(before), &refused, START),
                Err(
                    "the install was refused: Accepted: what\\nto do (Why); the operator keeps retrying, to give up run \
                     windlass uninstall a"
                        .to_owned()
                )
            );
        }
    }

    #[test]
    fn an_earlier_refusal_must_persist_to_end_the_wait() {
        let refused = deployment(
            2,
            2,
            &[
                ("Accepted", "False"),
                ("Progressing", "False"),
                ("Ready", "False"),
            ],
        );
        let mut watched = watched(Some(2));
        waits(judged(&mut watched, &refused, START));
        assert!(judged(&mut watched, &refused, LASTING).is_err());
    }

    #[test]
    fn a_failure_of_a_later_step_must_persist_to_end_the_wait() {
        let failing = deployment(
            2,
            2,
            &[
                ("Accepted", "True"),
                ("Installed", "False"),
                ("Progressing", "False"),
                ("Ready", "False"),
            ],
        );
        let mut going_on = failing.clone();
        going_on["status"]["conditions"][2]["status"] = json!("True");
        let mut watched = watched(None);
        waits(judged(&mut watched, &failing, START));
        waits(judged(&mut watched, &going_on, LASTING));
        waits(judged(&mut watched, &failing, LASTING));
        assert!(judged(&mut watched, &failing, 2 * LASTING).is_err());
    }

    #[test]
    fn a_deleted_or_changed_bundle_deployment_ends_the_wait() {
        let mut watched = watched(None);
        assert!(watched.judge(None, START).is_err());
        let mut other = deployment(2, 2, &[("Ready", "True")]);
        other["metadata"]["uid"] = json!("other");
        assert!(judged(&mut watched, &other, START).is_err());
        let mut moved = deployment(3, 3, &[("Ready", "True")]);
        moved["spec"]["source"] = json!({"configMaps": []});
        assert!(judged(&mut watched, &moved, START).is_err());
    }
}
