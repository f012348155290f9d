//! Renders condition templates as CUE programs.

use crate::{
    api::{AffectMode, ConditionOperator, IntOrString, ProcessOperation, ValidateCondition, ValueProcess},
    problem::PolicyProblems,
};

use super::{
    comparison::{Wanted, compare, is_of_list, is_ordered},
    constant::Constant,
    cue_text::{CueDeclaration, CueText, ValueText, expression, field},
    decimal::DecimalText,
    quote::quote,
    reference::{ReferenceRole, expression_of, list_value},
};

pub(super) fn render(condition: &ValidateCondition, program: &mut CueText, problems: &mut PolicyProblems) {
    if condition.message.is_empty() {
        problems.note(
            "message",
            "is missing: describe the problem of the object, and its solution",
        );
    }
    let found = problems.within("dataRef", |problems| {
        expression_of(&condition.data_ref, ReferenceRole::Data, program, problems)
    });
    list_value(
        "The value to compare: empty if missing or null.",
        "found",
        found.as_deref().unwrap_or("_"),
        program,
    );
    let holds = match condition.operator {
        ConditionOperator::Exist => "len(found) > 0".to_owned(),
        ConditionOperator::NotExist => "len(found) == 0".to_owned(),
        operator => {
            let Some(wanted) = expected_value(condition, program, problems) else {
                return;
            };
            compare(operator, wanted, program)
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
        ValueText::Struct(vec![
            field("valid", expression(valid)),
            CueDeclaration::Guard(
                format!("if {refused}"),
                vec![field("reason", expression(quote(&condition.message)))],
            ),
        ]),
    );
}

/// Returns the right side of the comparison, and adds its problems.
fn expected_value(
    condition: &ValidateCondition,
    program: &mut CueText,
    problems: &mut PolicyProblems,
) -> Option<Wanted> {
    let operator = condition.operator;
    if condition.value.is_some() && condition.value_ref.is_some() {
        problems.note("valueRef", "must not be combined with value: remove one of them");
    }
    let process = condition.value_process.as_ref();
    let takes_process = !matches!(
        operator,
        ConditionOperator::In | ConditionOperator::NotIn | ConditionOperator::Regex
    );
    if process.is_some() && !takes_process {
        problems.note(
            "valueProcess",
            format!("cannot be used with cond: {operator:?}: remove it"),
        );
    }
    let process =
        process.map(|process| problems.within("valueProcess", |problems| process_value(process, problems)));
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
        comparison_with(
            &constant,
            operator,
            process.map(Option::unwrap_or_default),
            problems,
        )
    })
}

/// Returns the literals of a value, if the operator supports its type.
fn comparison_with(
    constant: &Constant,
    operator: ConditionOperator,
    process: Option<String>,
    problems: &mut PolicyProblems,
) -> Option<Wanted> {
    let is_list = is_of_list(operator);
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
        Constant::Text(text) if operator == ConditionOperator::Regex => Some(Wanted::Pattern(quote(text))),
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

/// Returns the operation on a number, for example ` * 0.5`.
fn process_value(process: &ValueProcess, problems: &mut PolicyProblems) -> Option<String> {
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
