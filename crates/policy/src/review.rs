//! Admission of policies, and the fields that Windlass renders into them.

use serde_json::{Value, json};
use windlass_object::object;

use crate::{
    CompiledPolicy, Engines, PolicyObject, PolicyProblem, PolicySpec,
    api::RuleStatus,
    patch::{JsonPatch, JsonPatchOperation, Pointer},
    render::{render_override, render_validation},
};

/// Returns every problem of a policy, each with its field, and for programs with line and column. A policy
/// without problems can be evaluated for every matching object, unless a reference is missing or a program
/// fails.
pub fn check(policy: &Value, engines: &Engines) -> Vec<PolicyProblem> {
    match PolicyObject::read(policy) {
        Ok((read, mut problems)) => {
            problems.extend(CompiledPolicy::from_object(&read, engines).problems());
            problems
        }
        Err(problems) => problems,
    }
}

/// Decides whether a policy may replace `old`, if there was one. It always may if its spec is unchanged or it
/// is being deleted: its metadata must remain writable.
///
/// # Errors
///
/// Every problem in it.
pub fn admit(policy: &Value, old: Option<&Value>, engines: &Engines) -> Result<(), Vec<PolicyProblem>> {
    let spec = policy.get("spec");
    let is_unchanged = spec.is_some() && old.is_some_and(|old| old.get("spec") == spec);
    if object::is_terminating(policy) || is_unchanged {
        return Ok(());
    }
    match check(policy, engines) {
        problems if problems.is_empty() => Ok(()),
        problems => Err(problems),
    }
}

/// Returns a patch that sets the rendered templates, whatever their author wrote, and the default
/// `affectMode: reject`; empty if the policy is up to date. Templates that cannot be rendered yield nothing;
/// [`check`] reports the reason.
pub fn rendering(policy: &Value) -> JsonPatch {
    let Ok((read, _)) = PolicyObject::read(policy) else {
        return JsonPatch::new();
    };
    let (rules, holder, rendered): (_, _, Vec<_>) = match &read.spec {
        PolicySpec::Override(spec) => {
            let templates = spec.override_rules.iter().map(|rule| &rule.overriders.template);
            let render =
                |template: &Option<_>| template.as_ref().map(|template| render_override(template).ok());
            (
                "overrideRules",
                Some("overriders"),
                templates.map(render).collect(),
            )
        }
        PolicySpec::Validate(spec) => {
            let templates = spec.validate_rules.iter().map(|rule| &rule.template);
            let render =
                |template: &Option<_>| template.as_ref().map(|template| render_validation(template).ok());
            ("validateRules", None, templates.map(render).collect())
        }
    };
    let mut patch = JsonPatch::new();
    for (index, rendered) in rendered.into_iter().enumerate() {
        let rule = Pointer::from_tokens(["spec", rules]).join(index.to_string());
        let holder = holder.map_or_else(|| rule.clone(), |holder| rule.join(holder));
        let place = holder.join("renderedCue");
        let shown = place.find(policy);
        match rendered.flatten() {
            Some(text) if shown != Some(&json!(text)) => {
                patch.push(JsonPatchOperation::Add(place, text.into()));
            }
            None if shown.is_some() => patch.push(JsonPatchOperation::Remove(place)),
            _ => {}
        }
        let condition = holder.join("template").join("condition");
        let mode = condition.join("affectMode");
        if condition.find(policy).is_some_and(Value::is_object) && mode.find(policy).is_none() {
            patch.push(JsonPatchOperation::Add(mode, "reject".into()));
        }
    }
    patch
}

