//! Conditions: what is refused, and why.

use regex::Regex;

use crate::{
    api::{AffectMode, ConditionOperator, IntOrString, ProcessOperation, ValidateCondition, ValueProcess},
    problem::PolicyProblems,
};

use super::{
    constant::Constant,
    cue_text::CueDeclaration,
    cue_text::{CueElement, CueText, CueValue, each, expression, field},
    decimal::DecimalText,
    quote::quote,
    reference::{ReferenceRole, expression_of, list_value},
};

/// Whole numbers in text.
const INTEGER: &str = "^[+-]?[0-9]{1,18}$";

/// Other numbers in text.
const DECIMAL: &str = "^[+-]?[0-9]{1,18}[.][0-9]{1,18}$";

/// What something is compared with.
enum Wanted {
    /// Literals of text.
    Texts(Vec<String>),
    /// Literals of numbers, or expressions of these.
    Numbers(Vec<String>),
    /// An expression that leads to it, and what is done with the number that is there.
    Reference(String, Option<String>),
}

/// Renders a condition.
pub(super) fn render(condition: &ValidateCondition, program: &mut CueText, problems: &mut PolicyProblems) {
    if condition.message.is_empty() {
        problems.note(
            "message",
            "is missing: say what is wrong with the object, and what to do",
        );
    }
    let found = problems.within("dataRef", |problems| {
        expression_of(&condition.data_ref, ReferenceRole::Data, program, problems)
    });
    list_value(
        "What is compared: nothing where it is missing or null.",
        "found",
        found.as_deref().unwrap_or("_"),
        program,
    );
    let holds = match condition.operator {
        ConditionOperator::Exist => "len(found) > 0".to_owned(),
        ConditionOperator::NotExist => "len(found) == 0".to_owned(),
        operator => {
            let Some(wanted) = wanted(condition, program, problems) else {
                return;
            };
            let is_referred = matches!(wanted, Wanted::Reference(..));
            compare(operator, wanted, program);
            match operator {
                ConditionOperator::NotEqual | ConditionOperator::NotIn if is_referred => {
                    "len(found) > 0 && len(wanted) > 0 && len(equal) == 0".to_owned()
                }
                ConditionOperator::NotEqual | ConditionOperator::NotIn => {
                    "len(found) > 0 && len(equal) == 0".to_owned()
                }
                operator => format!("len({}) > 0", result_of(operator)),
            }
        }
    };
    program.section("", "holds", expression(holds));
    let (valid, refused) = match condition.affect_mode {
        AffectMode::Reject => ("!holds", "holds"),
        AffectMode::Allow => ("holds", "!holds"),
    };
    program.section(
        "",
        "validate",
        CueValue::Struct(vec![
            field("valid", expression(valid)),
            CueDeclaration::Guard(
                format!("if {refused}"),
                vec![field("reason", expression(quote(&condition.message)))],
            ),
        ]),
    );
}

/// What the list is called of values for which the condition holds, or for those with Not its contrary.
fn result_of(operator: ConditionOperator) -> &'static str {
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

fn is_ordered(operator: ConditionOperator) -> bool {
    use ConditionOperator::{Gt, Gte, Lt, Lte};
    matches!(operator, Gt | Gte | Lt | Lte)
}

/// What it is compared with. Notes what is wrong with it.
fn wanted(
    condition: &ValidateCondition,
    program: &mut CueText,
    problems: &mut PolicyProblems,
) -> Option<Wanted> {
    let operator = condition.operator;
    if condition.value.is_some() && condition.value_ref.is_some() {
        problems.note("valueRef", "must not stand beside value: remove one of them");
    }
    let process = condition.value_process.as_ref();
    let takes_process = !matches!(
        operator,
        ConditionOperator::In | ConditionOperator::NotIn | ConditionOperator::Regex
    );
    if process.is_some() && !takes_process {
        problems.note(
            "valueProcess",
            format!("cannot be done with what cond: {operator:?} compares: remove it"),
        );
    }
    let process =
        process.map(|process| problems.within("valueProcess", |problems| processed(process, problems)));
    if let Some(reference) = &condition.value_ref {
        let from = problems.within("valueRef", |problems| {
            expression_of(reference, ReferenceRole::Value, program, problems)
        })?;
        return Some(Wanted::Reference(from, process.map(Option::unwrap_or_default)));
    }
    let Some(value) = &condition.value else {
        problems.note(
            "value",
            format!("is missing: cond: {operator:?} needs value or valueRef"),
        );
        return None;
    };
    problems.within("value", |problems| {
        let constant = Constant::read(value, problems)?;
        compared_with(
            &constant,
            operator,
            process.map(Option::unwrap_or_default),
            problems,
        )
    })
}

