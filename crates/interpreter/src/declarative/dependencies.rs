//! Dependencies by JSONPath.

use json_path::Path;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_object::object;

use crate::{
    answer::DependentObjectReference,
    customization::{CustomizationProblem, DependencyInterpretation, FieldProblems},
    pod,
};

/// Where an object references other objects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["apiVersion", "kind", "namePath"]))]
pub struct DependencyPaths {
    /// apiVersion of the referenced objects, for example v1.
    #[serde(default)]
    pub api_version: String,
    /// Kind of the referenced objects, for example Secret.
    #[serde(default)]
    pub kind: String,
    /// A JSONPath of the values that the other paths start from, for example the items of a list. The default
    /// is the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// A JSONPath of the names of the referenced objects.
    #[serde(default)]
    pub name_path: String,
    /// A JSONPath of their namespace. The default is the namespace of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_path: Option<String>,
    /// Cluster if the referenced kind is cluster-scoped, else Namespaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<DependencyScope>,
}

/// The scope of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DependencyScope {
    /// Objects are in namespaces.
    Namespaced,
    /// Objects are cluster-scoped.
    Cluster,
}

/// Declared dependencies with compiled paths.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DeclaredDependencies {
    references: Vec<DeclaredReference>,
    pod_template: Option<Path>,
}

#[derive(Clone, Debug, PartialEq)]
struct DeclaredReference {
    api_version: String,
    kind: String,
    scope: DependencyScope,
    path: Option<Path>,
    name: Path,
    namespace: Option<Path>,
}

impl DeclaredDependencies {
    /// Compiles the paths; `field` is the path of the rules. `None` if there are none.
    pub(crate) fn compile(
        rule: &DependencyInterpretation,
        field: &str,
    ) -> Result<Option<Self>, Vec<CustomizationProblem>> {
        if rule.references.is_empty() && rule.pod_template_path.is_none() {
            return Ok(None);
        }
        let mut problems = FieldProblems::under(field);
        let mut references = Vec::new();
        for (index, paths) in rule.references.iter().enumerate() {
            match DeclaredReference::compile(paths, format!("{field}.references[{index}]")) {
                Ok(reference) => references.push(reference),
                Err(found) => problems.extend(found),
            }
        }
        let pod_template = problems.optional_path("podTemplatePath", rule.pod_template_path.as_deref());
        problems.into_result(|| {
            Some(Some(Self {
                references,
                pod_template,
            }))
        })
    }

    pub(crate) fn dependencies(&self, object: &Value) -> Vec<DependentObjectReference> {
        let namespace = object::text(object, "/metadata/namespace");
        let references = self.references.iter();
        let mut found: Vec<_> = references
            .flat_map(|reference| reference.find(object, namespace))
            .collect();
        let templates = self.pod_template.as_ref().map(|path| path.find(object));
        for template in templates.into_iter().flatten() {
            found.extend(pod::dependencies(template, namespace));
        }
        found
    }
}

impl DeclaredReference {
    fn compile(paths: &DependencyPaths, field: String) -> Result<Self, Vec<CustomizationProblem>> {
        let mut problems = FieldProblems::under(field);
        for (name, value) in [("apiVersion", &paths.api_version), ("kind", &paths.kind)] {
            if value.is_empty() {
                problems.add(name, "must not be empty");
            }
        }
        let scope = paths.scope.unwrap_or(DependencyScope::Namespaced);
        if scope == DependencyScope::Cluster && paths.namespace_path.is_some() {
            problems.add("namespacePath", "must not be given with scope Cluster");
        }
        let path = problems.optional_path("path", paths.path.as_deref());
        let name = match paths.name_path.is_empty() {
            true => {
                problems.add("namePath", "must not be empty");
                None
            }
            false => problems.path("namePath", &paths.name_path),
        };
        let namespace = problems.optional_path("namespacePath", paths.namespace_path.as_deref());
        problems.into_result(|| {
            Some(Self {
                api_version: paths.api_version.clone(),
                kind: paths.kind.clone(),
                scope,
                path,
                name: name?,
                namespace,
            })
        })
    }

