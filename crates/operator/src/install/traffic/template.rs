//! The template of a frozen Deployment, which others may still change although nothing rolls out.

use serde_json::Value;
use windlass_object::object;

use crate::install::canary::revision;

/// Label of the Deployment controller on the templates of ReplicaSets.
const TEMPLATE_HASH: &str = "pod-template-hash";

/// Returns the pod template from which the pods of a paused Deployment were created, if another client has
/// changed it since: resuming with the changed one would end them immediately. `sets` are the ReplicaSets in
/// its namespace.
pub fn original_template(frozen: &Value, sets: &[Value]) -> Option<Value> {
    let uid = object::text(frozen, "/metadata/uid")?;
    let is_owned = |set: &Value| {
        object::items(set, "/metadata/ownerReferences")
            .iter()
            .any(|owner| object::text(owner, "/uid") == Some(uid))
    };
    let replicas = |set: &Value| set.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(0);
    let templates: Vec<_> = sets
        .iter()
        .filter(|set| is_owned(set) && revision(set) == revision(frozen) && replicas(set) > 0)
        .map(|set| (replicas(set), without_hash(&set["spec"]["template"])))
        .collect();
    let current = &frozen["spec"]["template"];
    if templates.iter().any(|(_, template)| template == current) {
        return None;
    }
    let most = templates.into_iter().max_by_key(|(replicas, _)| *replicas)?;
    Some(most.1)
}

fn without_hash(template: &Value) -> Value {
    let mut template = template.clone();
    if let Some(labels) = template
        .pointer_mut("/metadata/labels")
        .and_then(Value::as_object_mut)
    {
        labels.remove(TEMPLATE_HASH);
    }
    template
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::install::{canary::stamp, traffic::frozen};

    #[test]
    fn what_others_changed_meanwhile_is_found_and_a_revision_that_has_pods_is_what_counts() {
        let mut deployment = json!({
            "metadata": {"name": "d", "uid": "d"}, "spec": {"template": {"spec": {"containers": [{"image": "a"}]}}},
        });
        stamp(&mut deployment);
        let live = frozen(&deployment, "s");
        let set = |owner: &str, replicas: i64, annotation: Option<&str>| {
            let mut template = live["spec"]["template"].clone();
            template["metadata"]["labels"][TEMPLATE_HASH] = json!("1234");
            if let Some(annotation) = annotation {
                template["metadata"]["annotations"] = json!({"restartedAt": annotation});
            }
            json!({
                "metadata": {"ownerReferences": [{"uid": owner}]},
                "spec": {"replicas": replicas, "template": template},
            })
        };
        let mut restarted = live.clone();
        restarted["spec"]["template"]["metadata"]["annotations"] = json!({"restartedAt": "noon"});
        let original = live["spec"]["template"].clone();
        let mut other = live.clone();
        other["spec"]["template"]["spec"]["containers"][0]["image"] = json!("b");
        stamp(&mut other);
        for (live, sets, expected) in [
            (&live, vec![], None),
            (&live, vec![set("d", 2, None)], None),
            (&restarted, vec![set("d", 2, None)], Some(&original)),
            (&restarted, vec![set("d", 2, Some("noon"))], None),
            (
                &restarted,
                vec![set("d", 2, None), set("d", 1, Some("noon"))],
                None,
            ),
            (&restarted, vec![set("d", 0, None)], None),
            (&restarted, vec![set("e", 2, None)], None),
            (
                &restarted,
                vec![set("d", 1, Some("ten")), set("d", 2, None)],
                Some(&original),
            ),
            (&other, vec![set("d", 2, None)], None),
        ] {
            assert_eq!(
                original_template(live, &sets).as_ref(),
                expected,
                "{live} {sets:?}"
            );
        }
    }
}
