//! What an admission webhook is asked: a request that its rules match, about an object that is there, that the author of
//! the bundle gives as an example, or that is invented.

use serde_json::Value;
use windlass_crd::{is_served, is_storage, sample_of_version, version_name, versions};
use windlass_object::object;

use super::builtin::BuiltinKind;

/// A request for admission.
#[derive(Clone, Debug, PartialEq)]
pub struct AdmissionRequest {
    /// What is done to which resource.
    pub target: RequestTarget,
    /// To which object.
    pub object: Value,
    /// Where the object is from.
    pub provenance: Provenance,
}

/// A resource, and what is done to an object of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestTarget {
    /// The group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The name of the resource, for example `widgets`.
    pub plural: String,
    /// Its kind.
    pub kind: String,
    /// What is done.
    pub operation: RequestOperation,
    /// The CustomResourceDefinition; `None` for a built-in kind.
    pub crd: Option<String>,
}

/// What is done to an object, what is asked about most first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequestOperation {
    /// It is created.
    Create,
    /// It is changed.
    Update,
    /// It is deleted.
    Delete,
}

/// Where an object is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Provenance {
    /// It is stored in the cluster.
    Stored,
    /// The author of the bundle gives it as an example.
    Example,
    /// It is the smallest that its schema takes; what it means to its operator is not known.
    Invented,
}

impl RequestOperation {
    const ALL: [Self; 3] = [Self::Create, Self::Update, Self::Delete];

    /// As rules and requests call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }

    /// The kind of the options of such a request.
    pub fn options(self) -> &'static str {
        match self {
            Self::Create => "CreateOptions",
            Self::Update => "UpdateOptions",
            Self::Delete => "DeleteOptions",
        }
    }
}

impl RequestTarget {
    /// `group/version`, or only the version for the core group.
    pub fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// A request about an object that nobody has stored: an example of the author's, else an invented one. `crd`: the
    /// definition of a target that has one.
    pub fn sampled(self, crd: Option<&Value>, examples: &[Value]) -> Option<AdmissionRequest> {
        let (object, provenance) = match crd {
            Some(crd) => {
                let sample = sample_of_version(crd, &self.version, examples);
                let provenance = if sample.is_generated {
                    Provenance::Invented
                } else {
                    Provenance::Example
                };
                (sample.object, provenance)
            }
            None => {
                let of_kind = |kind: &&BuiltinKind| {
                    (kind.group, kind.plural) == (self.group.as_str(), self.plural.as_str())
                };
                let object = BuiltinKind::ALL.iter().find(of_kind)?.minimal();
                (object, Provenance::Invented)
            }
        };
        Some(AdmissionRequest {
            target: self,
            object,
            provenance,
        })
    }

    /// A request about an object that is stored.
    pub fn stored(self, object: Value) -> AdmissionRequest {
        AdmissionRequest {
            target: self,
            object,
            provenance: Provenance::Stored,
        }
    }
}

/// Returns the requests that `rules` of a webhook match, best first: for CRDs of the bundle before built-in
/// kinds, and creation before update and deletion. Rules for subresources alone match none.
pub fn targets(rules: &[Value], crds: &[&Value]) -> Vec<RequestTarget> {
    let mut found: Vec<RequestTarget> = Vec::new();
    for rule in rules {
        let Some(operation) = operation(rule) else {
            continue;
        };
        let defined = crds.iter().filter_map(|crd| custom(rule, crd, operation));
        let builtin = BuiltinKind::ALL
            .iter()
            .filter_map(|kind| builtin(rule, kind, operation));
        for target in defined.chain(builtin) {
            if !found.contains(&target) {
                found.push(target);
            }
        }
    }
    found.sort_by_key(|target| (target.crd.is_none(), target.operation));
    found
}

/// The operation that a rule matches and that is asked about most.
fn operation(rule: &Value) -> Option<RequestOperation> {
    RequestOperation::ALL
        .into_iter()
        .find(|operation| matches(rule, "/operations", operation.name()))
}

/// A request about objects of a CustomResourceDefinition: in the version in which they are stored, where the rule matches
/// that, else in one that is served, else in any.
fn custom(rule: &Value, crd: &Value, operation: RequestOperation) -> Option<RequestTarget> {
    let text = |pointer| object::text(crd, pointer).unwrap_or_default();
    let (group, plural) = (text("/spec/group"), text("/spec/names/plural"));
    let is_namespaced = text("/spec/scope") == "Namespaced";
    if !matches(rule, "/apiGroups", group) || !is_of(rule, plural) || !is_in_scope(rule, is_namespaced) {
        return None;
    }
    let known = || {
        versions(crd)
            .iter()
            .filter(|version| matches(rule, "/apiVersions", version_name(version)))
    };
    let version = known()
        .find(|version| is_storage(version))
        .or_else(|| known().find(|version| is_served(version)))
        .or_else(|| known().next())?;
    Some(RequestTarget {
        group: group.to_owned(),
        version: version_name(version).to_owned(),
        plural: plural.to_owned(),
        kind: text("/spec/names/kind").to_owned(),
        operation,
        crd: Some(text("/metadata/name").to_owned()),
    })
}

fn builtin(rule: &Value, kind: &BuiltinKind, operation: RequestOperation) -> Option<RequestTarget> {
    let is_matched = matches(rule, "/apiGroups", kind.group)
        && matches(rule, "/apiVersions", kind.version)
        && is_of(rule, kind.plural)
        && is_in_scope(rule, kind.namespaced);
    is_matched.then(|| RequestTarget {
        group: kind.group.to_owned(),
        version: kind.version.to_owned(),
        plural: kind.plural.to_owned(),
        kind: kind.kind.to_owned(),
        operation,
        crd: None,
    })
}

