//! Tables for people, JSON and YAML for programs.

use std::{
    fmt::Display,
    io::{self, Write},
};

use anyhow::Context;
use clap::ValueEnum;
use serde::Serialize;

use crate::{cli::yaml, domain::text::is_hostile};

/// How a command prints what it found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Format {
    /// For people.
    #[default]
    Table,
    /// For programs.
    Json,
    /// The same as json, as YAML.
    Yaml,
}

/// Prints `found` on standard output: as `table` shows it to people, or as it is.
///
/// # Errors
///
/// When it cannot be printed.
pub(in crate::cli) fn print(
    format: Format,
    found: &impl Serialize,
    table: impl FnOnce() -> String,
) -> anyhow::Result<()> {
    let text = match format {
        Format::Table => table(),
        Format::Json => format!("{}\n", harmless(&serde_json::to_string_pretty(found)?)),
        // JSON is YAML, and escapes in it hold whatever quotes the writer would choose.
        Format::Yaml => yaml::document(&serde_json::to_value(found)?)?,
    };
    write(&text).context("cannot write to standard output")
}

fn write(text: &impl Display) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    write!(stdout, "{text}")?;
    stdout.flush()
}

/// JSON with everything escaped that a terminal would act upon. Outside of strings there is no such thing but line
/// breaks.
fn harmless(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for character in json.chars() {
        if character == '\n' || !is_hostile(character) {
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

    use super::*;

    proptest! {
        #[test]
        fn no_format_lets_anything_through_that_a_terminal_acts_upon(text in "(?s).{0,40}") {
            let value = json!({ "text": text, "list": [{ text.as_str(): 1 }] });
            let json = harmless(&serde_json::to_string_pretty(&value).unwrap());
            prop_assert_eq!(&serde_json::from_str::<Value>(&json).unwrap(), &value);
            let yaml = yaml::document(&value).unwrap();
            for printed in [json, yaml] {
                let hostile = printed.chars().find(|character| *character != '\n' && is_hostile(*character));
                prop_assert_eq!(hostile, None, "{:?}", printed);
            }
        }
    }
}
