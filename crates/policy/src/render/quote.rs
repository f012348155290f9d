//! Text and JSON as CUE writes them, for people: several lines where one would be long, and nothing in them that a terminal hides.

use serde_json::Value;
use windlass_object::text::is_hostile;

use super::cue_text::{CueDeclaration, CueElement, ValueText};

/// What CUE reads as something else where a label or a name could stand.
const KEYWORDS: [&str; 9] = [
    "for", "in", "if", "let", "import", "package", "true", "false", "null",
];

/// The longest list that stands on one line, in characters.
const LONGEST_LINE: usize = 80;

/// A string literal. What could not be seen in it is escaped.
pub(super) fn quote(text: &str) -> String {
    policy_cue::quote_escaping(text, is_hostile)
}

/// A name as a label, or behind the dot of a selector: in quotes where it is not plain.
pub(super) fn label(name: &str) -> String {
    let mut characters = name.chars();
    let is_plain = characters.next().is_some_and(|first| first.is_ascii_alphabetic())
        && characters.all(|character| character.is_ascii_alphanumeric() || character == '_')
        && !KEYWORDS.contains(&name);
    if is_plain { name.to_owned() } else { quote(name) }
}

/// JSON.
pub(super) fn literal(value: &Value) -> ValueText {
    match value {
        Value::String(text) => ValueText::Expression(quote(text)),
        Value::Array(items) => {
            let row = scalar_row(items);
            row.map_or_else(
                || ValueText::List(items.iter().map(|item| CueElement::Item(literal(item))).collect()),
                ValueText::Composite,
            )
        }
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| CueDeclaration::Field(label(name), literal(value));
            ValueText::Struct(fields.iter().map(field).collect())
        }
        plain => ValueText::Expression(plain.to_string()),
    }
}

/// A list on one line, where it has neither lists nor objects and is short.
fn scalar_row(items: &[Value]) -> Option<String> {
    let item = |item: &Value| match literal(item) {
        ValueText::Expression(text) => Some(text),
        _ => None,
    };
    let items = items.iter().map(item).collect::<Option<Vec<_>>>()?;
    let row = format!("[{}]", items.join(", "));
    (row.chars().count() <= LONGEST_LINE).then_some(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d17_nothing_ends_a_string_early() {
        for (text, written) in [
            (r#"a"b"#, r#""a\"b""#),
            (r"\(data)", r#""\\(data)""#),
            ("a\nb\u{0}\u{202e}\u{e0001}", r#""a\nb\u0000\u202e\U000e0001""#),
            ("grün", r#""grün""#),
        ] {
            assert_eq!(quote(text), written);
        }
    }

    #[test]
    fn a_label_is_in_quotes_unless_it_is_plain() {
        for (name, written) in [
            ("nodeAffinity", "nodeAffinity"),
            ("a_1", "a_1"),
            ("_hidden", r#""_hidden""#),
            ("#Definition", r##""#Definition""##),
            ("a.io/b", r#""a.io/b""#),
            ("for", r#""for""#),
            ("1", r#""1""#),
            ("", r#""""#),
        ] {
            assert_eq!(label(name), written);
        }
    }
}
