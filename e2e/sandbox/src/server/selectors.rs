//! `labelSelector` and `fieldSelector` of lists and watches.

use serde_json::Value;

use super::{call::Call, kinds::ServedResource};
use crate::StatusError;

/// The selectors of a list or watch.
#[derive(Clone, Debug, Default)]
pub(super) struct Selectors {
    labels: Vec<Requirement>,
    fields: Vec<(String, bool, String)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Requirement {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Missing(String),
}

/// Returns the name in a field selector that selects a single object by name.
pub(super) fn exact_name(selector: &str) -> Option<&str> {
    selector.split(',').find_map(|part| {
        let name = part.strip_prefix("metadata.name=")?;
        Some(name.strip_prefix('=').unwrap_or(name))
    })
}

impl Selectors {
    /// Parses the selectors of a request.
    ///
    /// # Errors
    ///
    /// 400 when a selector is malformed or the resource does not support a field.
    pub(super) fn parse(call: &Call, served: &ServedResource, name: &str) -> Result<Self, StatusError> {
        let mut fields = Vec::new();
        for part in call
            .query("fieldSelector")
            .split(',')
            .filter(|part| !part.is_empty())
        {
            let (field, negated, value) = if let Some((field, value)) = part.split_once("!=") {
                (field, true, value)
            } else if let Some((field, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
                (field, false, value)
            } else {
                return Err(StatusError::bad_request(format!("invalid selector: {part:?}")));
            };
            known_field(field, served)?;
            fields.push((field.to_owned(), negated, value.to_owned()));
        }
        if !name.is_empty() {
            fields.push(("metadata.name".to_owned(), false, name.to_owned()));
        }
        Ok(Self {
            labels: parse_labels(call.query("labelSelector"))?,
            fields,
        })
    }

    /// Reports whether an object, in the requested version, is selected.
    pub(super) fn select(&self, object: &Value) -> bool {
        let labels = &object["metadata"]["labels"];
        let value = |key: &str| labels.get(key).and_then(Value::as_str);
        let listed = |key: &str, values: &[String]| {
            value(key).is_some_and(|value| values.iter().any(|wanted| wanted == value))
        };
        let by_labels = self.labels.iter().all(|requirement| match requirement {
            Requirement::In(key, values) => listed(key, values),
            Requirement::NotIn(key, values) => !listed(key, values),
            Requirement::Exists(key) => value(key).is_some(),
            Requirement::Missing(key) => value(key).is_none(),
        });
        by_labels
            && self.fields.iter().all(|(field, negated, wanted)| {
                let pointer = match field.as_str() {
                    // Newer events name their source in another field.
                    "source" if object["source"]["component"].is_null() => "/reportingComponent".to_owned(),
                    "source" => "/source/component".to_owned(),
                    field => format!("/{}", field.replace('.', "/")),
                };
                let actual = match object.pointer(&pointer) {
                    Some(Value::String(text)) => text.clone(),
                    None | Some(Value::Null) => String::new(),
                    Some(other) => other.to_string(),
                };
                (actual == *wanted) != *negated
            })
    }
}

/// Checks that the resource supports a field in field selectors.
fn known_field(field: &str, served: &ServedResource) -> Result<(), StatusError> {
    let more: &[&str] = match served.resource.as_str() {
        "pods" => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.serviceAccountName",
            "status.phase",
            "status.podIP",
        ],
        "events" if served.group.is_empty() => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        "events" => &[
            "regarding.kind",
            "regarding.namespace",
            "regarding.name",
            "regarding.uid",
            "regarding.apiVersion",
            "regarding.resourceVersion",
            "regarding.fieldPath",
            "reason",
            "reportingController",
            "type",
        ],
        "secrets" => &["type"],
        "namespaces" => &["status.phase"],
        "nodes" => &["spec.unschedulable"],
        "services" => &["spec.clusterIP", "spec.type"],
        _ => &[],
    };
    let version = served
        .definition
        .as_ref()
        .and_then(|definition| definition.version(&served.version));
    let selectable = version.is_some_and(|version| {
        version
            .selectable
            .iter()
            .any(|path| path.trim_start_matches('.') == field)
    });
    if ["metadata.name", "metadata.namespace"].contains(&field) || more.contains(&field) || selectable {
        return Ok(());
    }
    Err(StatusError::bad_request(match &served.definition {
        Some(_) => format!("field label not supported: {field}"),
        None => {
            format!("{field:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
        }
    }))
}

/// Parses `a=b,c!=d,e in (f,g),h notin (i),j,!k`.
fn parse_labels(text: &str) -> Result<Vec<Requirement>, StatusError> {
    let malformed = || StatusError::bad_request(format!("unable to parse requirement: {text:?}"));
    let mut requirements = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        // A comma in parentheses separates values, not requirements.
        let mut depth = 0_i32;
        let end = rest
            .char_indices()
            .find(|(_, c)| {
                depth += i32::from(*c == '(') - i32::from(*c == ')');
                *c == ',' && depth == 0
            })
            .map_or(rest.len(), |(index, _)| index);
        let part = rest[..end].trim();
        rest = rest.get(end + 1..).unwrap_or_default().trim();
        let list = |values: &str| -> Result<Vec<String>, StatusError> {
            let inner = values
                .trim()
                .strip_prefix('(')
                .and_then(|values| values.strip_suffix(')'));
            Ok(inner
                .ok_or_else(malformed)?
                .split(',')
                .map(|value| value.trim().to_owned())
                .collect())
        };
        let requirement = if let Some((key, values)) = part.split_once(" notin ") {
            Requirement::NotIn(key.trim().to_owned(), list(values)?)
        } else if let Some((key, values)) = part.split_once(" in ") {
            Requirement::In(key.trim().to_owned(), list(values)?)
        } else if let Some((key, value)) = part.split_once("!=") {
            Requirement::NotIn(key.trim().to_owned(), vec![value.trim().to_owned()])
        } else if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
            Requirement::In(key.trim().to_owned(), vec![value.trim().to_owned()])
        } else if let Some(key) = part.strip_prefix('!') {
            Requirement::Missing(key.trim().to_owned())
        } else if part.contains(char::is_whitespace) || part.is_empty() {
            return Err(malformed());
        } else {
            Requirement::Exists(part.to_owned())
        };
        requirements.push(requirement);
    }
    Ok(requirements)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn one_object_is_selected_by_its_name() {
        for (selector, expected) in [
            ("", None),
            ("metadata.name=a", Some("a")),
            ("spec.b=c,metadata.name==a", Some("a")),
            ("metadata.name!=a", None),
            ("metadata.namespace=a", None),
        ] {
            assert_eq!(exact_name(selector), expected, "{selector}");
        }
    }

    #[test]
    fn label_selectors_select_as_kubectl_writes_them() {
        let object = json!({"metadata": {"labels": {"a": "1", "b": "2"}}});
        for (text, expected) in [
            ("", true),
            ("a=1", true),
            ("a==1,b=2", true),
            ("a!=1", false),
            ("c!=1", true),
            ("a in (1,3),b", true),
            ("a notin (1, 3)", false),
            ("!c", true),
            ("!a", false),
            ("c", false),
        ] {
            let selectors = Selectors {
                labels: parse_labels(text).unwrap(),
                fields: Vec::new(),
            };
            assert_eq!(selectors.select(&object), expected, "{text}");
        }
        assert!(parse_labels("a in 1").is_err());
    }
}
