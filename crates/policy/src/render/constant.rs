//! Constant values in a template.

use crate::{api::ConstantValue, problem::PolicyProblems};

use super::decimal::DecimalText;

/// The value of the one field of a constant that is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Constant {
    Text(String),
    Number(DecimalText),
    Boolean(bool),
    Texts(Vec<String>),
    Numbers(Vec<DecimalText>),
    Map(Vec<(String, String)>),
}

impl Constant {
    /// Returns the first value that is set, and adds problems of the field `value`.
    pub(super) fn read(value: &ConstantValue, problems: &mut PolicyProblems) -> Option<Self> {
        let number = |name: &str, text: &str, problems: &mut PolicyProblems| {
            let number = DecimalText::parse(text);
            if number.is_none() {
                problems.note(name, format!("{text:?} is not a number: write for example 0.5"));
            }
            number
        };
        if let Some(text) = &value.string {
            return Some(Self::Text(text.clone()));
        }
        if let Some(integer) = value.integer {
            return number("integer", &integer.to_string(), problems).map(Self::Number);
        }
        if let Some(text) = &value.float {
            return number("float", text, problems).map(Self::Number);
        }
        if let Some(boolean) = value.boolean {
            return Some(Self::Boolean(boolean));
        }
        if !value.string_slice.is_empty() {
            return Some(Self::Texts(value.string_slice.clone()));
        }
        if !value.integer_slice.is_empty() {
            let integers = value.integer_slice.iter().map(ToString::to_string);
            let numbers = integers.map(|text| number("integerSlice", &text, problems));
            return numbers.collect::<Option<_>>().map(Self::Numbers);
        }
        if !value.float_slice.is_empty() {
            let texts = value.float_slice.iter().enumerate();
            let numbers: Vec<_> = texts
                .map(|(place, text)| number(&format!("floatSlice[{place}]"), text, problems))
                .collect();
            return numbers.into_iter().collect::<Option<_>>().map(Self::Numbers);
        }
        if !value.string_map.is_empty() {
            let entries = value.string_map.iter();
            let entries = entries.map(|(name, value)| (name.clone(), value.clone()));
            return Some(Self::Map(entries.collect()));
        }
        problems.note("", "has no value: give string, integer, float, boolean, stringSlice, integerSlice, floatSlice or stringMap");
        None
    }
}
