//! Kubernetes's JSONPath, as far as CRDs use it: fields, indexes, `[*]` and equality filters.
//!
//! It is not RFC 9535: dots in names are escaped with a backslash, and a missing field is no error.
//!
//! ```
//! use serde_json::json;
//!
//! let pod = json!({"status": {"conditions": [
//!     {"type": "PodScheduled", "status": "True"},
//!     {"type": "Ready", "status": "False"},
//! ]}});
//! let path = r#".status.conditions[?(@.type=="Ready")].status"#;
//! assert_eq!(json_path::first(&pod, path), Some(json!("False")));
//! assert_eq!(json_path::all(&pod, "{.status.conditions[*].type}"), ["PodScheduled", "Ready"]);
//! assert_eq!(json_path::first(&pod, ".status.phase"), None);
//! ```

use serde_json::{Value, json};

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Field(String),
    Index(usize),
    All,
    Filter { field: Vec<Self>, value: Value },
}

/// Every value that a path leads to.
pub fn all(object: &Value, path: &str) -> Vec<Value> {
    let Some(steps) = parse(path) else {
        return Vec::new();
    };
    follow(object, &steps)
}

/// The first value that a path leads to.
pub fn first(object: &Value, path: &str) -> Option<Value> {
    all(object, path).into_iter().next()
}

/// Sets the value at a path of plain fields, and makes what is missing on the way there.
pub fn set(object: &mut Value, path: &str, value: Value) {
    let mut place = object;
    for step in parse(path).unwrap_or_default() {
        let Step::Field(name) = step else { return };
        if !place.is_object() {
            *place = json!({});
        }
        place = &mut place[name];
    }
    *place = value;
}

fn follow(object: &Value, steps: &[Step]) -> Vec<Value> {
    let Some((step, rest)) = steps.split_first() else {
        return vec![object.clone()];
    };
    match step {
        Step::Field(name) => object
            .get(name)
            .map(|value| follow(value, rest))
            .unwrap_or_default(),
        Step::Index(index) => object
            .get(index)
            .map(|value| follow(value, rest))
            .unwrap_or_default(),
        Step::All => items(object).flat_map(|value| follow(value, rest)).collect(),
        Step::Filter { field, value } => items(object)
            .filter(|item| follow(item, field).first() == Some(value))
            .flat_map(|item| follow(item, rest))
            .collect(),
    }
}

fn items(object: &Value) -> impl Iterator<Item = &Value> {
    let list = object.as_array().into_iter().flatten();
    list.chain(object.as_object().into_iter().flat_map(|fields| fields.values()))
}

/// Reads a path; `None` when it is none.
fn parse(path: &str) -> Option<Vec<Step>> {
    let path = path.trim();
    let path = path
        .strip_prefix('{')
        .and_then(|path| path.strip_suffix('}'))
        .unwrap_or(path);
    let mut rest = path.strip_prefix('$').unwrap_or(path);
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(bracket) = rest.strip_prefix('[') {
            let end = closing(bracket)?;
            steps.push(bracketed(&bracket[..end])?);
            rest = &bracket[end + 1..];
            continue;
        }
        rest = rest.strip_prefix('.').unwrap_or(rest);
        let (name, length) = field(rest);
        if length == 0 {
            // A lone dot is the object itself.
            if rest.is_empty() || rest.starts_with('[') {
                continue;
            }
            return None;
        }
        steps.push(if name == "*" { Step::All } else { Step::Field(name) });
        rest = &rest[length..];
    }
    Some(steps)
}

/// A field's name up to the next separator, and its length in the path.
fn field(path: &str) -> (String, usize) {
    let mut name = String::new();
    let mut characters = path.char_indices();
    while let Some((index, character)) = characters.next() {
        match character {
            '.' | '[' => return (name, index),
            '\\' => name.extend(characters.next().map(|(_, escaped)| escaped)),
            _ => name.push(character),
        }
    }
    (name, path.len())
}

/// Where a bracket closes that is not inside quotes.
fn closing(text: &str) -> Option<usize> {
    let mut quote = None;
    for (index, character) in text.char_indices() {
        match (quote, character) {
            (None, ']') => return Some(index),
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), _) if open == character => quote = None,
            _ => {}
        }
    }
    None
}

fn bracketed(text: &str) -> Option<Step> {
    let text = text.trim();
    if text == "*" {
        return Some(Step::All);
    }
    if let Some(filter) = text.strip_prefix("?(").and_then(|text| text.strip_suffix(')')) {
        let (left, right) = filter.split_once("==")?;
        let field = parse(left.trim().strip_prefix('@')?)?;
        return Some(Step::Filter {
            field,
            value: literal(right.trim())?,
        });
    }
    if let Ok(index) = text.parse() {
        return Some(Step::Index(index));
    }
    literal(text)?.as_str().map(|name| Step::Field(name.to_owned()))
}

fn literal(text: &str) -> Option<Value> {
    for quote in ['\'', '"'] {
        if let Some(inner) = text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote)) {
            return Some(json!(inner));
        }
    }
    serde_json::from_str(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_where_kubectl_says_they_do() {
        let object = json!({
            "metadata": {"annotations": {"a.b/c": "x"}},
            "spec": {"replicas": 3, "list": [{"n": 1}, {"n": 2}]},
            "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Done", "status": "False"}]},
        });
        for (path, expected) in [
            (".spec.replicas", json!([3])),
            ("{.spec.replicas}", json!([3])),
            (".spec.list[1].n", json!([2])),
            (".spec.list[*].n", json!([1, 2])),
            (".metadata.annotations.a\\.b/c", json!(["x"])),
            (".metadata.annotations['a.b/c']", json!(["x"])),
            (".status.conditions[?(@.type==\"Done\")].status", json!(["False"])),
            (".status.conditions[?(@.type=='Ready')].status", json!(["True"])),
            (".status.conditions[?(@.type=='None')].status", json!([])),
            (".missing.field", json!([])),
            (".broken[", json!([])),
        ] {
            assert_eq!(Value::from(all(&object, path)), expected, "{path}");
        }
    }

    #[test]
    fn setting_makes_what_is_missing() {
        let mut object = json!({});
        set(&mut object, ".spec.size.count", json!(2));
        assert_eq!(object, json!({"spec": {"size": {"count": 2}}}));
    }
}
