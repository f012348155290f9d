//! Replicas by JSONPath.

use json_path::Path;
use serde_json::Value;

use super::DeclaredAnswerError;
use crate::{
    answer::ReplicaRequirements,
    customization::{CustomizationProblem, FieldProblems, ReplicaResourceRequirement, ReplicaRevision},
    pod,
};

/// Compiled paths of the number of replicas and of the pod template.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DeclaredReplicas {
    replicas: Path,
    pod_template: Option<Path>,
}

/// The compiled path where the number of replicas is written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DeclaredRevision(Path);

impl DeclaredReplicas {
    /// Compiles the paths; `field` is the path of the rules. `None` if there are none.
    pub(crate) fn compile(
        rule: &ReplicaResourceRequirement,
        field: &str,
    ) -> Result<Option<Self>, Vec<CustomizationProblem>> {
        if rule.replicas_path.is_none() && rule.pod_template_path.is_none() {
            return Ok(None);
        }
        let mut problems = FieldProblems::under(field);
        if rule.replicas_path.is_none() {
            problems.add("replicasPath", "must be given with podTemplatePath");
        }
        let replicas = problems.optional_path("replicasPath", rule.replicas_path.as_deref());
        let pod_template = problems.optional_path("podTemplatePath", rule.pod_template_path.as_deref());
        problems.into_result(|| {
            Some(Some(Self {
                replicas: replicas?,
                pod_template,
            }))
        })
    }

    /// Returns the number of replicas of an object, and what each requires.
    pub(crate) fn replicas(
        &self,
        object: &Value,
    ) -> Result<(i32, Option<ReplicaRequirements>), DeclaredAnswerError> {
        let replicas = match self.replicas.first(object) {
            None | Some(Value::Null) => 0,
            Some(found) => number(found).ok_or_else(|| DeclaredAnswerError::Replicas {
                path: self.replicas.to_string(),
                found: found.to_string(),
            })?,
        };
        let template = self.pod_template.as_ref().and_then(|path| path.first(object));
        let requirements = template.map(pod::requirements).transpose()?.flatten();
        Ok((replicas, requirements))
    }
}

/// Converts a value to a number of replicas.
fn number(value: &Value) -> Option<i32> {
    i32::try_from(value.as_i64()?).ok()
}

impl DeclaredRevision {
    /// Compiles the path; `field` is the path of the rules. `None` if there is none.
    pub(crate) fn compile(
        rule: &ReplicaRevision,
        field: &str,
    ) -> Result<Option<Self>, Vec<CustomizationProblem>> {
        let Some(text) = rule.replicas_path.as_deref() else {
            return Ok(None);
        };
        let mut problems = FieldProblems::under(field);
        let path = problems.path("replicasPath", text);
        if path
            .as_ref()
            .is_some_and(|path| path.is_root() || !path.is_plain())
        {
            problems.add("replicasPath", "must consist only of field names");
        }
        problems.into_result(|| path.map(|path| Some(Self(path))))
    }

    /// Returns the object with a number of replicas.
    pub(crate) fn revise(&self, object: &Value, replicas: i64) -> Value {
        let mut revised = object.clone();
        self.0.set(&mut revised, replicas.into());
        revised
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn replicas(rule: Value, object: &Value) -> Result<(i32, Option<ReplicaRequirements>), String> {
        let rule = serde_json::from_value(rule).unwrap();
        let declared = DeclaredReplicas::compile(&rule, "r").unwrap().unwrap();
        declared.replicas(object).map_err(|error| error.to_string())
    }

    #[test]
    fn replicas_are_read_from_the_path() {
        let path = json!({"replicasPath": ".spec.size"});
        for (object, expected) in [
            (json!({"spec": {"size": 3}}), Ok((3, None))),
            (json!({"spec": {}}), Ok((0, None))),
            (json!({"spec": {"size": null}}), Ok((0, None))),
            (
                json!({"spec": {"size": "3"}}),
                Err(".spec.size: \"3\" is not a number of replicas".to_owned()),
            ),
            (
                json!({"spec": {"size": 2.5}}),
                Err(".spec.size: 2.5 is not a number of replicas".to_owned()),
            ),
            (
                json!({"spec": {"size": 4_294_967_296_i64}}),
                Err(".spec.size: 4294967296 is not a number of replicas".to_owned()),
            ),
        ] {
            assert_eq!(replicas(path.clone(), &object), expected, "{object}");
        }
    }

    #[test]
    fn requirements_are_read_from_the_pod_template() {
        let template =
            json!({"spec": {"containers": [{"name": "a", "resources": {"requests": {"cpu": "100m"}}}]}});
        let rule = json!({"replicasPath": ".spec.size", "podTemplatePath": ".spec.template"});
        let found = replicas(rule.clone(), &json!({"spec": {"size": 2, "template": template}})).unwrap();
        assert_eq!(found.0, 2);
        assert_eq!(found.1.unwrap().resource_request["cpu"], "100m");
        assert_eq!(replicas(rule, &json!({"spec": {"size": 2}})), Ok((2, None)));
    }

    #[test]
    fn a_revision_sets_the_number() {
        let rule = serde_json::from_value(json!({"replicasPath": ".spec.size"})).unwrap();
        let declared = DeclaredRevision::compile(&rule, "r").unwrap().unwrap();
        for (object, expected) in [
            (
                json!({"spec": {"size": 1, "a": 1}}),
                json!({"spec": {"size": 7, "a": 1}}),
            ),
            (json!({}), json!({"spec": {"size": 7}})),
        ] {
            assert_eq!(declared.revise(&object, 7), expected);
        }
    }

    #[test]
    fn invalid_paths_are_reported() {
        let rule = serde_json::from_value(json!({"podTemplatePath": "["})).unwrap();
        let problems = DeclaredReplicas::compile(&rule, "r").unwrap_err();
        let told: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "r.replicasPath: must be given with podTemplatePath",
                "r.podTemplatePath: \"[\" is not a JSONPath: expected \"]\" at column 2",
            ]
        );
        for path in [".spec.list[*].size", "$"] {
            let rule = serde_json::from_value(json!({"replicasPath": path})).unwrap();
            let problems = DeclaredRevision::compile(&rule, "r").unwrap_err();
            assert_eq!(
                problems[0].to_string(),
                "r.replicasPath: must consist only of field names"
            );
        }
        assert_eq!(
            DeclaredRevision::compile(&ReplicaRevision::default(), "r"),
            Ok(None)
        );
    }
}
