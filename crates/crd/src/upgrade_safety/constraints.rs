//! The rules about single keywords of a property, as a table. Messages equal those of `sigs.k8s.io/crdify`,
//! `pkg/validations/property`.

use std::{cmp::Ordering, collections::HashSet};

use serde_json::{Number, Value};
use windlass_object::text::shortened;

use super::UpgradeRule;

/// The rule about a keyword.
pub(super) struct Constraint {
    pub(super) keyword: &'static str,
    pub(super) rule: UpgradeRule,
    /// Returns the violations for two different canonical values.
    pub(super) compare: fn(KeywordChange<'_>) -> Result<Vec<String>, Mistyped>,
}

/// The values of a keyword or another field before and after; `None` if absent.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeywordChange<'a> {
    pub(super) keyword: &'a str,
    pub(super) old: Option<&'a Value>,
    pub(super) new: Option<&'a Value>,
}

/// A value does not have the type of its keyword, so the rule does not apply.
#[derive(Debug)]
pub(super) struct Mistyped;

/// Size limit of a value in a message, in bytes.
const MAX_SHOWN_BYTES: usize = 1024;

/// The keywords with rules.
pub(super) const CONSTRAINTS: &[Constraint] = &[
    constraint("type", UpgradeRule::Type, changed_type),
    constraint("required", UpgradeRule::Required, new_required),
    constraint("default", UpgradeRule::Default, changed_default),
    constraint("enum", UpgradeRule::Enum, narrowed_enum),
    constraint("minimum", UpgradeRule::Minimum, raised_minimum),
    constraint("minItems", UpgradeRule::MinItems, raised_minimum),
    constraint("minLength", UpgradeRule::MinLength, raised_minimum),
    constraint("minProperties", UpgradeRule::MinProperties, raised_minimum),
    constraint("maximum", UpgradeRule::Maximum, lowered_maximum),
    constraint("maxItems", UpgradeRule::MaxItems, lowered_maximum),
    constraint("maxLength", UpgradeRule::MaxLength, lowered_maximum),
    constraint("maxProperties", UpgradeRule::MaxProperties, lowered_maximum),
    constraint("pattern", UpgradeRule::Pattern, changed_pattern),
    constraint("nullable", UpgradeRule::Nullable, changed_nullable),
    constraint("oneOf", UpgradeRule::OneOf, changed_one_of),
    constraint("x-kubernetes-map-type", UpgradeRule::MapType, changed),
    constraint("description", UpgradeRule::Description, changed),
    constraint("title", UpgradeRule::Description, changed),
    constraint("example", UpgradeRule::Description, changed),
    constraint("externalDocs", UpgradeRule::Description, changed),
];

