//! Parses case files, and validates them against their schema.

use std::{collections::BTreeMap, sync::Arc, sync::LazyLock};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use structural_schema::Structural;
use windlass_object::{custom_resource::schema, object};

use super::{
    case_file::{RawCase, RawCases, RawData, RawExpectation, RawOperation, RawResponse, RawUser},
    policy_case::{CaseObject, ExpectedObject, ExpectedOutcome, PolicyCase},
    policy_cases::{CasePolicy, PolicyCases},
};
use crate::{
    AdmissionOperation, FetchedAnswer, KnownData, KnownResponse, PolicyProblem, api::HttpMethod,
    problem::PolicyProblems,
};

static FILE: LazyLock<Structural> = LazyLock::new(|| Structural::new(&schema::<RawCases>()));
static DATA: LazyLock<Structural> = LazyLock::new(|| Structural::new(&schema::<RawData>()));

/// The objects of a file, by name.
type NamedObjects = BTreeMap<String, Arc<Value>>;

/// A stand-in for the root path in messages: schemas use an empty path for the document itself.
const ROOT: &str = "";

impl PolicyCases {
    /// Parses a case file.
    ///
    /// # Errors
    ///
    /// Every problem in it, each with its field.
    pub fn read(document: &Value) -> Result<Self, Vec<PolicyProblem>> {
        let written: RawCases = typed(document, &FILE)?;
        let mut problems = PolicyProblems::below(ROOT);
        let policies = written.policies.into_iter().enumerate();
        let policies = policies
            .filter_map(|(index, policy)| {
                problems.within(format!("policies[{index}]"), |problems| {
                    read_policy(policy, problems)
                })
            })
            .collect();
        let objects: NamedObjects = written
            .objects
            .into_iter()
            .map(|(name, object)| (name, Arc::new(object)))
            .collect();
        for (name, object) in &objects {
            problems.within(format!("objects.{name}"), |problems| {
                check_object(object, problems);
            });
        }
        let data = problems.within("data", |problems| read_data(written.data, problems));
        let mut names = BTreeMap::new();
        let mut cases = Vec::new();
        for (index, case) in written.cases.into_iter().enumerate() {
            problems.within(format!("cases[{index}]"), |problems| {
                if let Some(other) = names.insert(case.name.clone(), index) {
                    problems.note("name", format!("is used by cases[{other}] already"));
                }
                cases.extend(read_case(case, &objects, problems));
            });
        }
        let problems = problems.into_problems();
        match problems.is_empty() {
            true => Ok(Self {
                policies,
                data,
                cases,
            }),
            false => Err(problems),
        }
    }
}

/// Parses data: an object, or `objects` and `responses` as in a case file.
///
/// # Errors
///
/// Every problem in it, each with its field.
pub fn known_data(document: &Value) -> Result<KnownData, Vec<PolicyProblem>> {
    let mut problems = PolicyProblems::below(ROOT);
    let is_object = document.get("kind").is_some() || document.get("apiVersion").is_some();
    let data = match is_object {
        true => {
            check_object(document, &mut problems);
            KnownData {
                objects: vec![document.clone()],
                responses: Vec::new(),
            }
        }
        false => read_data(typed(document, &DATA)?, &mut problems),
    };
    let problems = problems.into_problems();
    match problems.is_empty() {
        true => Ok(data),
        false => Err(problems),
    }
}

/// Applies a JSON merge patch (RFC 7386).
pub fn merged(target: &Value, patch: &Value) -> Value {
    let Value::Object(changes) = patch else {
        return patch.clone();
    };
    let mut fields = target.as_object().cloned().unwrap_or_default();
    for (name, change) in changes {
        if change.is_null() {
            fields.shift_remove(name);
        } else {
            let field = merged(fields.get(name).unwrap_or(&Value::Null), change);
            fields.insert(name.clone(), field);
        }
    }
    fields.into()
}

/// Validates a document against its schema, and parses it.
fn typed<T: DeserializeOwned + JsonSchema>(
    document: &Value,
    schema: &Structural,
) -> Result<T, Vec<PolicyProblem>> {
    if !document.is_object() {
        return Err(vec![PolicyProblem::new(ROOT, "is not an object")]);
    }
    let mut document = document.clone();
    let unknown = schema.prune(&mut document).into_iter();
    let mut problems: Vec<_> = unknown
        .map(|field| PolicyProblem::new(field, "unknown field"))
        .collect();
    let errors = schema.validate(&document, None);
    problems.extend(
        errors
            .iter()
            .map(|error| PolicyProblem::new(&error.field, error.message())),
    );
    if !problems.is_empty() {
        return Err(problems);
    }
    serde_path_to_error::deserialize(document).map_err(|error| {
        let path = error.path().to_string();
        vec![PolicyProblem::new(path, error.inner().to_string())]
    })
}

fn read_policy(policy: Value, problems: &mut PolicyProblems) -> Option<CasePolicy> {
    match policy {
        Value::String(name) => {
            if !is_below(&name) {
                problems.note(
                    "",
                    "must name a file below the folder of this one: a relative path without ..",
                );
                return None;
            }
            Some(CasePolicy::File(name))
        }
        policy @ Value::Object(_) => Some(CasePolicy::Inline(policy)),
        _ => {
            problems.note("", "must be the name of a file, or a policy");
            None
        }
    }
}

/// Reports whether a path stays below its base folder, on every operating system.
fn is_below(path: &str) -> bool {
    let is_name = |part: &str| !["", ".", ".."].contains(&part);
    !path.contains(['\\', ':', '\0']) && path.split('/').all(is_name)
}

