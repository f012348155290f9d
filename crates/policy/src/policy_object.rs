//! Parses policy objects.

use std::{fmt, sync::LazyLock};

use serde::de::DeserializeOwned;
use serde_json::Value;
use structural_schema::Structural;
use windlass_object::{json::drop_nulls, object};

use crate::{
    PolicyProblem,
    api::{ClusterValidatePolicySpec, OverridePolicySpec, POLICY_API_VERSION},
    crds::crds,
};

/// The kinds of policies, in the order of evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PolicyKind {
    /// Overrides all objects.
    ClusterOverridePolicy,
    /// Overrides objects of its namespace.
    OverridePolicy,
    /// Validates all objects.
    ClusterValidatePolicy,
}

/// The identity of a policy, ordered by evaluation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PolicyKey {
    /// Kind of the policy.
    pub kind: PolicyKind,
    /// The namespace; empty for cluster-scoped kinds.
    pub namespace: String,
    /// `metadata.name`.
    pub name: String,
}

/// A parsed policy.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyObject {
    /// Kind, namespace and name.
    pub key: PolicyKey,
    /// The parsed spec.
    pub spec: PolicySpec,
}

/// The parsed spec of a policy, by its type.
#[derive(Clone, Debug, PartialEq)]
pub enum PolicySpec {
    /// The spec of OverridePolicy and ClusterOverridePolicy.
    Override(OverridePolicySpec),
    /// The spec of ClusterValidatePolicy.
    Validate(ClusterValidatePolicySpec),
}

/// The schemas of the kinds, in the order of `PolicyKind::ALL`.
static SCHEMAS: LazyLock<Vec<Structural>> = LazyLock::new(|| {
    let crds = crds();
    let schema_of = |kind: &PolicyKind| {
        let crd = crds
            .iter()
            .find(|crd| crd["spec"]["names"]["kind"] == kind.name());
        let schema = crd.map(|crd| &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]);
        Structural::new(schema.unwrap_or(&Value::Null))
    };
    PolicyKind::ALL.iter().map(schema_of).collect()
});

impl PolicyKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [
        Self::ClusterOverridePolicy,
        Self::OverridePolicy,
        Self::ClusterValidatePolicy,
    ];

    /// The `kind` in policy objects.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClusterOverridePolicy => "ClusterOverridePolicy",
            Self::OverridePolicy => "OverridePolicy",
            Self::ClusterValidatePolicy => "ClusterValidatePolicy",
        }
    }

    fn schema(self) -> Option<&'static Structural> {
        let place = Self::ALL.iter().position(|kind| *kind == self)?;
        SCHEMAS.get(place)
    }
}

impl PolicyKey {
    /// Reads the identity of a policy object.
    ///
    /// # Errors
    ///
    /// If it has another kind, no name, or no namespace although its kind is namespaced.
    pub fn from_object(object: &Value) -> Result<Self, Vec<PolicyProblem>> {
        let text = |pointer| object::text(object, pointer).unwrap_or_default();
        let kind = PolicyKind::ALL
            .into_iter()
            .find(|kind| text("/apiVersion") == POLICY_API_VERSION && text("/kind") == kind.name());
        let Some(kind) = kind else {
            let names = PolicyKind::ALL.map(PolicyKind::name).join(", ");
            let message = format!("must be one of {names}, of {POLICY_API_VERSION}");
            return Err(vec![PolicyProblem::new("kind", message)]);
        };
        let mut problems = Vec::new();
        let mut require = |name: &str| {
            let value = object::text(object, &format!("/metadata/{name}")).unwrap_or_default();
            let value = value.to_owned();
            if value.is_empty() {
                problems.push(PolicyProblem::new(
                    format!("metadata.{name}"),
                    "must not be empty",
                ));
            }
            value
        };
        let name = require("name");
        let namespace = if kind == PolicyKind::OverridePolicy {
            require("namespace")
        } else {
            String::new()
        };
        if problems.is_empty() {
            Ok(Self {
                kind,
                namespace,
                name,
            })
        } else {
            Err(problems)
        }
    }
}

/// Formats the policy for messages.
impl fmt::Display for PolicyKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            namespace,
            name,
        } = self;
        match namespace.as_str() {
            "" => write!(formatter, "{} {name}", kind.name()),
            namespace => write!(formatter, "{} {namespace}/{name}", kind.name()),
        }
    }
}

