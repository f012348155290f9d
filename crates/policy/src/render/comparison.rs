//! Comparisons of values of any kind.

use crate::api::ConditionOperator;

use super::{
    cue_text::{CueElement, CueText, CueValue, each, expression},
    quote::quote,
    reference::list_value,
};

/// What something is compared with.
pub(super) enum Wanted {
    /// Literals of text.
    Texts(Vec<String>),
    /// Literals of numbers, or expressions of these.
    Numbers(Vec<String>),
    /// An expression that leads to it, and what is done with the number that is there.
    Reference(String, Option<String>),
}

/// Whole numbers in text.
const INTEGER: &str = "^[+-]?[0-9]{1,18}$";

/// Other numbers in text.
const DECIMAL: &str = "^[+-]?[0-9]{1,18}[.][0-9]{1,18}$";

/// What the list is called of values for which the condition holds, or for those with Not its contrary.
pub(super) fn result_of(operator: ConditionOperator) -> &'static str {
    match operator {
        ConditionOperator::Gt => "greater",
        ConditionOperator::Gte => "greaterOrEqual",
        ConditionOperator::Lt => "less",
        ConditionOperator::Lte => "lessOrEqual",
        ConditionOperator::Regex => "fitting",
        _ => "equal",
    }
}

/// The operator between what is found and what it is compared with.
fn symbol_of(operator: ConditionOperator) -> &'static str {
    match operator {
        ConditionOperator::Gt => ">",
        ConditionOperator::Gte => ">=",
        ConditionOperator::Lt => "<",
        ConditionOperator::Lte => "<=",
        ConditionOperator::Regex => "=~",
        _ => "==",
    }
}

pub(super) fn is_ordered(operator: ConditionOperator) -> bool {
    use ConditionOperator::{Gt, Gte, Lt, Lte};
    matches!(operator, Gt | Gte | Lt | Lte)
}

/// Has the program list the values for which the comparison holds; for NotEqual and NotIn those for which it does not.
pub(super) fn compare(operator: ConditionOperator, wanted: Wanted, program: &mut CueText) {
    let symbol = symbol_of(operator);
    let pair = |found: &str, wanted: &str| {
        each(
            format!("for it in {found} for one in {wanted} if it {symbol} one"),
            expression("it"),
        )
    };
    let pairs = match wanted {
        Wanted::Texts(literals) => {
            let found = if is_ordered(operator) { "strings" } else { "texts" };
            list_found(found, "found", program);
            list_wanted(literals, program);
            vec![pair(found, "wanted")]
        }
        Wanted::Numbers(literals) => {
            list_found("numbers", "found", program);
            list_wanted(literals, program);
            vec![pair("numbers", "wanted")]
        }
        Wanted::Reference(from, process) => {
            let is_list = matches!(operator, ConditionOperator::In | ConditionOperator::NotIn);
            list_referred(&from, is_list, program);
            compare_referred(operator, process, &pair, program)
        }
    };
    program.section("", result_of(operator), CueValue::List(pairs));
}

/// Has the program list what is compared, and gives the pairs, where the other value comes from elsewhere and may be of any kind.
fn compare_referred(
    operator: ConditionOperator,
    process: Option<String>,
    pair: &dyn Fn(&str, &str) -> CueElement,
    program: &mut CueText,
) -> Vec<CueElement> {
    if operator == ConditionOperator::Regex {
        list_found("texts", "found", program);
        list_found("strings", "wanted", program);
        return vec![pair("texts", "wantedStrings")];
    }
    list_found("numbers", "found", program);
    list_found("numbers", "wanted", program);
    if let Some(process) = process {
        program.section(
            "",
            "results",
            CueValue::List(vec![each(
                "for it in wantedNumbers",
                expression(format!("it{process}")),
            )]),
        );
        return vec![pair("numbers", "results")];
    }
    if is_ordered(operator) {
        list_found("strings", "found", program);
        list_found("strings", "wanted", program);
        let symbol = symbol_of(operator);
        let of_text = each(
            format!(
                "if len(numbers) == 0 || len(wantedNumbers) == 0 for it in strings for one in wantedStrings if it {symbol} one"
            ),
            expression("it"),
        );
        return vec![pair("numbers", "wantedNumbers"), of_text];
    }
    list_found("texts", "found", program);
    list_found("texts", "wanted", program);
    let number_beside = |found: &str, is_number: &str| {
        each(
            format!("for it in {found} for one in {is_number} if it == one"),
            expression("it"),
        )
    };
    list_found("plainNumbers", "found", program);
    list_found("plainNumbers", "wanted", program);
    vec![
        pair("texts", "wantedTexts"),
        number_beside("numbers", "wantedPlainNumbers"),
        number_beside("plainNumbers", "wantedNumbers"),
    ]
}

fn list_wanted(literals: Vec<String>, program: &mut CueText) {
    let items = literals
        .into_iter()
        .map(|literal| CueElement::Item(expression(literal)));
    program.section(
        "What it is compared with.",
        "wanted",
        CueValue::List(items.collect()),
    );
}

/// Has the program list what something is compared with that comes from elsewhere: the items of it where it is a list that is meant.
fn list_referred(from: &str, is_list: bool, program: &mut CueText) {
    if !is_list {
        list_value(
            "What it is compared with: nothing where it is missing or null.",
            "wanted",
            from,
            program,
        );
        return;
    }
    program.section(
        "The list that it is compared with: empty where it is missing or not a list.",
        "wanted",
        CueValue::List(vec![each(
            format!("if len({from}) != _|_ if ({from} & string) == _|_ for it in {from} if it != null"),
            expression("it"),
        )]),
    );
}

/// Has the program list those of the values that are of a kind, or what they are as one.
fn list_found(kind: &'static str, source: &'static str, program: &mut CueText) {
    let name = match source {
        "found" => kind.to_owned(),
        source => {
            let (first, rest) = kind.split_at(1);
            format!("{source}{}{rest}", first.to_uppercase())
        }
    };
    let number = each(
        format!("for it in {source} if (it & number) != _|_"),
        expression("it"),
    );
    let parsed = |pattern: &str, function: &str| {
        each(
            format!(
                "for it in {source} if (it & string) != _|_ if it =~ {}",
                quote(pattern)
            ),
            expression(function),
        )
    };
    let (comment, items) = match kind {
        "numbers" => {
            program.import("strconv");
            let items = vec![
                number,
                parsed(INTEGER, "strconv.Atoi(it)"),
                parsed(DECIMAL, "strconv.ParseFloat(it, 64)"),
            ];
            ("As a number: text that is one counts, too.", items)
        }
        "plainNumbers" => ("If it is a number.", vec![number]),
        "strings" => {
            let text = each(
                format!("for it in {source} if (it & string) != _|_"),
                expression("it"),
            );
            ("If it is text.", vec![text])
        }
        _ => {
            let written = each(
                format!("for it in {source} if \"\\(it)\" != _|_"),
                expression("\"\\(it)\""),
            );
            (
                "As text: numbers and booleans as they are written.",
                vec![written],
            )
        }
    };
    program.section(comment, &name, CueValue::List(items));
}