const fn constraint(
    keyword: &'static str,
    rule: UpgradeRule,
    compare: fn(KeywordChange<'_>) -> Result<Vec<String>, Mistyped>,
) -> Constraint {
    Constraint {
        keyword,
        rule,
        compare,
    }
}

fn changed_type(change: KeywordChange<'_>) -> Result<Vec<String>, Mistyped> {
    text(change.old)?;
    text(change.new)?;
    Ok(vec![format!("type changed : {}", change.shown())])
}

fn new_required(change: KeywordChange<'_>) -> Result<Vec<String>, Mistyped> {
    let added: Vec<&str> = difference(list(change.new)?, list(change.old)?)
        .into_iter()
        .map(|name| name.as_str().ok_or(Mistyped))
        .collect::<Result<_, _>>()?;
    if added.is_empty() {
        return Ok(Vec::new());
    }
    Ok(vec![format!("new required fields: [{}]", added.join(", "))])
}

fn changed_default(change: KeywordChange<'_>) -> Result<Vec<String>, Mistyped> {
    Ok(vec![match (change.old, change.new) {
        (None, Some(new)) => format!("default added when there was none previously : {}", shown(new)),
        (Some(old), None) => format!("default value removed : {}", shown(old)),
        _ => format!("default value changed : {}", change.shown()),
    }])
}

fn narrowed_enum(change: KeywordChange<'_>) -> Result<Vec<String>, Mistyped> {
    changed_choice(change, |old, new| {
        list_items(&difference(old, new), "allowed enum values removed : ")
            .into_iter()
            .collect()
    })
}

fn changed_one_of(change: KeywordChange<'_>) -> Result<Vec<String>, Mistyped> {
    changed_choice(change, |old, new| {
        let removed = list_items(&difference(old, new), "allowed oneOf schemas removed: ");
        let added = list_items(&difference(new, old), "allowed oneOf schemas added: ");
        removed.into_iter().chain(added).collect()
    })
}

/// Describes how a list of allowed values has changed. Without a list, everything is allowed.
fn changed_choice(
    change: KeywordChange<'_>,
    compare: impl FnOnce(&[Value], &[Value]) -> Vec<String>,
) -> Result<Vec<String>, Mistyped> {
    let (old, new) = (list(change.old)?, list(change.new)?);
    Ok(match (change.old, change.new) {
        (None, _) => vec![format!(
            "{} constraint added when there was none previously : {}",
            change.keyword,
            listed(new)
        )],
        (_, None) => Vec::new(),
        _ => compare(old, new),
    })
}

fn raised_minimum(change: KeywordChange<'_>) -> Result<Vec<String>, Mistyped> {
    tightened_bound(change, "minimum", Ordering::Less, "increased")
}

fn lowered_maximum(change: KeywordChange<'_>) -> Result<Vec<String>, Mistyped> {
    tightened_bound(change, "maximum", Ordering::Greater, "decreased")
}

/// Describes a new or tighter bound: compared with the new value, the old one is `looser`.
fn tightened_bound(
    change: KeywordChange<'_>,
    what: &str,
    looser: Ordering,
    moved: &str,
) -> Result<Vec<String>, Mistyped> {
    Ok(match (number(change.old)?, number(change.new)?) {
        (None, Some(new)) => vec![format!(
            "{what} constraint added when there was none previously : {new}"
        )],
        (Some(old), Some(new)) if order(old, new) == looser => {
            vec![format!("{what} {moved} : {old} -> {new}")]
        }
        _ => Vec::new(),
    })
}

fn changed_pattern(change: KeywordChange<'_>) -> Result<Vec<String>, Mistyped> {
    let what = match (text(change.old)?, text(change.new)?) {
        (None, _) => "added",
        (_, None) => "removed",
        _ => "changed",
    };
    Ok(vec![format!("pattern {what} : {}", change.shown())])
}

fn changed_nullable(change: KeywordChange<'_>) -> Result<Vec<String>, Mistyped> {
    match (change.old, change.new) {
        (None, Some(Value::Bool(_))) => Ok(vec!["nullable added : false -> true".to_owned()]),
        (Some(Value::Bool(_)), None) => Ok(vec!["nullable removed : true -> false".to_owned()]),
        _ => Err(Mistyped),
    }
}

fn changed(change: KeywordChange<'_>) -> Result<Vec<String>, Mistyped> {
    Ok(vec![format!("{} changed : {}", change.keyword, change.shown())])
}

fn text(value: Option<&Value>) -> Result<Option<&str>, Mistyped> {
    value.map(|value| value.as_str().ok_or(Mistyped)).transpose()
}

fn number(value: Option<&Value>) -> Result<Option<&Number>, Mistyped> {
    value.map(|value| value.as_number().ok_or(Mistyped)).transpose()
}

fn list(value: Option<&Value>) -> Result<&[Value], Mistyped> {
    match value {
        None => Ok(&[]),
        Some(value) => value.as_array().map(Vec::as_slice).ok_or(Mistyped),
    }
}

/// Compares by value. Non-integer doubles lose nothing that was in the file.
fn order(one: &Number, other: &Number) -> Ordering {
    match (one.as_i128(), other.as_i128()) {
        (Some(one), Some(other)) => one.cmp(&other),
        _ => one
            .as_f64()
            .partial_cmp(&other.as_f64())
            .unwrap_or(Ordering::Equal),
    }
}

fn difference<'a>(from: &'a [Value], without: &[Value]) -> Vec<&'a Value> {
    let without: HashSet<&Value> = without.iter().collect();
    from.iter().filter(|item| !without.contains(item)).collect()
}

/// Returns `what` followed by the items, if there are any.
fn list_items(items: &[&Value], what: &str) -> Option<String> {
    (!items.is_empty()).then(|| format!("{what}{}", listed(items.iter().copied())))
}

fn listed<'a>(items: impl IntoIterator<Item = &'a Value>) -> String {
    let items: Vec<String> = items.into_iter().map(Value::to_string).collect();
    shortened(format!("[{}]", items.join(", ")), MAX_SHOWN_BYTES)
}

fn shown(value: &Value) -> String {
    shortened(value.to_string(), MAX_SHOWN_BYTES)
}

impl<'a> KeywordChange<'a> {
    pub(super) fn new(keyword: &'a str, old: Option<&'a Value>, new: Option<&'a Value>) -> Self {
        Self { keyword, old, new }
    }

    /// Returns both values as JSON, for example `"a" -> "b"`. An absent one is shown as what absence means.
    pub(super) fn shown(self) -> String {
        let side = |value: Option<&Value>, other: Option<&Value>| match (value, other) {
            (Some(value), _) => shown(value),
            (None, Some(Value::String(_))) => "\"\"".to_owned(),
            (None, Some(Value::Bool(_))) => "false".to_owned(),
            (None, Some(Value::Array(_))) => "[]".to_owned(),
            (None, _) => "none".to_owned(),
        };
        format!("{} -> {}", side(self.old, self.new), side(self.new, self.old))
    }
}