/// Returns `status.rules` of a policy: for each rule its rendered template, and its first problem.
pub fn rule_statuses(policy: &CompiledPolicy) -> Vec<RuleStatus> {
    policy
        .rule_states()
        .map(|(rendered, problems)| RuleStatus {
            rendered_cue: rendered.unwrap_or_default().to_owned(),
            error: problems.first().map(ToString::to_string).unwrap_or_default(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        patch::apply,
        tests::{engines, overriding, policy, validating},
    };

    fn label_template() -> Value {
        json!({"type": "labels", "operation": "add", "path": "a", "value": {"string": "b"}})
    }

    fn condition() -> Value {
        json!({"cond": "Exist", "message": "m", "dataRef": {"from": "current", "path": "/spec/a"}})
    }

    #[test]
    fn the_rendered_program_replaces_any_written_one() {
        let mut policy = overriding(
            "a",
            &[
                json!({"template": label_template(), "renderedCue": "by hand"}),
                json!({"plaintext": [{"op": "remove", "path": "/a"}], "renderedCue": "left over"}),
                json!({"template": label_template()}),
            ],
        );
        let patch = rendering(&policy);
        assert_eq!(patch.len(), 3);
        apply(&mut policy, &patch).unwrap();
        let rendered =
            |index: usize| policy["spec"]["overrideRules"][index]["overriders"]["renderedCue"].clone();
        assert!(
            rendered(0).as_str().unwrap().contains("patches:"),
            "{}",
            rendered(0)
        );
        assert_eq!((rendered(1), rendered(2)), (Value::Null, rendered(0)));
        // Then the policy is up to date.
        assert_eq!(rendering(&policy), []);
    }

    #[test]
    fn conditions_are_rendered_and_reject_by_default() {
        let template = json!({"type": "condition", "condition": condition()});
        let mut policy = validating("a", json!([{"template": template}]));
        let patch = rendering(&policy);
        apply(&mut policy, &patch).unwrap();
        let rule = &policy["spec"]["validateRules"][0];
        assert_eq!(rule["template"]["condition"]["affectMode"], "reject");
        assert!(rule["renderedCue"].as_str().unwrap().contains("validate:"));
        assert_eq!(rendering(&policy), []);
    }

    #[test]
    fn an_invalid_template_renders_nothing() {
        let template = json!({"type": "resourcesOversell", "operation": "replace", "resourcesOversell": {"cpuFactor": "2"}});
        let policy = overriding("a", &[json!({"template": template, "renderedCue": "old"})]);
        assert_eq!(rendering(&policy).len(), 1);
        assert_eq!(rendering(&json!({"kind": "Pod"})), []);
        let compiled = CompiledPolicy::compile(&policy, &engines()).unwrap();
        let statuses = rule_statuses(&compiled);
        assert_eq!(statuses[0].rendered_cue, "");
        assert!(
            statuses[0].error.contains("template.resourcesOversell.cpuFactor"),
            "{}",
            statuses[0].error
        );
    }

    #[test]
    fn all_problems_are_reported_at_once() {
        let rules = json!([
            {"overriders": {"cue": "{", "cel": {"expression": "no JSON"}, "plaintext": [{"op": "add", "path": "a"}]}},
            {"overriders": {"origin": [{"type": "tolerations", "operation": "add", "tolerations": [{"effect": "Now", "operator": "Exists"}]}]}},
            {"overriders": {"template": {
                "type": "labels", "operation": "add", "path": "l",
                "valueRef": {"from": "k8s", "path": "/a", "k8s": {"apiVersion": "v1", "kind": "Secret", "name": "s", "namespace": "other"}},
            }}},
        ]);
        let spec = json!({
            "resourceSelectors": [{"apiVersion": "v1", "kind": "Pod", "namespace": "other"}],
            "namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]},
            "matchConditions": [{"name": "c", "expression": "no JSON"}],
            "unknown": true,
            "overrideRules": rules,
        });
        let problems = check(&policy("OverridePolicy", "n/a", spec), &engines());
        let told: Vec<_> = problems.iter().map(ToString::to_string).collect();
        let rule = |index: usize| format!("spec.overrideRules[{index}].overriders");
        let own = "must be empty or \"n\": an OverridePolicy";
        assert_eq!(
            told,
            [
                "spec.unknown: unknown field".to_owned(),
                format!("spec.resourceSelectors[0].namespace: {own} is for objects of its own namespace"),
                "spec.namespaceSelector.matchExpressions[0].values: must not be empty".to_owned(),
                "spec.matchConditions: line 1, column 2: is not JSON".to_owned(),
                format!("{}.cue: line 1, column 1: is not JSON", rule(0)),
                format!("{}.cel: line 1, column 2: is not JSON", rule(0)),
                format!(
                    "{}.plaintext[0].path: \"a\" is not a JSON pointer: begin with /",
                    rule(0)
                ),
                format!(
                    "{}.origin[0].tolerations[0].effect: must be NoSchedule, PreferNoSchedule or NoExecute",
                    rule(1)
                ),
                format!(
                    "{}.template.valueRef.k8s.namespace: {own} refers to objects of its own namespace only",
                    rule(2)
                ),
            ]
        );
    }

    #[test]
    fn metadata_of_an_invalid_policy_stays_writable() {
        let mut broken = overriding("a", &[json!({"cue": "{"})]);
        assert!(admit(&broken, None, &engines()).is_err());
        assert_eq!(admit(&broken, Some(&broken.clone()), &engines()), Ok(()));
        let repaired = overriding("a", &[json!({"plaintext": [{"op": "remove", "path": "/a"}]})]);
        assert!(admit(&broken, Some(&repaired), &engines()).is_err());
        assert_eq!(admit(&repaired, Some(&broken), &engines()), Ok(()));
        broken["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        assert_eq!(admit(&broken, Some(&repaired), &engines()), Ok(()));
    }
}
