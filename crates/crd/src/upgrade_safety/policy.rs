//! How violations are treated: refused, reported or ignored.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_object::{JsonPath, Problem, path::is_within, yaml};

use super::UpgradeRule;

/// How to treat a violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum Enforcement {
    /// Ignore it.
    None,
    /// Report it, and apply the change.
    Warn,
    /// Refuse the change.
    Strict,
}

/// How to treat the violations that match. The exception that sets more of crd, version, field and rule takes
/// precedence; among equals the one with the longer field, then the stricter one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "has(self.crd) || has(self.version) || has(self.field) || has(self.rule)",
    "message": "specify at least one of crd, version, field and rule; to cover all changes, use crdUpgradeSafety",
}]))]
pub struct Exception {
    /// Name of the CustomResourceDefinition. If omitted, matches all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub crd: Option<String>,
    /// Version as reported: `v1`, or `v1beta1->v1` between two served versions. If omitted, matches all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub version: Option<String>,
    /// Field as reported, for example `^.spec.replicas`; also matches everything below it. If omitted, matches all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096), regex(pattern = r"^\^([.\[].+)?$"))]
    pub field: Option<String>,
    /// Name of the rule. If omitted, matches all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<UpgradeRule>,
    /// Strict: refuse the change; Warn: report and apply it; None: apply it.
    pub enforcement: Enforcement,
}

/// How each violation is treated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Ignore violations that no exception names.
    pub lenient: bool,
    /// The exceptions.
    pub exceptions: Vec<Exception>,
}

/// The fields of an [`Exception`].
const FIELDS: [&str; 5] = ["crd", "version", "field", "rule", "enforcement"];

impl Exception {
    /// Parses a list of exceptions in YAML or JSON.
    ///
    /// # Errors
    ///
    /// All problems of `file`.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<Vec<Self>, Vec<Problem>> {
        let problem = |path: &JsonPath, message: String| Problem {
            file: file.to_owned(),
            path: format!("${path}"),
            rule: "field-type",
            message,
        };
        let root = JsonPath::root();
        let items = match yaml::documents(bytes).as_deref() {
            Ok([]) => Vec::new(),
            Ok([Value::Array(items)]) => items.clone(),
            Ok(_) => {
                return Err(vec![problem(
                    &root,
                    "must be a single list of exceptions".to_owned(),
                )]);
            }
            Err(message) => return Err(vec![problem(&root, message.clone())]),
        };
        let mut exceptions = Vec::new();
        let mut problems = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let path = root.item(index);
            match Self::read(item) {
                Ok(exception) => exceptions.push(exception),
                Err((field, message)) => {
                    let path = field.map_or_else(|| path.clone(), |field| path.field(field));
                    problems.push(problem(&path, message));
                }
            }
        }
        if problems.is_empty() {
            Ok(exceptions)
        } else {
            Err(problems)
        }
    }

    /// Parses one exception, or returns the invalid field and its problem.
    fn read(value: &Value) -> Result<Self, (Option<&str>, String)> {
        let unknown = value
            .as_object()
            .and_then(|fields| fields.keys().find(|name| !FIELDS.contains(&name.as_str())));
        if let Some(unknown) = unknown {
            return Err((
                Some(unknown),
                format!(
                    "is not a field of an exception; known fields: {}",
                    FIELDS.join(", ")
                ),
            ));
        }
        let exception: Self =
            serde_path_to_error::deserialize(value).map_err(|error| (None, error.to_string()))?;
        if !exception.has_criteria() {
            let message = "must set at least one of crd, version, field and rule";
            return Err((None, message.to_owned()));
        }
        if exception
            .field
            .as_ref()
            .is_some_and(|field| !field.starts_with('^'))
        {
            return Err((
                Some("field"),
                "must start with ^, as in reported fields".to_owned(),
            ));
        }
        Ok(exception)
    }

    /// Reports whether the exception sets a criterion. One without criteria is invalid: ignoring everything
    /// has its own setting.
    fn has_criteria(&self) -> bool {
        self.crd.is_some() || self.version.is_some() || self.field.is_some() || self.rule.is_some()
    }

    /// Reports whether this exception can match a violation of `rule` in `crd` in any version and field.
    fn may_match(&self, crd: &str, rule: UpgradeRule) -> bool {
        self.has_criteria()
            && self.crd.as_deref().is_none_or(|named| named == crd)
            && self.rule.is_none_or(|named| named == rule)
    }

    fn matches(&self, crd: &str, version: Option<&str>, field: Option<&str>, rule: UpgradeRule) -> bool {
        let same = |named: &Option<String>, actual: Option<&str>| {
            named.as_deref().is_none_or(|named| Some(named) == actual)
        };
        self.has_criteria()
            && same(&self.crd, Some(crd))
            && same(&self.version, version)
            && self.rule.is_none_or(|named| named == rule)
            && self
                .field
                .as_deref()
                .is_none_or(|named| field.is_some_and(|field| is_within(field, named)))
    }

    /// Returns the precedence; the greatest one wins.
    fn precedence(&self) -> (usize, usize, Enforcement) {
        let named = [
            self.crd.is_some(),
            self.version.is_some(),
            self.field.is_some(),
            self.rule.is_some(),
        ];
        let count = named.into_iter().filter(|named| *named).count();
        (
            count,
            self.field.as_ref().map_or(0, String::len),
            self.enforcement,
        )
    }
}

