//! Rights that the ServiceAccount of a BundleDeployment lacks.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rights that are missing in one namespace or in the whole cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MissingRights {
    /// Namespace in which the rights are missing. If not set, they are missing in the whole cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Rules of a Role or ClusterRole that grants the rights.
    pub rules: Vec<PermissionRule>,
}

/// A rule of a Role or ClusterRole, in the format of RBAC.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PermissionRule {
    /// API groups; "" is the core group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub api_groups: Vec<String>,
    /// Resources, and subresources as `resource/subresource`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// Names of objects. If empty, the rule covers all objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<String>,
    /// Paths that are not resources.
    #[serde(default, rename = "nonResourceURLs", skip_serializing_if = "Vec::is_empty")]
    pub non_resource_urls: Vec<String>,
    /// Verbs.
    #[serde(default)]
    pub verbs: Vec<String>,
}

impl PermissionRule {
    /// Returns a rule for `verbs` on a resource.
    pub fn new(group: &str, resource: &str, verbs: &[&str]) -> Self {
        Self {
            api_groups: vec![group.to_owned()],
            resources: vec![resource.to_owned()],
            verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
            ..Self::default()
        }
    }

    /// Restricts the rule to one object.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        Self {
            resource_names: vec![name.to_owned()],
            ..self
        }
    }
}

impl fmt::Display for PermissionRule {
    /// For example `create, patch deployments.apps`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let groups = self.api_groups.iter();
        let resources = groups.flat_map(|group| {
            self.resources.iter().map(move |resource| match group.as_str() {
                "" => resource.clone(),
                group => format!("{resource}.{group}"),
            })
        });
        let what: Vec<_> = resources.chain(self.non_resource_urls.iter().cloned()).collect();
        write!(f, "{} {}", self.verbs.join(", "), what.join(", "))?;
        match self.resource_names.as_slice() {
            [] => Ok(()),
            names => write!(f, " named {}", names.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_rule_has_the_fields_of_rbac_and_prints_resources_like_kubectl() {
        let rule = PermissionRule::new("apps", "deployments", &["create", "patch"]).named("a");
        let expected = json!({
            "apiGroups": ["apps"], "resources": ["deployments"], "resourceNames": ["a"], "verbs": ["create", "patch"],
        });
        assert_eq!(serde_json::to_value(&rule).unwrap(), expected);
        assert_eq!(rule.to_string(), "create, patch deployments.apps named a");
        let path: PermissionRule =
            serde_json::from_value(json!({"nonResourceURLs": ["/metrics"], "verbs": ["get"]})).unwrap();
        assert_eq!(path.to_string(), "get /metrics");
        assert_eq!(PermissionRule::new("", "pods", &["get"]).to_string(), "get pods");
    }
}
