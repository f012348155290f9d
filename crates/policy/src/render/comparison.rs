//! Renders comparisons of values of any type.

use crate::api::ConditionOperator;

use super::{
    cue_text::{CueElement, CueText, ValueText, comprehension, expression},
    quote::quote,
    reference::list_value,
};

/// The right side of a comparison.
pub(super) enum Wanted {
    /// Literals of text.
    Texts(Vec<String>),
    /// Literals of numbers, or expressions of these.
    Numbers(Vec<String>),
    /// The literal of a regular expression. As a literal in the comparison, it is compiled once.
    Pattern(String),
    /// An expression for the value, and an operation on it if it is a number.
    Reference(String, Option<String>),
}

/// The side of a comparison.
#[derive(Clone, Copy)]
enum Side {
    Found,
    Wanted,
}

/// The type in which values are compared.
#[derive(Clone, Copy)]
enum Form {
    /// Compares numbers, and text that contains a number, as numbers.
    Numbers,
    /// Compares only numbers.
    PlainNumbers,
    /// Compares only text.
    Strings,
    /// Compares text, numbers and booleans as text.
    Texts,
}

/// A pattern for integers in text.
const INTEGER: &str = "^[+-]?[0-9]{1,18}$";

/// A pattern for other numbers in text.
const DECIMAL: &str = "^[+-]?[0-9]{1,18}[.][0-9]{1,18}$";

/// Adds the comparison of `found` with a value to the program; returns the expression of the condition's
/// result.
pub(super) fn compare(operator: ConditionOperator, wanted: Wanted, program: &mut CueText) -> String {
    let (result, symbol) = match_names(operator);
    let mut presence = "len(found) > 0";
    let pairs = match wanted {
        Wanted::Texts(literals) => {
            let form = if is_ordered(operator) {
                Form::Strings
            } else {
                Form::Texts
            };
            let found = list_as(form, Side::Found, program);
            list_wanted(literals, program);
            vec![pair(found, symbol, "wanted")]
        }
        Wanted::Numbers(literals) => {
            let found = list_as(Form::Numbers, Side::Found, program);
            list_wanted(literals, program);
            vec![pair(found, symbol, "wanted")]
        }
        Wanted::Pattern(literal) => {
            let texts = list_as(Form::Texts, Side::Found, program);
            vec![comprehension(
                format!("for it in {texts} if it {symbol} {literal}"),
                expression("it"),
            )]
        }
        Wanted::Reference(from, process) => {
            if is_of_list(operator) {
                list_items(&from, program);
                presence = "len(found) > 0 && len(lists) > 0";
            } else {
                let comment = "The value to compare with: empty if missing or null.";
                list_value(comment, "wanted", &from, program);
                presence = "len(found) > 0 && len(wanted) > 0";
            }
            compare_with_reference(operator, process, program)
        }
    };
    program.section("", result, ValueText::List(pairs));
    match operator {
        ConditionOperator::NotEqual | ConditionOperator::NotIn => format!("{presence} && len({result}) == 0"),
        _ => format!("len({result}) > 0"),
    }
}

/// Reports whether the operator compares with each item of a list.
pub(super) fn is_of_list(operator: ConditionOperator) -> bool {
    matches!(operator, ConditionOperator::In | ConditionOperator::NotIn)
}

/// Reports whether the operator compares the order.
pub(super) fn is_ordered(operator: ConditionOperator) -> bool {
    use ConditionOperator::{Gt, Gte, Lt, Lte};
    matches!(operator, Gt | Gte | Lt | Lte)
}

/// The name of the list of values that match, and the CUE operator.
fn match_names(operator: ConditionOperator) -> (&'static str, &'static str) {
    match operator {
        ConditionOperator::Gt => ("greater", ">"),
        ConditionOperator::Gte => ("greaterOrEqual", ">="),
        ConditionOperator::Lt => ("less", "<"),
        ConditionOperator::Lte => ("lessOrEqual", "<="),
        ConditionOperator::Regex => ("fitting", "=~"),
        _ => ("equal", "=="),
    }
}

