//! What policies may say, and this program does not do.

use policy::{CompiledPolicy, PolicyKind, PolicyProblem};
use serde_json::Value;
use windlass_object::object;

use super::never_asked::{SYSTEM_NAMESPACE, is_asked};

/// Where a rule may refer to data: the lists of rules, and below each rule.
const REFERENCES: [(&str, &str); 3] = [
    ("overrideRules", "overriders.template.valueRef"),
    ("validateRules", "template.condition.dataRef"),
    ("validateRules", "template.condition.valueRef"),
];

/// The sources of data that are not read.
const UNSERVED: [&str; 3] = ["http", "k8s", "owner"];

/// Which data a policy refers to that nobody would fetch for it, and for which objects it is that nobody asks about.
pub(super) fn problems(policy: &Value, compiled: Option<&CompiledPolicy>) -> Vec<PolicyProblem> {
    let mut problems = Vec::new();
    let mut note_namespace = |path: String, namespace: Option<&str>| {
        if namespace == Some(SYSTEM_NAMESPACE) {
            let message = format!(
                "policies are not asked about objects of {SYSTEM_NAMESPACE}: select those of other namespaces"
            );
            problems.push(PolicyProblem::new(path, message));
        }
    };
    note_namespace(
        "metadata.namespace".to_owned(),
        object::text(policy, "/metadata/namespace"),
    );
    let selectors = object::items(policy, "/spec/resourceSelectors").iter();
    for (index, selector) in selectors.enumerate() {
        let path = format!("spec.resourceSelectors[{index}].namespace");
        note_namespace(path, object::text(selector, "/namespace"));
    }
    for (index, selector) in object::items(policy, "/spec/resourceSelectors")
        .iter()
        .enumerate()
    {
        let text = |field| object::text(selector, field).unwrap_or_default();
        let (api_version, kind) = (text("/apiVersion"), text("/kind"));
        if !is_asked(api_version, kind) {
            let message =
                format!("policies are not asked about {kind} of {api_version:?}: select other objects");
            problems.push(PolicyProblem::new(
                format!("spec.resourceSelectors[{index}]"),
                message,
            ));
        }
    }
    for (list, place) in REFERENCES {
        let rules = object::items(policy, &format!("/spec/{list}"));
        for (index, rule) in rules.iter().enumerate() {
            let from = object::text(rule, &format!("/{}/from", place.replace('.', "/")));
            if let Some(from) = from.filter(|from| UNSERVED.contains(from)) {
                let message = format!("windlass does not read data from {from}: use current or old");
                problems.push(PolicyProblem::new(
                    format!("spec.{list}[{index}].{place}.from"),
                    message,
                ));
            }
        }
    }
    for index in compiled.iter().flat_map(|compiled| compiled.requesting_rules()) {
        let is_validation =
            compiled.is_some_and(|compiled| compiled.key().kind == PolicyKind::ClusterValidatePolicy);
        let place = if is_validation {
            format!("spec.validateRules[{index}].cue")
        } else {
            format!("spec.overrideRules[{index}].overriders.cue")
        };
        let message = "windlass does not read data from servers: leave processing out";
        problems.push(PolicyProblem::new(place, message));
    }
    problems
}

#[cfg(test)]
mod tests {
    use policy::Engines;
    use serde_json::json;

    use super::*;

    #[test]
    fn each_reference_that_nobody_reads_is_named() {
        let template = |from: &str| json!({"overriders": {"template": {"valueRef": {"from": from}}}});
        let policy = json!({"metadata": {"namespace": "kube-system"}, "spec": {
            "resourceSelectors": [
                {"apiVersion": "v1", "kind": "Pod", "namespace": "kube-system"}, {"apiVersion": "windlass.dev/v1alpha1", "kind": "BundleDeployment"},
            ],
            "overrideRules": [template("current"), template("http"), {"overriders": {}}],
            "validateRules": [{"template": {"condition": {"dataRef": {"from": "old"}, "valueRef": {"from": "k8s"}}}}],
        }});
        let told: Vec<_> = problems(&policy, None)
            .iter()
            .map(|problem| problem.path.clone())
            .collect();
        assert_eq!(
            told,
            [
                "metadata.namespace",
                "spec.resourceSelectors[0].namespace",
                "spec.resourceSelectors[1]",
                "spec.overrideRules[1].overriders.template.valueRef.from",
                "spec.validateRules[0].template.condition.valueRef.from",
            ]
        );
    }

    #[test]
    fn a_program_that_asks_a_server_is_named() {
        let program = r#"
            processing: {
                output: {answer?: string}
                http: {method: *"GET" | string, url: "http://example.com"}
            }
            patches: []
        "#;
        let policy = json!({
            "apiVersion": "policy.kcloudlabs.io/v1alpha1", "kind": "ClusterOverridePolicy", "metadata": {"name": "a"},
            "spec": {"overrideRules": [{"overriders": {"cue": "patches: []"}}, {"overriders": {"cue": program}}]},
        });
        let compiled = CompiledPolicy::compile(&policy, &Engines::built_in()).unwrap();
        let told: Vec<_> = problems(&policy, Some(&compiled))
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            told,
            [
                "spec.overrideRules[1].overriders.cue: windlass does not read data from servers: leave processing out"
            ],
            "{:?}",
            compiled.problems()
        );
    }
}