    fn find(&self, object: &Value, namespace: Option<&str>) -> Vec<DependentObjectReference> {
        let starts = self
            .path
            .as_ref()
            .map_or_else(|| vec![object], |path| path.find(object));
        let mut found = Vec::new();
        for start in starts {
            let named = self
                .namespace
                .as_ref()
                .and_then(|path| path.first(start)?.as_str());
            let namespace = named.filter(|namespace| !namespace.is_empty()).or(namespace);
            let names = self.name.find(start).into_iter().filter_map(Value::as_str);
            for name in names.filter(|name| !name.is_empty()) {
                found.push(DependentObjectReference {
                    api_version: self.api_version.clone(),
                    kind: self.kind.clone(),
                    namespace: match self.scope {
                        DependencyScope::Namespaced => namespace.map(str::to_owned),
                        DependencyScope::Cluster => None,
                    },
                    name: Some(name.to_owned()),
                    label_selector: None,
                });
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn find_references(rule: Value, object: &Value) -> Vec<String> {
        let rule = serde_json::from_value(rule).unwrap();
        let declared = DeclaredDependencies::compile(&rule, "d").unwrap().unwrap();
        let text = |reference: DependentObjectReference| {
            let namespace = reference.namespace.unwrap_or_default();
            format!(
                "{} {namespace}/{}",
                reference.kind,
                reference.name.unwrap_or_default()
            )
        };
        declared.dependencies(object).into_iter().map(text).collect()
    }

    #[test]
    fn references_are_read_from_their_paths() {
        let object = json!({
            "metadata": {"namespace": "n"},
            "spec": {
                "secret": "s", "class": "c", "empty": "", "number": 1,
                "sources": [{"name": "a"}, {"name": "b", "namespace": "other"}, {}],
            },
        });
        let reference = |kind: &str, more: Value| {
            let mut reference = json!({"apiVersion": "v1", "kind": kind});
            reference
                .as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            json!({"references": [reference]})
        };
        for (rule, expected) in [
            (
                reference("Secret", json!({"namePath": ".spec.secret"})),
                vec!["Secret n/s"],
            ),
            (
                reference("Class", json!({"namePath": ".spec.class", "scope": "Cluster"})),
                vec!["Class /c"],
            ),
            (reference("Secret", json!({"namePath": ".spec.absent"})), vec![]),
            (
                reference("Secret", json!({"namePath": ".spec['empty','number']"})),
                vec![],
            ),
            (
                reference(
                    "ConfigMap",
                    json!({"path": ".spec.sources[*]", "namePath": ".name", "namespacePath": ".namespace"}),
                ),
                vec!["ConfigMap n/a", "ConfigMap other/b"],
            ),
            (
                reference("ConfigMap", json!({"namePath": ".spec.sources[*].name"})),
                vec!["ConfigMap n/a", "ConfigMap n/b"],
            ),
        ] {
            assert_eq!(find_references(rule.clone(), &object), expected, "{rule}");
        }
    }

    #[test]
    fn pod_templates_have_dependencies() {
        let template =
            json!({"spec": {"containers": [{"name": "a", "envFrom": [{"secretRef": {"name": "s"}}]}]}});
        let object = json!({"metadata": {"namespace": "n"}, "spec": {"template": template}});
        let rule = json!({"podTemplatePath": ".spec.template"});
        assert_eq!(find_references(rule.clone(), &object), ["Secret n/s"]);
        assert_eq!(find_references(rule, &json!({})), [""; 0]);
    }

    #[test]
    fn invalid_references_are_reported() {
        let rule = json!({
            "references": [
                {"namePath": "["},
                {"apiVersion": "v1", "kind": "Secret", "scope": "Cluster", "namespacePath": ".a"},
            ],
            "podTemplatePath": "]",
        });
        let rule = serde_json::from_value(rule).unwrap();
        let problems = DeclaredDependencies::compile(&rule, "d").unwrap_err();
        let told: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "d.references[0].apiVersion: must not be empty",
                "d.references[0].kind: must not be empty",
                "d.references[0].namePath: \"[\" is not a JSONPath: expected \"]\" at column 2",
                "d.references[1].namespacePath: must not be given with scope Cluster",
                "d.references[1].namePath: must not be empty",
                "d.podTemplatePath: \"]\" is not a JSONPath: unexpected ']' at column 1",
            ]
        );
    }
}
