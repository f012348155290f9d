//! Output as tables, JSON or YAML.

use std::{
    fmt::Display,
    io::{self, Write},
};

use anyhow::Context;
use clap::ValueEnum;
use serde::Serialize;
use windlass_object::text::is_hostile;

use super::yaml;

/// The output format of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    #[default]
    Table,
    Json,
    Yaml,
}

/// Prints `found` on standard output, or the result of `table`.
///
/// # Errors
///
/// When it cannot be printed.
pub(crate) fn print(
    format: Format,
    found: &impl Serialize,
    table: impl FnOnce() -> String,
) -> anyhow::Result<()> {
    let text = match format {
        Format::Table => table(),
        Format::Json => json(found)?,
        Format::Yaml => yaml(found)?,
    };
    write(&text).context("cannot write to standard output")
}

/// Returns JSON with all control characters escaped.
fn json(found: &impl Serialize) -> anyhow::Result<String> {
    Ok(format!("{}\n", escaped(&serde_json::to_string_pretty(found)?)))
}

/// Returns YAML. If it has control characters, returns JSON, which is also YAML.
fn yaml(found: &impl Serialize) -> anyhow::Result<String> {
    let text = yaml::document(found)?;
    if text.contains(is_unprintable) {
        return json(found);
    }
    Ok(text)
}

fn is_unprintable(character: char) -> bool {
    character != '\n' && is_hostile(character)
}

fn write(text: &impl Display) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    write!(stdout, "{text}")?;
    stdout.flush()
}

/// Escapes control characters in JSON. They only occur in strings.
pub(super) fn escaped(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for character in json.chars() {
        if !is_unprintable(character) {
            escaped.push(character);
            continue;
        }
        let mut units = [0; 2];
        for unit in character.encode_utf16(&mut units) {
            escaped.push_str(&format!("\\u{unit:04x}"));
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    proptest! {
        #[test]
        fn every_format_escapes_control_characters(text in "(?s).{0,40}") {
            let value = json!({ "text": text, "list": [{ text.as_str(): 1 }] });
            let (json, yaml) = (super::json(&value).unwrap(), super::yaml(&value).unwrap());
            prop_assert_eq!(&serde_json::from_str::<Value>(&json).unwrap(), &value);
            prop_assert_eq!(&serde_saphyr::from_str::<Value>(&yaml).unwrap(), &value);
            prop_assert!(!json.contains(super::is_unprintable), "{:?}", json);
            prop_assert!(!yaml.contains(super::is_unprintable), "{:?}", yaml);
        }
    }
}
