//! Formats text and JSON in readable CUE: long values on several lines, without invisible characters.

use serde_json::Value;
use windlass_object::text::is_hostile;

use super::cue_text::{CueDeclaration, CueElement, ValueText};

/// Keywords and predeclared names, which cannot be unquoted labels.
const KEYWORDS: [&str; 9] = [
    "for", "in", "if", "let", "import", "package", "true", "false", "null",
];

/// The maximum length in characters of a list on one line.
const LONGEST_LINE: usize = 80;

/// Formats a string literal; invisible characters are escaped.
pub(super) fn quote(text: &str) -> String {
    policy_cue::quote_escaping(text, is_hostile)
}

/// Formats a label or a selector, in quotes unless it is an identifier.
pub(super) fn label(name: &str) -> String {
    let mut characters = name.chars();
    let is_plain = characters.next().is_some_and(|first| first.is_ascii_alphabetic())
        && characters.all(|character| character.is_ascii_alphanumeric() || character == '_')
        && !KEYWORDS.contains(&name);
    if is_plain { name.to_owned() } else { quote(name) }
}

/// Formats a JSON value as a CUE literal.
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

/// Formats a short list of scalars on one line; `None` for other lists.
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
    fn quoted_strings_never_end_early() {
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
    fn labels_are_quoted_unless_identifiers() {
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