impl PolicyObject {
    /// Parses a policy and lists its unknown fields.
    ///
    /// # Errors
    ///
    /// Every violation of its kind's schema.
    pub fn read(object: &Value) -> Result<(Self, Vec<PolicyProblem>), Vec<PolicyProblem>> {
        let key = PolicyKey::from_object(object)?;
        let mut object = object.clone();
        // API servers treat null as absent.
        drop_nulls(&mut object);
        let mut unknown = Vec::new();
        if let Some(schema) = key.kind.schema() {
            let fields = schema.prune(&mut object);
            unknown.extend(
                fields
                    .into_iter()
                    .map(|field| PolicyProblem::new(field, "unknown field")),
            );
            let errors = schema.validate(&object, None);
            let problems: Vec<_> = errors
                .iter()
                .map(|error| PolicyProblem::new(&error.field, error.message()))
                .collect();
            if !problems.is_empty() {
                unknown.extend(problems);
                return Err(unknown);
            }
        }
        let spec = object.get_mut("spec").map(Value::take).unwrap_or_default();
        let spec = match key.kind {
            PolicyKind::ClusterValidatePolicy => PolicySpec::Validate(typed(spec)?),
            _ => PolicySpec::Override(typed(spec)?),
        };
        Ok((Self { key, spec }, unknown))
    }
}

fn typed<T: DeserializeOwned>(spec: Value) -> Result<T, Vec<PolicyProblem>> {
    serde_path_to_error::deserialize(spec).map_err(|error| {
        let path = match error.path().to_string() {
            path if path == "." => "spec".to_owned(),
            path => format!("spec.{path}"),
        };
        vec![PolicyProblem::new(path, error.inner().to_string())]
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn messages(object: &Value) -> Vec<String> {
        let problems = match PolicyObject::read(object) {
            Ok((_, unknown)) => unknown,
            Err(problems) => problems,
        };
        problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn all_problems_are_reported_at_once_with_their_fields() {
        let policy = json!({
            "apiVersion": POLICY_API_VERSION, "kind": "OverridePolicy",
            "metadata": {"name": "a", "namespace": "n"},
            "spec": {
                "resourceSelector": [],
                "resourceSelectors": [{"kind": "Pod"}],
                "failurePolicy": "Perhaps",
                "overrideRules": [{"targetOperations": ["PATCH"], "overriders": {"plaintext": [{"op": "put", "path": "/a"}]}}],
            },
        });
        assert_eq!(
            messages(&policy),
            [
                "spec.resourceSelector: unknown field",
                "spec.resourceSelectors[0].apiVersion: Required value",
                "spec.failurePolicy: Unsupported value: \"Perhaps\": supported values: \"Fail\", \"Ignore\"",
                "spec.overrideRules[0].targetOperations[0]: Unsupported value: \"PATCH\": supported values: \"CREATE\", \"UPDATE\", \"DELETE\", \"CONNECT\", \"*\"",
                "spec.overrideRules[0].overriders.plaintext[0].op: Unsupported value: \"put\": supported values: \"add\", \"replace\", \"remove\"",
            ]
        );
    }

    #[test]
    fn other_objects_than_policies_are_reported() {
        assert_eq!(
            messages(&json!({"apiVersion": "v1", "kind": "OverridePolicy"})),
            [
                "kind: must be one of ClusterOverridePolicy, OverridePolicy, ClusterValidatePolicy, of policy.kcloudlabs.io/v1alpha1"
            ]
        );
        assert_eq!(
            messages(&json!({"apiVersion": POLICY_API_VERSION, "kind": "OverridePolicy"})),
            [
                "metadata.name: must not be empty",
                "metadata.namespace: must not be empty"
            ]
        );
    }

    #[test]
    fn policies_of_kinitiras_are_accepted() {
        let selector = json!({
            "apiVersion": "v1", "kind": "Pod",
            "fieldSelector": {"matchExpressions": [{"field": "a", "operator": "In", "value": ["b"]}, {"field": "a", "operator": "In", "values": ["b"]}]},
        });
        let auth = json!({"authUrl": "https://a", "username": "u", "password": "p", "expireDuration": "5m", "token": "t", "expireAt": null});
        let http = json!({"url": "https://a/{{metadata.name}}", "method": "POST", "header": {"a": "b"}, "params": {"a": "b"}, "body": {"any": [1]}, "auth": auth});
        let overriders = json!({
            "template": {"type": "labels", "operation": "add", "path": "a", "valueRef": {"from": "http", "path": "body.a", "http": http}},
            "plaintext": [{"op": "remove", "path": "/a"}, {"op": "add", "path": "/a", "value": [{"any": "thing"}]}],
            "origin": [{"type": "resourceOversell", "operation": "replace", "resourcesOversell": {"requests": {"cpu": "0.5"}}}],
        });
        let policy = json!({
            "apiVersion": POLICY_API_VERSION, "kind": "ClusterOverridePolicy", "metadata": {"name": "a"},
            "spec": {"resourceSelectors": [selector], "overrideRules": [{"targetOperations": ["*"], "overriders": overriders}]},
        });
        assert_eq!(messages(&policy), [""; 0]);
        let (read, _) = PolicyObject::read(&policy).unwrap();
        let PolicySpec::Override(spec) = read.spec else {
            panic!()
        };
        let written = json!(spec);
        let mut expected = policy["spec"].clone();
        drop_nulls(&mut expected);
        assert_eq!(written, expected);
        // Neither token nor password reaches a log.
        let shown = format!("{spec:?}");
        assert!(!shown.contains("\"t\"") && !shown.contains("\"p\""), "{shown}");
    }
}