fn check_object(object: &Value, problems: &mut PolicyProblems) {
    for name in ["apiVersion", "kind"] {
        let value = object.get(name).and_then(Value::as_str).unwrap_or_default();
        if value.is_empty() {
            problems.note(name, "must not be empty");
        }
    }
}

fn read_data(data: RawData, problems: &mut PolicyProblems) -> KnownData {
    for (index, object) in data.objects.iter().enumerate() {
        problems.within(format!("objects[{index}]"), |problems| {
            check_object(object, problems);
            if object::text(object, "/metadata/name").is_none_or(str::is_empty) {
                problems.note("metadata.name", "must not be empty");
            }
        });
    }
    let responses = data.responses.into_iter().enumerate();
    let responses = responses.filter_map(|(index, response)| {
        problems.within(format!("responses[{index}]"), |problems| {
            read_response(response, problems)
        })
    });
    KnownData {
        responses: responses.collect(),
        objects: data.objects,
    }
}

fn read_response(response: RawResponse, problems: &mut PolicyProblems) -> Option<KnownResponse> {
    let answer = match (response.body, response.error) {
        (Some(body), None) => FetchedAnswer::Found(body),
        (None, Some(error)) => FetchedAnswer::Failed(error),
        _ => {
            problems.note("", "must have either body or error");
            return None;
        }
    };
    Some(KnownResponse {
        method: response.method.unwrap_or(HttpMethod::Get),
        url: response.url,
        answer,
    })
}

fn read_case(case: RawCase, objects: &NamedObjects, problems: &mut PolicyProblems) -> Option<PolicyCase> {
    let operation = match (case.operation, &case.old_object) {
        (Some(RawOperation::Create), _) | (None, None) => AdmissionOperation::Create,
        (Some(RawOperation::Update), _) | (None, Some(_)) => AdmissionOperation::Update,
        (Some(RawOperation::Delete), _) => AdmissionOperation::Delete,
    };
    match (operation, &case.old_object) {
        (AdmissionOperation::Update, None) => problems.note("oldObject", "must be given with UPDATE"),
        (AdmissionOperation::Create | AdmissionOperation::Delete, Some(_)) => {
            problems.note("oldObject", "must be given with UPDATE only");
        }
        _ => {}
    }
    if case.old_change.is_some() && case.old_object.is_none() {
        problems.note("oldChange", "must be given with oldObject only");
    }
    let object = read_object("object", case.object, case.change, objects, problems);
    let old_object = case
        .old_object
        .and_then(|old| read_object("oldObject", old, case.old_change, objects, problems));
    let namespace_object = case
        .namespace_object
        .and_then(|namespace| read_object("namespaceObject", namespace, None, objects, problems));
    let data = problems.within("data", |problems| read_data(case.data, problems));
    let expected = problems.within("expect", |problems| {
        read_expected(case.expect, operation, objects, problems)
    });
    Some(PolicyCase {
        name: case.name,
        operation,
        object: object?,
        old_object,
        namespace_object,
        request: request_attributes(&case.user, case.dry_run),
        data,
        expected,
    })
}

/// The attributes of a request that describe its user.
fn request_attributes(user: &RawUser, is_dry_run: bool) -> Value {
    let mut info = Map::new();
    if !user.name.is_empty() {
        info.insert("username".into(), json!(user.name));
    }
    if !user.groups.is_empty() {
        info.insert("groups".into(), json!(user.groups));
    }
    json!({"userInfo": info, "dryRun": is_dry_run})
}

fn read_object(
    field: &str,
    object: Value,
    change: Option<Value>,
    objects: &NamedObjects,
    problems: &mut PolicyProblems,
) -> Option<CaseObject> {
    let base = match object {
        Value::String(name) => {
            let Some(object) = objects.get(&name) else {
                problems.note(field, format!("{name:?} not found in objects"));
                return None;
            };
            Arc::clone(object)
        }
        object @ Value::Object(_) => {
            problems.within(field, |problems| check_object(&object, problems));
            Arc::new(object)
        }
        _ => {
            problems.note(field, "must be an object, or the name of one in objects");
            return None;
        }
    };
    Some(CaseObject { base, change })
}

fn read_expected(
    expect: RawExpectation,
    operation: AdmissionOperation,
    objects: &NamedObjects,
    problems: &mut PolicyProblems,
) -> ExpectedOutcome {
    let given = [
        ("object", expect.object.is_some()),
        ("change", expect.change.is_some()),
        ("patch", expect.patch.is_some()),
    ];
    let given: Vec<_> = given.into_iter().filter(|(_, is_given)| *is_given).collect();
    if given.len() > 1 {
        problems.note("", "must have at most one of object, change and patch");
    }
    let refusals = [("denied", &expect.denied), ("error", &expect.error)];
    for (name, _) in refusals.iter().filter(|(_, expected)| expected.is_some()) {
        for (field, _) in &given {
            problems.note(
                *field,
                format!("must not be given with {name}: nothing is written"),
            );
        }
    }
    if operation == AdmissionOperation::Delete {
        for (field, _) in &given {
            problems.note(*field, "must not be given with DELETE: nothing is written");
        }
    }
    let object = match (expect.object, expect.change, expect.patch) {
        (Some(object), ..) => {
            read_object("object", object, None, objects, problems).map(ExpectedObject::Whole)
        }
        (None, Some(change), _) => Some(ExpectedObject::Change(change)),
        (None, None, Some(patch)) => Some(ExpectedObject::Patch(patch.into())),
        (None, None, None) => None,
    };
    ExpectedOutcome {
        object: object.unwrap_or(ExpectedObject::Same),
        denied: expect.denied,
        error: expect.error,
        warnings: expect.warnings,
        audits: expect.audits,
        ignored: expect.ignored,
    }
}
