//! Admission of policies themselves: shows rendered programs in them, and refuses invalid ones.

use policy::{AdmissionAttributes, AdmissionOperation, CompiledPolicy, Engines};
use serde_json::Value;
use windlass_cluster::Kind;
use windlass_object::object;

use super::{kinds, references::AllowedHosts, unserved, verdict::Verdict};

/// Reports whether a request is about a policy.
pub(super) fn is_about_policy(attributes: &AdmissionAttributes<'_>) -> bool {
    let (api_version, kind) = attributes.kind();
    kinds::is_policy(&Kind::named(api_version.to_owned(), kind.to_owned()))
}

/// Returns the fields that Windlass writes into a policy. A policy that cannot be read is left for
/// [`validate`] to refuse.
pub(super) fn mutate(attributes: &AdmissionAttributes<'_>) -> Verdict {
    let patch = written_policy(attributes).map(|policy| policy::rendering(&with_name(policy, attributes)));
    Verdict {
        patch: patch.unwrap_or_default(),
        ..Verdict::default()
    }
}

/// Refuses an invalid policy. An update that keeps the spec is allowed even if the policy is invalid, and so
/// is any update during deletion.
pub(super) fn validate(
    attributes: &AdmissionAttributes<'_>,
    engines: &Engines,
    hosts: &AllowedHosts,
) -> Verdict {
    let Some(written) = written_policy(attributes) else {
        return Verdict::default();
    };
    let is_unchanged = attributes
        .old_object
        .is_some_and(|old| old.get("spec") == written.get("spec"));
    if is_unchanged || object::is_terminating(written) {
        return Verdict::default();
    }
    let named = with_name(written, attributes);
    let mut problems = policy::check(&named, engines);
    let compiled = CompiledPolicy::compile(&named, engines).ok();
    problems.extend(unserved::problems(&named, compiled.as_ref(), hosts));
    Verdict::from_problems(&problems)
}

/// Returns the policy that the request writes; `None` for a deletion.
fn written_policy<'a>(attributes: &AdmissionAttributes<'a>) -> Option<&'a Value> {
    let is_written = matches!(
        attributes.operation,
        AdmissionOperation::Create | AdmissionOperation::Update
    );
    attributes.object.filter(|_| is_written)
}

/// Returns the policy with a name: with `generateName`, the prefix stands for the name that the API server
/// adds later.
fn with_name(policy: &Value, attributes: &AdmissionAttributes<'_>) -> Value {
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
    use policy::patch;
    use serde_json::json;

    use super::*;

    fn override_policy(rules: &Value) -> Value {
        json!({
            "apiVersion": "policy.kcloudlabs.io/v1alpha1", "kind": "OverridePolicy",
            "metadata": {"generateName": "a-"}, "spec": {"overrideRules": rules},
        })
    }

    fn creation_of(policy: &Value) -> Value {
        json!({"operation": "CREATE", "namespace": "n", "object": policy})
    }

    fn mutated(policy: &Value) -> Value {
        let request = creation_of(policy);
        let attributes = AdmissionAttributes::from_request(&request, None).unwrap();
        assert!(is_about_policy(&attributes));
        let mut mutated = policy.clone();
        patch::apply(&mut mutated, &mutate(&attributes).patch).unwrap();
        mutated
    }

    #[test]
    fn rendered_programs_replace_those_of_the_author() {
        let template = json!({"type": "labels", "operation": "add", "path": "p", "value": {"string": "v"}});
        let policy = override_policy(&json!([
            {"overriders": {"template": template, "renderedCue": "mine"}},
            {"overriders": {"plaintext": [{"op": "remove", "path": "/a"}], "renderedCue": "mine"}},
        ]));
        let mutated = mutated(&policy);
        let rules = &mutated["spec"]["overrideRules"];
        let program = rules[0]["overriders"]["renderedCue"].as_str().unwrap();
        assert!(program.contains("patches:"), "{program}");
        assert_eq!(rules[1]["overriders"].get("renderedCue"), None, "{mutated}");
    }

    #[test]
    fn the_default_affect_mode_of_a_condition_is_reject() {
        let condition =
            json!({"cond": "Exist", "dataRef": {"from": "current", "path": "/a"}, "message": "m"});
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
            assert!(rule["renderedCue"].as_str().unwrap().contains("validate:"));
        }
    }

    fn refusal(request: &Value) -> Option<String> {
        let attributes = AdmissionAttributes::from_request(request, None).unwrap();
        let answer = validate(&attributes, &Engines::built_in(), &AllowedHosts::default()).answer("u");
        object::text(&answer, "/response/status/message").map(str::to_owned)
    }

    #[test]
    fn every_problem_of_a_policy_is_in_the_message() {
        let good = override_policy(&json!([{"overriders": {"plaintext": [{"op": "remove", "path": "/a"}]}}]));
        assert_eq!(refusal(&creation_of(&good)), None);
        let mut bad = override_policy(&json!([
            {"overriders": {"plaintext": [{"op": "remove", "path": "a"}]}}, {"overriders": {"cue": "a: {"}},
        ]));
        bad["spec"]["resourceSelectors"] = json!([{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}]);
        let message = refusal(&creation_of(&bad)).unwrap();
        for field in [
            "spec.overrideRules[0].overriders.plaintext[0]",
            "spec.overrideRules[1].overriders.cue",
            "spec.resourceSelectors[0]",
        ] {
            assert!(message.contains(field), "{message}");
        }
    }

    #[test]
    fn an_invalid_policy_can_still_be_labelled_and_deleted() {
        let bad = override_policy(&json!([{"overriders": {"cue": "a: {"}}]));
        let mut labelled = bad.clone();
        labelled["metadata"]["labels"] = json!({"a": "b"});
        let update = json!({"operation": "UPDATE", "namespace": "n", "object": labelled, "oldObject": bad});
        assert_eq!(refusal(&update), None);
        let deletion = json!({"operation": "DELETE", "namespace": "n", "oldObject": bad});
        assert_eq!(refusal(&deletion), None);
        let attributes = AdmissionAttributes::from_request(&deletion, None).unwrap();
        assert_eq!(mutate(&attributes), Verdict::default());
    }
}
