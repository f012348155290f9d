//! Tables for people, JSON and YAML for programs.

use std::{
    fmt::Display,
    io::{self, Write},
};

use anyhow::Context;
use clap::ValueEnum;
use serde::Serialize;
use windlass_object::text::is_hostile;

use super::yaml;

/// How a command prints what it found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Human-readable text.
    #[default]
    Table,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

/// Prints `found` on standard output: as `table` shows it to people, or as it is.
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

/// JSON with everything escaped that a terminal would act upon.
fn json(found: &impl Serialize) -> anyhow::Result<String> {
    Ok(format!("{}\n", escaped(&serde_json::to_string_pretty(found)?)))
}

/// YAML; where it would show a terminal what that would act upon, it is JSON, which is YAML, too.
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

/// JSON with escapes in strings; outside of those is nothing to escape.
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
        fn no_format_lets_anything_through_that_a_terminal_acts_upon(text in "(?s).{0,40}") {
            let value = json!({ "text": text, "list": [{ text.as_str(): 1 }] });
            let (json, yaml) = (super::json(&value).unwrap(), super::yaml(&value).unwrap());
            prop_assert_eq!(&serde_json::from_str::<Value>(&json).unwrap(), &value);
            prop_assert_eq!(&serde_saphyr::from_str::<Value>(&yaml).unwrap(), &value);
            prop_assert!(!json.contains(super::is_unprintable), "{:?}", json);
            prop_assert!(!yaml.contains(super::is_unprintable), "{:?}", yaml);
        }
    }
}