/// Compares with a referenced value of any type.
fn compare_with_reference(
    operator: ConditionOperator,
    process: Option<String>,
    program: &mut CueText,
) -> Vec<CueElement> {
    let (_, symbol) = match_names(operator);
    if operator == ConditionOperator::Regex {
        let texts = list_as(Form::Texts, Side::Found, program);
        let patterns = list_as(Form::Strings, Side::Wanted, program);
        return vec![pair(texts, symbol, patterns)];
    }
    let [numbers, wanted_numbers] = list_both(Form::Numbers, program);
    if let Some(process) = process {
        let result = comprehension(
            format!("for it in {wanted_numbers}"),
            expression(format!("it{process}")),
        );
        program.section("", "results", ValueText::List(vec![result]));
        return vec![pair(numbers, symbol, "results")];
    }
    if is_ordered(operator) {
        let [strings, wanted_strings] = list_both(Form::Strings, program);
        let of_text = comprehension(
            format!(
                "if len({numbers}) == 0 || len({wanted_numbers}) == 0 for it in {strings} for one in {wanted_strings} if it {symbol} one"
            ),
            expression("it"),
        );
        return vec![pair(numbers, symbol, wanted_numbers), of_text];
    }
    let [texts, wanted_texts] = list_both(Form::Texts, program);
    let [plain_numbers, wanted_plain_numbers] = list_both(Form::PlainNumbers, program);
    vec![
        pair(texts, symbol, wanted_texts),
        pair(numbers, symbol, wanted_plain_numbers),
        pair(plain_numbers, symbol, wanted_numbers),
    ]
}

/// Adds lists of both values, converted to a form, to the program.
fn list_both(form: Form, program: &mut CueText) -> [&'static str; 2] {
    [Side::Found, Side::Wanted].map(|side| list_as(form, side, program))
}

/// The values of one list that match a value of another.
fn pair(found: &str, symbol: &str, wanted: &str) -> CueElement {
    comprehension(
        format!("for it in {found} for one in {wanted} if it {symbol} one"),
        expression("it"),
    )
}

fn list_wanted(literals: Vec<String>, program: &mut CueText) {
    let items = literals
        .into_iter()
        .map(|literal| CueElement::Item(expression(literal)));
    program.section(
        "The values to compare with.",
        "wanted",
        ValueText::List(items.collect()),
    );
}

/// Adds the items of a reference to the program. An empty list counts as present.
fn list_items(from: &str, program: &mut CueText) {
    program.section(
        "The list to compare with: empty if missing or text.",
        "lists",
        ValueText::List(vec![comprehension(
            format!("if len({from}) != _|_ if ({from} & string) == _|_"),
            expression(from),
        )]),
    );
    program.section(
        "",
        "wanted",
        ValueText::List(vec![comprehension(
            "for list in lists for it in list if it != null",
            expression("it"),
        )]),
    );
}

/// Adds the list of a value in a form, empty if it has another type, and returns its name.
fn list_as(form: Form, side: Side, program: &mut CueText) -> &'static str {
    let source = match side {
        Side::Found => "found",
        Side::Wanted => "wanted",
    };
    let name = match (side, form) {
        (Side::Found, Form::Numbers) => "numbers",
        (Side::Found, Form::PlainNumbers) => "plainNumbers",
        (Side::Found, Form::Strings) => "strings",
        (Side::Found, Form::Texts) => "texts",
        (Side::Wanted, Form::Numbers) => "wantedNumbers",
        (Side::Wanted, Form::PlainNumbers) => "wantedPlainNumbers",
        (Side::Wanted, Form::Strings) => "wantedStrings",
        (Side::Wanted, Form::Texts) => "wantedTexts",
    };
    let of =
        |clauses: &str, item: &str| comprehension(format!("for it in {source} {clauses}"), expression(item));
    let is_number = of("if (it & number) != _|_", "it");
    let parsed = |pattern: &str, item: &str| {
        of(
            &format!("if (it & string) != _|_ if it =~ {}", quote(pattern)),
            item,
        )
    };
    let (comment, items) = match form {
        Form::Numbers => {
            program.import("strconv");
            let items = vec![
                is_number,
                parsed(INTEGER, "strconv.Atoi(it)"),
                parsed(DECIMAL, "strconv.ParseFloat(it, 64)"),
            ];
            ("As a number, also if it is a number in text.", items)
        }
        Form::PlainNumbers => ("If it is a number.", vec![is_number]),
        Form::Strings => ("If it is text.", vec![of("if (it & string) != _|_", "it")]),
        Form::Texts => {
            let written = of("if \"\\(it)\" != _|_", "\"\\(it)\"");
            ("As text, also numbers and booleans.", vec![written])
        }
    };
    program.section(comment, name, ValueText::List(items));
    name
}
