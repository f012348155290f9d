//! What is done with policies themselves when they are written: programs are shown in them, and what is wrong is refused.

use policy::{AdmissionAttributes, AdmissionOperation, CompiledPolicy, Engines, PolicyObject, patch};
use serde_json::Value;
use windlass_cluster::Kind;
use windlass_object::object;

use super::{kinds, unserved, verdict::Verdict};

/// Whether a request is about a policy.
pub(super) fn is_about_policy(attributes: &AdmissionAttributes<'_>) -> bool {
    let (api_version, kind) = attributes.kind();
    kinds::is_policy(&Kind::named(api_version.to_owned(), kind.to_owned()))
}

/// Fills in what Windlass writes into policies. One that cannot be read is left for [`validate`] to refuse.
pub(super) fn mutate(attributes: &AdmissionAttributes<'_>, engines: &Engines) -> Verdict {
    let written = matches!(
        attributes.operation,
        AdmissionOperation::Create | AdmissionOperation::Update
    );
    let Some(policy) = attributes.object.filter(|_| written) else {
        return Verdict::default();
    };
    let Ok(compiled) = CompiledPolicy::compile(&named(policy, attributes), engines) else {
        return Verdict::default();
    };
    let mut filled = policy.clone();
    for (index, (rendered, _)) in compiled.rule_states().enumerate() {
        show(
            &mut filled,
            &format!("/spec/overrideRules/{index}/overriders"),
            rendered,
        );
        show(&mut filled, &format!("/spec/validateRules/{index}"), rendered);
        let condition = format!("/spec/validateRules/{index}/template/condition");
        if let Some(Value::Object(condition)) = filled.pointer_mut(&condition) {
            condition.entry("affectMode").or_insert("reject".into());
        }
    }
    Verdict {
        patch: patch::difference(policy, &filled),
        ..Verdict::default()
    }
}

/// Puts the program of a rule below `place`, or takes away what is there although there is no template.
fn show(policy: &mut Value, place: &str, rendered: Option<&str>) {
    const FIELD: &str = "renderedCue";
    let Some(Value::Object(place)) = policy.pointer_mut(place) else {
        return;
    };
    match rendered {
        Some(rendered) => {
            place.insert(FIELD.to_owned(), rendered.into());
        }
        // What cannot be rendered is refused.
        None => {
            place.shift_remove(FIELD);
        }
    }
}

/// Refuses a policy with anything wrong in it. One whose rules stay as they are may be written whatever is wrong with them:
/// it could not be deleted else.
pub(super) fn validate(attributes: &AdmissionAttributes<'_>, engines: &Engines) -> Verdict {
    let written = matches!(
        attributes.operation,
        AdmissionOperation::Create | AdmissionOperation::Update
    );
    let Some(policy) = attributes.object.filter(|_| written) else {
        return Verdict::default();
    };
    let spec = |object: &'_ Value| object.get("spec").cloned();
    if attributes
        .old_object
        .is_some_and(|old| spec(old) == spec(policy))
    {
        return Verdict::default();
    }
    let policy = named(policy, attributes);
    match PolicyObject::read(&policy) {
        Ok((read, unknown)) => {
            let mut problems = CompiledPolicy::of(&read, engines).problems();
            problems.extend(unserved::problems(&policy));
            Verdict::of_problems(&problems, &unknown)
        }
        Err(problems) => Verdict::of_problems(&problems, &[]),
    }
}

