//! Parses one dependency, from `dependencies.yaml` or a property, into a constraint.

use serde_json::Value;
use version_range::VersionRange;
use windlass_object::{JsonPath, object};

use super::{
    cel_rule::CelRule,
    constraint::{Dependency, RequiredApi, RequiredPackage, Requirement},
};

/// The maximum nesting of constraints; published ones are two deep.
const DEPTH: usize = 16;

/// The path and message of a problem in a dependency.
pub(super) type Wrong = (JsonPath, String);

/// Parses an entry of `dependencies.yaml`; `None` for labels, which nothing in a cluster has.
pub(super) fn entry(entry: &Value) -> Result<Option<Requirement>, Wrong> {
    let value = entry.get("value").unwrap_or(&Value::Null);
    match object::text(entry, "/type").unwrap_or_default() {
        "olm.gvk" => api(value).map(Some),
        "olm.package" => package(value).map(Some),
        "olm.constraint" => nested(value, DEPTH).map(Some),
        "olm.label" => Ok(None),
        other => {
            // The wording is that of operator-registry.
            let message = format!("couldn't parse dependency of type {other}");
            return Err((JsonPath::root().field("type"), message));
        }
    }
    .map_err(|(path, message)| problem_at(&JsonPath::root().field("value"), &path, message))
}

/// Parses a property; `None` if it is not a constraint.
pub(super) fn property(property: &Value) -> Result<Option<Requirement>, Wrong> {
    let value = property.get("value").unwrap_or(&Value::Null);
    match object::text(property, "/type").unwrap_or_default() {
        "olm.gvk.required" => api(value).map(Some),
        "olm.package.required" => package(value).map(Some),
        "olm.constraint" => nested(value, DEPTH).map(Some),
        _ => Ok(None),
    }
    .map_err(|(path, message)| problem_at(&JsonPath::root().field("value"), &path, message))
}

/// The author's message for a constraint.
pub(super) fn failure_message(entry: &Value) -> Option<String> {
    object::text(entry, "/failureMessage")
        .filter(|message| !message.is_empty())
        .map(str::to_owned)
}

fn problem_at(outer: &JsonPath, path: &JsonPath, message: String) -> Wrong {
    (outer.join(path), message)
}

fn required<'a>(value: &'a Value, field: &str, message: &str) -> Result<&'a str, Wrong> {
    value
        .get(field)
        .and_then(Value::as_str)
        .filter(|text| !text.is_empty())
        .ok_or_else(|| (JsonPath::root().field(field), message.to_owned()))
}

fn api(value: &Value) -> Result<Requirement, Wrong> {
    Ok(Requirement::Api(RequiredApi {
        group: required(value, "group", "API Group is empty")?.to_owned(),
        version: required(value, "version", "API Version is empty")?.to_owned(),
        kind: required(value, "kind", "API Kind is empty")?.to_owned(),
    }))
}

fn package(value: &Value) -> Result<Requirement, Wrong> {
    let name = required(value, "packageName", "Package name is empty")?;
    let field = if value.get("versionRange").is_some() {
        "versionRange"
    } else {
        "version"
    };
    let range = required(value, field, "Package version is empty")?;
    if VersionRange::parse(range).is_none() {
        return Err((
            JsonPath::root().field(field),
            "Invalid semver format version".to_owned(),
        ));
    }
    Ok(Requirement::Package(RequiredPackage {
        name: name.to_owned(),
        range: range.to_owned(),
    }))
}

/// Parses the value of an `olm.constraint`: exactly one of `gvk`, `package`, `cel`, `all`, `any` and `not`.
fn nested(value: &Value, depth: usize) -> Result<Requirement, Wrong> {
    const KINDS: [&str; 6] = ["gvk", "package", "cel", "all", "any", "not"];

    let root = JsonPath::root();
    let Some(left) = depth.checked_sub(1) else {
        return Err((root, format!("is nested deeper than {DEPTH} levels")));
    };
    let kinds: Vec<&str> = KINDS
        .into_iter()
        .filter(|kind| value.get(kind).is_some())
        .collect();
    let [kind] = kinds.as_slice() else {
        return Err((root, format!("must have exactly one of {}", KINDS.join(", "))));
    };
    let (path, value) = (root.field(kind), &value[kind]);
    let compound = || {
        let list = JsonPath::root().field("constraints");
        let parts = object::items(value, "/constraints");
        if parts.is_empty() {
            return Err((list, "must have at least one constraint".to_owned()));
        }
        let parts = parts.iter().enumerate().map(|(index, part)| {
            let requirement = nested(part, left)
                .map_err(|(path, message)| problem_at(&list.item(index), &path, message))?;
            Ok(Dependency {
                source: format!("{kind}[{index}]"),
                failure_message: failure_message(part),
                requirement,
            })
        });
        parts.collect::<Result<Vec<_>, Wrong>>()
    };
    let requirement = match *kind {
        "gvk" => api(value),
        "package" => package(value),
        "cel" => CelRule::parse(object::text(value, "/rule").unwrap_or_default())
            .map(Requirement::Rule)
            .map_err(|error| (JsonPath::root().field("rule"), error.to_string())),
        "all" => compound().map(Requirement::All),
        "any" => compound().map(Requirement::Any),
        _ => compound().map(Requirement::Not),
    };
    requirement.map_err(|(inner, message)| problem_at(&path, &inner, message))
}