/// Whether a field of a rule names `wanted`, or everything.
fn matches(rule: &Value, field: &str, wanted: &str) -> bool {
    object::items(rule, field)
        .iter()
        .any(|item| item == "*" || item == wanted)
}

/// Whether a rule is of a resource itself, rather than of its subresources (`Matcher.resource` of the API server's
/// webhook/predicates/rules).
fn is_of(rule: &Value, plural: &str) -> bool {
    object::items(rule, "/resources")
        .iter()
        .any(|item| item == "*" || item == "*/*" || item == plural)
}

fn is_in_scope(rule: &Value, is_namespaced: bool) -> bool {
    match object::text(rule, "/scope") {
        Some("Namespaced") => is_namespaced,
        Some("Cluster") => !is_namespaced,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn widgets() -> Value {
        json!({
            "metadata": {"name": "widgets.example.com"},
            "spec": {
                "group": "example.com", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"},
                "versions": [
                    {"name": "v1alpha1", "served": false, "storage": false},
                    {"name": "v1beta1", "served": true, "storage": false},
                    {"name": "v1", "served": true, "storage": true},
                ],
            }
        })
    }

    fn rule(changes: Value) -> Value {
        let mut rule = json!({
            "apiGroups": ["example.com"], "apiVersions": ["*"], "resources": ["widgets"], "operations": ["CREATE"],
        });
        json_patch::merge(&mut rule, &changes);
        rule
    }

    fn found(rules: &[Value]) -> Vec<String> {
        let crd = widgets();
        targets(rules, &[&crd])
            .iter()
            .map(|target| {
                format!(
                    "{} {} {}",
                    target.operation.name(),
                    target.api_version(),
                    target.plural
                )
            })
            .collect()
    }

    #[test]
    fn a_rule_is_asked_about_in_a_version_and_with_an_operation_that_it_matches() {
        for (changes, expected) in [
            (json!({}), Some("CREATE example.com/v1 widgets")),
            (
                json!({"apiVersions": ["v1beta1"]}),
                Some("CREATE example.com/v1beta1 widgets"),
            ),
            (
                json!({"apiVersions": ["v1alpha1", "v1beta1"]}),
                Some("CREATE example.com/v1beta1 widgets"),
            ),
            (
                json!({"apiVersions": ["v1alpha1"]}),
                Some("CREATE example.com/v1alpha1 widgets"),
            ),
            (json!({"apiVersions": ["v9"]}), None),
            (
                json!({"operations": ["*"]}),
                Some("CREATE example.com/v1 widgets"),
            ),
            (
                json!({"operations": ["DELETE", "UPDATE"]}),
                Some("UPDATE example.com/v1 widgets"),
            ),
            (
                json!({"operations": ["DELETE"]}),
                Some("DELETE example.com/v1 widgets"),
            ),
            (json!({"operations": ["CONNECT"]}), None),
            (
                json!({"resources": ["*/*"]}),
                Some("CREATE example.com/v1 widgets"),
            ),
            (json!({"resources": ["widgets/status"]}), None),
            (json!({"resources": ["gadgets"]}), None),
            (json!({"scope": "Cluster"}), None),
            (
                json!({"scope": "Namespaced"}),
                Some("CREATE example.com/v1 widgets"),
            ),
            (
                json!({"apiGroups": ["apps"], "resources": ["deployments"]}),
                Some("CREATE apps/v1 deployments"),
            ),
            (
                json!({"apiGroups": [""], "resources": ["pods"]}),
                Some("CREATE v1 pods"),
            ),
            (json!({"apiGroups": [""], "resources": ["pods/exec"]}), None),
        ] {
            assert_eq!(
                found(&[rule(changes.clone())]).first().map(String::as_str),
                expected,
                "{changes}"
            );
        }
    }

    #[test]
    fn own_definitions_come_before_built_in_kinds_and_creation_before_the_rest() {
        let pods = rule(json!({"apiGroups": [""], "resources": ["pods"]}));
        let deletion = rule(json!({"operations": ["DELETE"]}));
        assert_eq!(
            found(&[pods.clone(), deletion.clone(), rule(json!({}))]),
            [
                "CREATE example.com/v1 widgets",
                "DELETE example.com/v1 widgets",
                "CREATE v1 pods"
            ]
        );
        assert_eq!(found(&[pods, deletion])[0], "DELETE example.com/v1 widgets");
    }

    #[test]
    fn every_target_has_an_object_of_its_version() {
        let crd = widgets();
        let example = json!({"apiVersion": "example.com/v1", "kind": "Widget", "spec": {"size": 1}});
        let any = rule(json!({"apiGroups": ["*"], "resources": ["*"]}));
        let all = targets(std::slice::from_ref(&any), &[&crd]);
        assert_eq!(all.len(), 1 + BuiltinKind::ALL.len());
        for target in all {
            let definition = target.crd.as_ref().map(|_| &crd);
            let request = target
                .sampled(definition, std::slice::from_ref(&example))
                .unwrap();
            assert_eq!(request.object["apiVersion"], request.target.api_version());
            assert_eq!(request.object["kind"], request.target.kind);
            let expected = if definition.is_some() {
                Provenance::Example
            } else {
                Provenance::Invented
            };
            assert_eq!(request.provenance, expected);
        }
    }

    proptest! {
        #[test]
        fn any_rule_can_be_read(text in "\\{(\"(apiGroups|resources|operations|scope)\":(\\[\"\\*\"\\]|\"a\"|7|null),?){0,4}\\}") {
            let rule = serde_json::from_str(&text).unwrap_or(Value::Null);
            let crd = widgets();
            targets(&[rule], &[&crd]);
        }
    }
}