/// A policy that has a name: one that is still to be given to it is told by what it begins with.
fn named(policy: &Value, attributes: &AdmissionAttributes<'_>) -> Value {
    let mut policy = policy.clone();
    let has = |policy: &Value, field| object::text(policy, field).is_some_and(|text| !text.is_empty());
    if !has(&policy, "/metadata/name") {
        let begins = object::text(&policy, "/metadata/generateName").unwrap_or_default();
        policy["metadata"]["name"] = format!("{begins}0").into();
    }
    let namespace = attributes.namespace();
    if !has(&policy, "/metadata/namespace") && !namespace.is_empty() {
        policy["metadata"]["namespace"] = namespace.into();
    }
    policy
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use policy::{
        PolicyProblem, TemplateRenderer,
        api::{OverrideRuleTemplate, ValidateRuleTemplate},
    };
    use serde_json::json;

    use super::*;

    /// Renders to the path of the template.
    struct Paths;

    impl TemplateRenderer for Paths {
        fn override_rule(&self, template: &OverrideRuleTemplate) -> Result<String, Vec<PolicyProblem>> {
            Ok(template.path.clone())
        }

        fn validate_rule(&self, _: &ValidateRuleTemplate) -> Result<String, Vec<PolicyProblem>> {
            Ok("validate".to_owned())
        }
    }

    fn engines() -> Engines {
        Engines {
            renderer: Some(Arc::new(Paths)),
            ..Engines::default()
        }
    }

    fn override_policy(rules: &Value) -> Value {
        json!({
            "apiVersion": "policy.kcloudlabs.io/v1alpha1", "kind": "OverridePolicy",
            "metadata": {"generateName": "a-"}, "spec": {"overrideRules": rules},
        })
    }

    fn written(policy: &Value) -> Value {
        json!({"operation": "CREATE", "namespace": "n", "object": policy})
    }

    /// The policy as `mutate` leaves it.
    fn mutated(policy: &Value) -> Value {
        let request = written(policy);
        let attributes = AdmissionAttributes::of_request(&request, None).unwrap();
        assert!(is_about_policy(&attributes));
        let mut mutated = policy.clone();
        patch::apply(&mut mutated, &mutate(&attributes, &engines()).patch).unwrap();
        mutated
    }

    #[test]
    fn f17_programs_are_shown_and_what_somebody_wrote_there_is_not() {
        let template = json!({"type": "labels", "operation": "add", "path": "p", "value": {"string": "v"}});
        let policy = override_policy(&json!([
            {"overriders": {"template": template, "renderedCue": "mine"}},
            {"overriders": {"plaintext": [{"op": "remove", "path": "/a"}], "renderedCue": "mine"}},
        ]));
        let mutated = mutated(&policy);
        let rules = &mutated["spec"]["overrideRules"];
        assert_eq!(rules[0]["overriders"]["renderedCue"], "p");
        assert_eq!(rules[1]["overriders"].get("renderedCue"), None, "{mutated}");
    }

    #[test]
    fn f16_a_condition_rejects_where_it_does_not_say_what_it_does() {
        let condition = json!({"cond": "Exist", "dataRef": {"from": "current", "path": "/a"}, "message": "m"});
        let rule =
            |condition: &Value| json!({"template": {"type": "condition", "condition": condition.clone()}});
        let mut allowing = condition.clone();
        allowing["affectMode"] = "allow".into();
        let policy = json!({
            "apiVersion": "policy.kcloudlabs.io/v1alpha1", "kind": "ClusterValidatePolicy",
            "metadata": {"name": "a"}, "spec": {"validateRules": [rule(&condition), rule(&allowing)]},
        });
        let mutated = mutated(&policy);
        for (index, expected) in ["reject", "allow"].into_iter().enumerate() {
            let rule = &mutated["spec"]["validateRules"][index];
            assert_eq!(rule["template"]["condition"]["affectMode"], expected);
            assert_eq!(rule["renderedCue"], "validate");
        }
    }

    fn told(request: &Value) -> (Option<String>, Vec<String>) {
        let attributes = AdmissionAttributes::of_request(request, None).unwrap();
        let answer = validate(&attributes, &engines()).answer("u");
        let response = &answer["response"];
        let message = response.pointer("/status/message").and_then(Value::as_str);
        let warnings = object::items(response, "/warnings")
            .iter()
            .filter_map(Value::as_str);
        (
            message.map(str::to_owned),
            warnings.map(str::to_owned).collect(),
        )
    }

    #[test]
    fn every_problem_of_a_policy_is_refused_and_what_is_unknown_is_warned_of() {
        let good = override_policy(&json!([{"overriders": {"plaintext": [{"op": "remove", "path": "/a"}]}}]));
        assert_eq!(told(&written(&good)), (None, vec![]));
        let mut odd = good.clone();
        odd["spec"]["rules"] = json!([]);
        assert_eq!(
            told(&written(&odd)),
            (None, vec!["spec.rules: unknown field".to_owned()])
        );
        let bad = override_policy(&json!([
            {"overriders": {"plaintext": [{"op": "remove", "path": "a"}]}}, {"overriders": {"cue": "a: 1"}},
        ]));
        let (message, _) = told(&written(&bad));
        let message = message.unwrap();
        assert!(
            message.contains("spec.overrideRules[0].overriders.plaintext[0]")
                && message.contains("spec.overrideRules[1].overriders.cue"),
            "{message}"
        );
    }

    #[test]
    fn what_was_wrong_before_can_be_labelled_and_deleted() {
        let bad = override_policy(&json!([{"overriders": {"cue": "a: 1"}}]));
        let mut labelled = bad.clone();
        labelled["metadata"]["labels"] = json!({"a": "b"});
        let update = json!({"operation": "UPDATE", "namespace": "n", "object": labelled, "oldObject": bad});
        assert_eq!(told(&update), (None, vec![]));
        let deletion = json!({"operation": "DELETE", "namespace": "n", "oldObject": bad});
        assert_eq!(told(&deletion), (None, vec![]));
        let attributes = AdmissionAttributes::of_request(&deletion, None).unwrap();
        assert_eq!(mutate(&attributes, &engines()), Verdict::default());
    }
}