impl Policy {
    /// Reports whether nothing is ever reported.
    pub fn ignores_everything(&self) -> bool {
        self.lenient
            && self
                .exceptions
                .iter()
                .all(|exception| exception.enforcement == Enforcement::None)
    }

    /// Reports whether no violation of `rule` in `crd` is ever reported.
    pub fn ignores(&self, crd: &str, rule: UpgradeRule) -> bool {
        self.enforcement(crd, None, None, rule) == Enforcement::None
            && self
                .exceptions
                .iter()
                .filter(|exception| exception.may_match(crd, rule))
                .all(|exception| exception.enforcement == Enforcement::None)
    }

    /// Returns how a violation of `rule` is treated.
    pub fn enforcement(
        &self,
        crd: &str,
        version: Option<&str>,
        field: Option<&str>,
        rule: UpgradeRule,
    ) -> Enforcement {
        self.exceptions
            .iter()
            .filter(|exception| exception.matches(crd, version, field, rule))
            .max_by_key(|exception| exception.precedence())
            .map_or_else(
                || {
                    if self.lenient {
                        Enforcement::None
                    } else {
                        rule.enforcement()
                    }
                },
                |exception| exception.enforcement,
            )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exceptions(text: &str) -> Vec<Exception> {
        Exception::parse("exceptions.yaml", text.as_bytes()).unwrap()
    }

    fn enforcement(text: &str) -> Enforcement {
        let policy = Policy {
            lenient: false,
            exceptions: exceptions(text),
        };
        policy.enforcement("widgets", Some("v1"), Some("^.spec.size.unit"), UpgradeRule::Type)
    }

    #[test]
    fn the_most_specific_exception_wins() {
        use Enforcement::{None, Strict, Warn};
        for (text, expected) in [
            ("[]", Strict),
            ("[{rule: type, enforcement: None}]", None),
            ("[{rule: enum, enforcement: None}]", Strict),
            ("[{field: ^.spec.size, enforcement: Warn}]", Warn),
            ("[{field: ^.spec.siz, enforcement: Warn}]", Strict),
            ("[{field: ^, enforcement: Warn}]", Warn),
            (
                "[{version: v1, enforcement: Warn}, {version: v2, enforcement: None}]",
                Warn,
            ),
            ("[{crd: gadgets, rule: type, enforcement: None}]", Strict),
            (
                "[{rule: type, enforcement: None}, {crd: widgets, rule: type, enforcement: Warn}]",
                Warn,
            ),
            (
                "[{field: ^.spec, enforcement: None}, {field: ^.spec.size, enforcement: Warn}]",
                Warn,
            ),
            (
                "[{rule: type, enforcement: None}, {crd: widgets, enforcement: Warn}]",
                Warn,
            ),
        ] {
            assert_eq!(enforcement(text), expected, "{text}");
            let reversed: Vec<_> = exceptions(text).into_iter().rev().collect();
            assert_eq!(
                enforcement(&serde_json::to_string(&reversed).unwrap()),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn each_rule_has_its_own_enforcement() {
        let of = |lenient, rule| {
            Policy {
                lenient,
                exceptions: Vec::new(),
            }
            .enforcement("widgets", Some("v1"), None, rule)
        };
        assert_eq!(of(false, UpgradeRule::Enum), Enforcement::Strict);
        assert_eq!(of(false, UpgradeRule::ServedVersionRemoval), Enforcement::Warn);
        assert_eq!(of(false, UpgradeRule::Description), Enforcement::None);
        assert_eq!(of(true, UpgradeRule::Enum), Enforcement::None);
    }

    #[test]
    fn default_ignored_rules_stay_ignored() {
        for (lenient, text, expected) in [
            (false, "[]", false),
            (true, "[]", true),
            (false, "[{rule: storedObjects, enforcement: None}]", true),
            (false, "[{crd: widgets, enforcement: None}]", true),
            (false, "[{crd: gadgets, enforcement: None}]", false),
            (
                false,
                "[{field: ^, rule: storedObjects, enforcement: None}]",
                false,
            ),
            (true, "[{rule: enum, enforcement: Warn}]", true),
            (true, "[{field: ^.spec, enforcement: Warn}]", false),
            (
                false,
                "[{rule: storedObjects, enforcement: None}, {version: v1, enforcement: Strict}]",
                false,
            ),
        ] {
            let policy = Policy {
                lenient,
                exceptions: exceptions(text),
            };
            assert_eq!(
                policy.ignores("widgets", UpgradeRule::StoredObjects),
                expected,
                "{lenient} {text}"
            );
        }
    }

    #[test]
    fn problems_of_exceptions_name_their_path() {
        let text = r"
- {enforcement: None}
- {rule: typo, enforcement: None}
- {field: spec.size, enforcement: None}
- {feild: ^.spec.size, enforcement: None}
- {rule: type}
- {rule: type, enforcement: Maybe}
- none
";
        let problems = Exception::parse("exceptions.yaml", text.as_bytes()).unwrap_err();
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(lines.join("\n"));
        assert!(Exception::parse("e", b"rule: type").is_err());
        assert!(Exception::parse("e", b"[").is_err());
        assert_eq!(exceptions(""), []);
    }
}