/// The literals of a value, if the operator takes such.
fn compared_with(
    constant: &Constant,
    operator: ConditionOperator,
    process: Option<String>,
    problems: &mut PolicyProblems,
) -> Option<Wanted> {
    let is_list = matches!(operator, ConditionOperator::In | ConditionOperator::NotIn);
    let processed =
        |number: &DecimalText| format!("{}{}", number.literal(), process.as_deref().unwrap_or_default());
    match constant {
        Constant::Texts(texts) if is_list => {
            Some(Wanted::Texts(texts.iter().map(|text| quote(text)).collect()))
        }
        Constant::Numbers(numbers) if is_list => Some(Wanted::Numbers(
            numbers.iter().map(DecimalText::literal).collect(),
        )),
        _ if is_list => {
            problems.note(
                "",
                format!("is not a list: cond: {operator:?} needs stringSlice, integerSlice or floatSlice"),
            );
            None
        }
        Constant::Text(text) if operator == ConditionOperator::Regex => {
            if let Err(error) = Regex::new(text) {
                let error = error.to_string();
                let last = error.lines().last().unwrap_or_default();
                problems.note("string", format!("{text:?} is not a regular expression: {last}"));
            }
            Some(Wanted::Texts(vec![quote(text)]))
        }
        _ if operator == ConditionOperator::Regex => {
            problems.note("", "is not text: cond: Regex needs string");
            None
        }
        Constant::Number(number) => Some(Wanted::Numbers(vec![processed(number)])),
        Constant::Text(text) => {
            let number = DecimalText::parse(text).filter(|_| is_ordered(operator) || process.is_some());
            if number.is_none() && process.is_some() {
                problems.note(
                    "string",
                    format!("{text:?} is not a number, which valueProcess needs"),
                );
            }
            Some(number.map_or_else(
                || Wanted::Texts(vec![quote(text)]),
                |number| Wanted::Numbers(vec![processed(&number)]),
            ))
        }
        Constant::Boolean(_) if is_ordered(operator) || process.is_some() => {
            problems.note(
                "boolean",
                "is neither less nor greater: use cond: Equal or NotEqual, without valueProcess",
            );
            None
        }
        Constant::Boolean(boolean) => Some(Wanted::Texts(vec![quote(&boolean.to_string())])),
        Constant::Texts(_) | Constant::Numbers(_) | Constant::Map(_) => {
            problems.note(
                "",
                format!("is a list: cond: {operator:?} needs string, integer, float or boolean"),
            );
            None
        }
    }
}

/// What follows on a number that something is done with, for example ` * 0.5`.
fn processed(process: &ValueProcess, problems: &mut PolicyProblems) -> Option<String> {
    let text = match &process.operation_with {
        IntOrString::Int(number) => number.to_string(),
        IntOrString::String(text) => text.trim().to_owned(),
    };
    let number = match text.strip_suffix('%') {
        Some(percent) => DecimalText::parse(percent).map(DecimalText::percent),
        None => DecimalText::parse(&text),
    };
    let Some(number) = number else {
        problems.note(
            "operationWith",
            format!("{text:?} is not a number: write for example 2, \"0.5\" or \"50%\""),
        );
        return None;
    };
    let symbol = match process.operation {
        ProcessOperation::Add => "+",
        ProcessOperation::Subtract => "-",
        ProcessOperation::Multiply => "*",
        ProcessOperation::Divide => "/",
    };
    if process.operation == ProcessOperation::Divide && number.is_zero() {
        problems.note("operationWith", "is 0: nothing can be divided by it");
    }
    Some(format!(" {symbol} {}", number.literal()))
}

/// Has the program list the values for which the comparison holds; for NotEqual and NotIn those for which it does not.
fn compare(operator: ConditionOperator, wanted: Wanted, program: &mut CueText) {
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
