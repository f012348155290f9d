//! Renders templates for annotations and labels.

use windlass_object::label_selector::{is_label_key, is_label_name};

use crate::{
    api::{ConstantValue, OverrideOperation, OverrideRuleTemplate, OverrideTemplateType},
    patch::Pointer,
    problem::PolicyProblems,
};

use super::{
    constant::Constant,
    cue_text::{CueInput, CueText, expression},
    patches::PatchList,
    quote::{label, quote},
    reference::{ReferenceRole, expression_of, list_value},
};

/// The syntax of label names and values.
const LETTERS: &str =
    "it must have at most 63 letters, digits, -, _ and ., the first and the last a letter or a digit";

enum EntryValue {
    Constant(String),
    /// An expression.
    Reference(String),
}

pub(super) fn render(template: &OverrideRuleTemplate, program: &mut CueText, problems: &mut PolicyProblems) {
    let map = match template.template_type {
        OverrideTemplateType::Labels => "labels",
        _ => "annotations",
    };
    let object = program.input(CueInput::Object);
    let entries = entries(template, program, problems);
    let mut patches = PatchList::default();
    let place = Pointer::from_tokens(["metadata", map]);
    if template.operation == OverrideOperation::Remove {
        for (name, _) in &entries {
            let entry = format!("{object}.metadata.{map}.{}", label(name));
            let path = quote(&place.join(name.as_str()).to_string());
            patches.remove(&format!("if {entry} != _|_"), path);
        }
    } else {
        let known = match entries.as_slice() {
            [(_, EntryValue::Reference(from))] => {
                list_value(
                    "The value to write: empty if missing or null.",
                    "found",
                    from,
                    program,
                );
                "if len(found) > 0 "
            }
            _ => "",
        };
        patches.add_json(
            &format!("{known}if len({object}.metadata.{map}) == _|_"),
            quote(&place.to_string()),
            &serde_json::json!({}),
        );
        for (name, value) in &entries {
            let path = quote(&place.join(name.as_str()).to_string());
            match value {
                EntryValue::Constant(text) => patches.add("", path, expression(quote(text))),
                // Values of any type are converted to text.
                EntryValue::Reference(_) => patches.add("for it in found", path, expression("\"\\(it)\"")),
            }
        }
    }
    patches.declare(program);
}

/// Returns the entries to write or remove, by key. Entries to remove have an empty value.
fn entries(
    template: &OverrideRuleTemplate,
    program: &mut CueText,
    problems: &mut PolicyProblems,
) -> Vec<(String, EntryValue)> {
    let is_removed = template.operation == OverrideOperation::Remove;
    let is_label = template.template_type == OverrideTemplateType::Labels;
    if template.value.is_some() && template.value_ref.is_some() {
        problems.note("valueRef", "must not be combined with value: remove one of them");
    }
    let read = |value, problems: &mut PolicyProblems| {
        problems.within("value", |problems| Constant::read(value, problems))
    };
    let constant = match &template.value {
        // The entry is removed whatever its value is.
        Some(value) if is_removed => read(value, &mut PolicyProblems::default()),
        Some(value) => read(value, problems),
        None => None,
    };
    if let Some(Constant::Map(entries)) = constant {
        for (name, value) in &entries {
            let field = format!("value.stringMap[{name}]");
            check_name(name, is_label, &field, problems);
            if is_label && !is_removed {
                check_label_value(value, &field, problems);
            }
        }
        let entry = |(name, value)| (name, EntryValue::Constant(value));
        return entries.into_iter().map(entry).collect();
    }
    let name = key(&template.path);
    if name.is_empty() {
        problems.note(
            "path",
            "is missing: it is the key, for example /example.com~1owner; only value.stringMap needs none",
        );
    } else {
        check_name(&name, is_label, "path", problems);
    }
    if is_removed {
        return vec![(name, EntryValue::Constant(String::new()))];
    }
    let value = match (&template.value, &template.value_ref) {
        (Some(value), _) => constant.and_then(|constant| {
            let text = problems.within("value", |problems| text(&constant, value, problems))?;
            if is_label {
                check_label_value(&text, "value", problems);
            }
            Some(EntryValue::Constant(text))
        }),
        (None, Some(reference)) => problems.within("valueRef", |problems| {
            expression_of(reference, ReferenceRole::Value, program, problems).map(EntryValue::Reference)
        }),
        (None, None) => {
            problems.note("value", "is missing: give value or valueRef");
            None
        }
    };
    value.into_iter().map(|value| (name.clone(), value)).collect()
}

/// Returns the text of a constant; `given` is its source.
fn text(value: &Constant, given: &ConstantValue, problems: &mut PolicyProblems) -> Option<String> {
    match value {
        Constant::Text(text) => Some(text.clone()),
        Constant::Number(number) => {
            let float = given.integer.is_none().then(|| given.float.clone());
            Some(float.flatten().unwrap_or_else(|| number.literal()))
        }
        Constant::Boolean(boolean) => Some(boolean.to_string()),
        Constant::Texts(_) | Constant::Numbers(_) | Constant::Map(_) => {
            problems.note("", "is a list: give string, integer, float, boolean or stringMap");
            None
        }
    }
}

/// Parses the key in a path: `owner`, `/owner`, `example.com/owner` or `/example.com~1owner`.
fn key(path: &str) -> String {
    let path = path.strip_prefix('/').unwrap_or(path);
    path.replace("~1", "/").replace("~0", "~")
}

/// Validates a key by the rules of Kubernetes; the domain of an annotation may have capitals.
fn check_name(key: &str, is_label: bool, field: &str, problems: &mut PolicyProblems) {
    let is_key = is_label_key(key) || !is_label && is_label_key(&key.to_lowercase());
    if !is_key {
        problems.note(
            field,
            format!(
                "{key:?} is not a key: {LETTERS}, and a prefix before / must be a domain, for example example.com"
            ),
        );
    }
}

fn check_label_value(value: &str, field: &str, problems: &mut PolicyProblems) {
    if !value.is_empty() && !is_label_name(value) {
        problems.note(field, format!("{value:?} is not the value of a label: {LETTERS}"));
    }
}
