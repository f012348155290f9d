//! The compiled references of a rule's template.

use serde_json::{Map, Value, json};
use windlass_object::object;

use super::{
    data_reference::{Answers, DataReference, FetchedAnswer, HttpRequest},
    placeholder::{PlaceholderError, PlaceholderText, percent_encoded, plain},
    reader,
};
use crate::{
    PolicyKey,
    api::{
        HttpReference, OverrideRuleTemplate, ResourceSelector, ValidateRuleTemplate, ValueReference,
        ValueSource,
    },
    problem::PolicyProblems,
    selection,
};

/// The references of a rule's template, by their names in `data.extraParams` of the rendered program.
#[derive(Clone, Debug, Default)]
pub(crate) struct RuleReferences(Vec<(&'static str, FetchedReference)>);

#[derive(Clone, Debug)]
pub(super) enum FetchedReference {
    Owner {
        is_confined: bool,
        /// Whether only the existence of an owner matters.
        may_be_missing: bool,
    },
    Object {
        selector: Box<ResourceSelector>,
        namespace: PlaceholderText,
        name: PlaceholderText,
        is_confined: bool,
    },
    Http(Box<RequestReference>),
}

/// A request whose URL and parameters can have placeholders.
#[derive(Clone, Debug)]
pub(super) struct RequestReference {
    pub(super) url: PlaceholderText,
    pub(super) params: Vec<(String, PlaceholderText)>,
    pub(super) reference: HttpReference,
}

/// The result of resolving the references of a rule for an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ReferenceResolution {
    /// The value of `data.extraParams`.
    Ready(Value),
    /// References that must be fetched first.
    Missing(Vec<DataReference>),
    /// A reference that cannot be resolved, and the reason.
    Failed(String),
}

impl RuleReferences {
    /// Parses the reference of an override template, and adds its problems.
    pub(crate) fn from_override_template(
        key: &PolicyKey,
        template: &OverrideRuleTemplate,
        problems: &mut PolicyProblems,
    ) -> Self {
        let mut references = Self::default();
        references.add(key, template.value_ref.as_ref(), "valueRef", "", problems);
        references
    }

    /// Parses the references of a condition, and adds their problems.
    pub(crate) fn from_validate_template(
        key: &PolicyKey,
        template: &ValidateRuleTemplate,
        problems: &mut PolicyProblems,
    ) -> Self {
        let mut references = Self::default();
        if let Some(condition) = &template.condition {
            problems.within("condition", |problems| {
                references.add(key, Some(&condition.data_ref), "dataRef", "_d", problems);
                references.add(key, condition.value_ref.as_ref(), "valueRef", "", problems);
            });
        }
        references
    }

    fn add(
        &mut self,
        key: &PolicyKey,
        reference: Option<&ValueReference>,
        field: &str,
        suffix: &str,
        problems: &mut PolicyProblems,
    ) {
        let Some(reference) = reference else { return };
        let is_confined = !key.namespace.is_empty();
        let found = problems.within(field, |problems| match reference.from {
            ValueSource::Current | ValueSource::Old => None,
            ValueSource::Owner => Some(FetchedReference::Owner {
                is_confined,
                may_be_missing: reference.path.is_empty(),
            }),
            ValueSource::K8s => {
                let Some(selector) = &reference.k8s else {
                    problems.note("k8s", "is required with from: k8s");
                    return None;
                };
                Some(problems.within("k8s", |problems| reader::object(key, selector, problems)))
            }
            ValueSource::Http => {
                let Some(http) = &reference.http else {
                    problems.note("http", "is required with from: http");
                    return None;
                };
                Some(problems.within("http", |problems| reader::http(key, http, problems)))
            }
        });
        let name = match (reference.from, suffix) {
            (ValueSource::Http, "") => "http",
            (ValueSource::Http, _) => "http_d",
            (_, "") => "otherObject",
            (_, _) => "otherObject_d",
        };
        self.0.extend(found.map(|reference| (name, reference)));
    }

    /// Returns the references to fetch for an object.
    pub(crate) fn needs(&self, object: &Value, namespace: &str) -> Vec<DataReference> {
        let meanings = self
            .0
            .iter()
            .map(|(_, reference)| reference.data_reference(object, namespace));
        meanings
            .filter_map(|meaning| match meaning {
                Ok(Some(reference)) => Some(reference),
                Ok(None) | Err(_) => None,
            })
            .collect()
    }

    /// Resolves the references for an object with the fetched answers.
    pub(crate) fn resolve(&self, object: &Value, namespace: &str, answers: &Answers) -> ReferenceResolution {
        let mut found = Map::new();
        let mut missing = Vec::new();
        for (name, reference) in &self.0 {
            let meaning = match reference.data_reference(object, namespace) {
                Ok(meaning) => meaning,
                Err(error) => return ReferenceResolution::Failed(error),
            };
            let value = match meaning {
                None if matches!(reference, FetchedReference::Owner { .. }) => Value::Null,
                None => json!({}),
                Some(wanted) => match answers.get(&wanted) {
                    None => {
                        missing.push(wanted);
                        continue;
                    }
                    Some(answer) => match reference.value(&wanted, answer, object) {
                        Ok(value) => value,
                        Err(error) => return ReferenceResolution::Failed(error),
                    },
                },
            };
            found.insert((*name).to_owned(), value);
        }
        if missing.is_empty() {
            ReferenceResolution::Ready(found.into())
        } else {
            ReferenceResolution::Missing(missing)
        }
    }
}

impl FetchedReference {
    /// Returns the data reference for an object; `None` if it depends on a value that the object does not
    /// have.
    fn data_reference(&self, object: &Value, namespace: &str) -> Result<Option<DataReference>, String> {
        let wanted = match self {
            Self::Owner { may_be_missing, .. } if *may_be_missing && !has_owner(object) => return Ok(None),
            Self::Owner { is_confined, .. } => owner(object, namespace, *is_confined),
            Self::Object {
                selector,
                namespace: of_namespace,
                name,
                is_confined,
            } => {
                let place = match of_namespace.fill(object, plain) {
                    Ok(place) if place.is_empty() => namespace.to_owned(),
                    Ok(place) => place,
                    Err(error) => return missing_as_none(error),
                };
                if *is_confined && place != namespace {
                    return Err(format!(
                        "k8s.namespace is {place:?}: an OverridePolicy refers to objects of its own namespace only"
                    ));
                }
                named_or_labelled(selector, place, name, object, *is_confined)
            }
            Self::Http(request) => request.fill(object),
        };
        match wanted {
            Ok(wanted) => Ok(Some(wanted)),
            Err(Unresolved::Placeholder(error)) => missing_as_none(error),
            Err(Unresolved::Other(error)) => Err(error),
        }
    }

    /// Converts an answer into the value for the rule.
    fn value(&self, wanted: &DataReference, answer: &FetchedAnswer, object: &Value) -> Result<Value, String> {
        let found = match answer {
            FetchedAnswer::Found(found) => found,
            FetchedAnswer::NotFound => return Err(format!("{wanted} not found")),
            FetchedAnswer::Failed(error) => return Err(format!("{wanted}: {error}")),
        };
        match self {
            Self::Http(_) => Ok(json!({ "body": found })),
            Self::Owner { .. } => {
                let uid = object::text(object, "/metadata/ownerReferences/0/uid").unwrap_or_default();
                let is_other = !uid.is_empty() && object::text(found, "/metadata/uid") != Some(uid);
                if is_other {
                    return Err(format!(
                        "{wanted} is not the owner with uid {uid}, but another object of the same name"
                    ));
                }
                Ok(found.clone())
            }
            Self::Object { selector, .. } => match found {
                Value::Array(objects) => Ok(first_by_name(selector, objects)),
                found => Ok(found.clone()),
            },
        }
    }
}

/// Why a reference cannot be resolved.
enum Unresolved {
    Placeholder(PlaceholderError),
    Other(String),
}

impl From<PlaceholderError> for Unresolved {
    fn from(error: PlaceholderError) -> Self {
        Self::Placeholder(error)
    }
}

/// Maps a missing value to `None`; other errors remain errors.
fn missing_as_none(error: PlaceholderError) -> Result<Option<DataReference>, String> {
    match error {
        PlaceholderError::Missing(_) => Ok(None),
        PlaceholderError::NoText(_) => Err(error.to_string()),
    }
}

fn has_owner(object: &Value) -> bool {
    !object::items(object, "/metadata/ownerReferences").is_empty()
}

fn owner(object: &Value, namespace: &str, is_confined: bool) -> Result<DataReference, Unresolved> {
    let text = |name: &str| {
        let pointer = format!("/metadata/ownerReferences/0/{name}");
        object::text(object, &pointer).filter(|text| !text.is_empty())
    };
    match (text("apiVersion"), text("kind"), text("name")) {
        (Some(api_version), Some(kind), Some(name)) => Ok(DataReference::Object {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: checked_name(name.to_owned())?,
            is_confined,
        }),
        _ => Err(Unresolved::Other(
            "the object has no owner: metadata.ownerReferences is empty".into(),
        )),
    }
}

fn named_or_labelled(
    selector: &ResourceSelector,
    namespace: String,
    name: &PlaceholderText,
    object: &Value,
    is_confined: bool,
) -> Result<DataReference, Unresolved> {
    let (api_version, kind) = (selector.api_version.clone(), selector.kind.clone());
    if !selector.name.is_empty() {
        let name = name.fill(object, plain)?;
        return Ok(DataReference::Object {
            api_version,
            kind,
            namespace,
            name: checked_name(name)?,
            is_confined,
        });
    }
    let mut label_selector = selector.label_selector.clone().unwrap_or_else(|| json!({}));
    for value in label_values(&mut label_selector) {
        if let Value::String(text) = value {
            // The text was parsed when the policy was compiled.
            let text = PlaceholderText::parse(text).map_err(|error| Unresolved::Other(error.into()))?;
            *value = text.fill(object, plain)?.into();
        }
    }
    Ok(DataReference::Objects {
        api_version,
        kind,
        namespace,
        label_selector,
        is_confined,
    })
}

/// Validates a name, so that it cannot change the API path.
fn checked_name(name: String) -> Result<String, Unresolved> {
    if name.is_empty() || name == "." || name == ".." || name.contains(['/', '%']) {
        return Err(Unresolved::Other(format!("{name:?} is not a name of an object")));
    }
    Ok(name)
}

pub(super) fn label_values(selector: &mut Value) -> Vec<&mut Value> {
    let Value::Object(fields) = selector else {
        return Vec::new();
    };
    let mut values = Vec::new();
    for (name, field) in fields {
        match (name.as_str(), field) {
            ("matchLabels", Value::Object(labels)) => values.extend(labels.values_mut()),
            ("matchExpressions", Value::Array(expressions)) => {
                let lists = expressions
                    .iter_mut()
                    .filter_map(|expression| expression.get_mut("values")?.as_array_mut());
                values.extend(lists.flatten());
            }
            _ => {}
        }
    }
    values
}

/// Returns the first object by namespace and name; null if there is none.
fn first_by_name(selector: &ResourceSelector, objects: &[Value]) -> Value {
    let place = |object: &&Value| {
        let text = |pointer| object::text(object, pointer).unwrap_or_default().to_owned();
        (text("/metadata/namespace"), text("/metadata/name"))
    };
    let fits = |object: &&Value| {
        let fields = ResourceSelector {
            label_selector: None,
            ..selector.clone()
        };
        selector.field_selector.is_none() || selection::selects_content(&fields, object)
    };
    objects
        .iter()
        .filter(fits)
        .min_by_key(place)
        .cloned()
        .unwrap_or_default()
}

impl RequestReference {
    fn fill(&self, object: &Value) -> Result<DataReference, Unresolved> {
        let mut url = self.url.fill(object, percent_encoded)?;
        let mut separator = if url.contains('?') { '&' } else { '?' };
        for (name, value) in &self.params {
            let value = value.fill(object, plain)?;
            url.push(separator);
            url.push_str(&percent_encoded(name));
            url.push('=');
            url.push_str(&percent_encoded(&value));
            separator = '&';
        }
        Ok(DataReference::Http(HttpRequest {
            method: self.reference.method,
            url,
            headers: self.reference.header.clone(),
            body: self.reference.body.clone(),
            auth: self.reference.auth.clone(),
        }))
    }
}
