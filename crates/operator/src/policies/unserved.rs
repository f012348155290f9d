//! What policies can express, but this process does not support.

use policy::{CompiledPolicy, PolicyKind, PolicyProblem};
use serde_json::Value;
use windlass_object::object;

use super::{
    exclusions::{SYSTEM_NAMESPACE, can_select},
    references::{AllowedHosts, references},
};

/// Returns problems of referenced servers that are not allowed, and of selected objects that webhooks
/// exclude.
pub(super) fn problems(
    policy: &Value,
    compiled: Option<&CompiledPolicy>,
    hosts: &AllowedHosts,
) -> Vec<PolicyProblem> {
    let mut problems = Vec::new();
    let mut note_namespace = |path: String, namespace: Option<&str>| {
        if namespace == Some(SYSTEM_NAMESPACE) {
            let message = format!("policies skip objects of {SYSTEM_NAMESPACE}: select other namespaces");
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
        if !can_select(api_version, kind) {
            let message = format!("policies skip {kind} of {api_version:?}: select other objects");
            problems.push(PolicyProblem::new(
                format!("spec.resourceSelectors[{index}]"),
                message,
            ));
        }
    }
    for (place, reference) in references(policy) {
        if object::text(reference, "/from") != Some("http") {
            continue;
        }
        for field in ["http.url", "http.auth.authUrl"] {
            let url = object::text(reference, &format!("/{}", field.replace('.', "/")));
            let url = url.filter(|url| !url.is_empty());
            if let Some(Err(problem)) = url.map(|url| hosts.check(url)) {
                problems.push(PolicyProblem::new(format!("{place}.{field}"), problem));
            }
        }
    }
    // The servers that a program calls are known only when it runs.
    let requesting = compiled.filter(|_| hosts.is_empty());
    for index in requesting
        .iter()
        .flat_map(|compiled| compiled.rules_with_requests())
    {
        let is_validation =
            compiled.is_some_and(|compiled| compiled.key().kind == PolicyKind::ClusterValidatePolicy);
        let place = if is_validation {
            format!("spec.validateRules[{index}].cue")
        } else {
            format!("spec.overrideRules[{index}].overriders.cue")
        };
        let message = "no server is allowed: start windlass with --policy-http-host=HOST";
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
    fn each_server_that_is_not_allowed_is_a_problem() {
        let http = |url: &str| json!({"url": url, "method": "GET", "auth": {"authUrl": "https://tokens.example.com/"}});
        let template = |from: &str, url: &str| json!({"overriders": {"template": {"valueRef": {"from": from, "http": http(url)}}}});
        let hosts = "a.example.com".parse().into_iter().collect();
        let policy = json!({"metadata": {"namespace": "kube-system"}, "spec": {
            "resourceSelectors": [
                {"apiVersion": "v1", "kind": "Pod", "namespace": "kube-system"}, {"apiVersion": "windlass.dev/v1alpha1", "kind": "BundleDeployment"},
            ],
            "overrideRules": [template("owner", ""), template("http", "https://a.example.com/{{b}}"), {"overriders": {}}],
            "validateRules": [{"template": {"condition": {"dataRef": {"from": "k8s"}, "valueRef": {"from": "http", "http": http("https://b.example.com/")}}}}],
        }});
        let found: Vec<_> = problems(&policy, None, &hosts)
            .iter()
            .map(|problem| problem.path.clone())
            .collect();
        assert_eq!(
            found,
            [
                "metadata.namespace",
                "spec.resourceSelectors[0].namespace",
                "spec.resourceSelectors[1]",
                "spec.overrideRules[1].overriders.template.valueRef.http.auth.authUrl",
                "spec.validateRules[0].template.condition.valueRef.http.url",
                "spec.validateRules[0].template.condition.valueRef.http.auth.authUrl",
            ]
        );
    }

    #[test]
    fn a_program_that_calls_servers_is_a_problem_without_allowed_hosts() {
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
        let found: Vec<_> = problems(&policy, Some(&compiled), &AllowedHosts::default())
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            found,
            [
                "spec.overrideRules[1].overriders.cue: no server is allowed: start windlass with --policy-http-host=HOST"
            ],
            "{:?}",
            compiled.problems()
        );
    }
}
