//! What containers ask for: a part of their limits.

use serde_json::json;

use crate::{
    api::{OverrideOperation, OverrideRuleTemplate},
    patch::Pointer,
    problem::PolicyProblems,
};

use super::{
    cue_text::{CueElement, CueText, CueValue, each, expression, field},
    decimal::DecimalText,
    patches::PatchList,
    pods::list_containers,
    quote::{label, quote},
    resources::below_container,
};

/// A resource of which containers ask for a part.
struct Oversold {
    /// The field of the template.
    field: &'static str,
    resource: &'static str,
    /// In which parts of one, or whole, it is counted.
    scale: Scale,
}

#[derive(Clone, Copy)]
enum Scale {
    Thousandths,
    Whole,
}

const OVERSOLD: [Oversold; 3] = [
    Oversold {
        field: "cpuFactor",
        resource: "cpu",
        scale: Scale::Thousandths,
    },
    Oversold {
        field: "memoryFactor",
        resource: "memory",
        scale: Scale::Whole,
    },
    Oversold {
        field: "diskFactor",
        resource: "ephemeral-storage",
        scale: Scale::Whole,
    },
];

/// How quantities are written that are not negative.
const QUANTITY: &str =
    r"^[+]?([0-9]{1,30}[.]?[0-9]{0,30}|[.][0-9]{1,30})([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,2})?$";

/// The letters of units.
const UNIT_LETTERS: &str = "numkKMGTPEi";

/// The units of quantities, and how much they are.
const UNITS: [(&str, &str); 15] = [
    ("n", "0.000000001"),
    ("u", "0.000001"),
    ("m", "0.001"),
    ("k", "1000"),
    ("M", "1000000"),
    ("G", "1000000000"),
    ("T", "1000000000000"),
    ("P", "1000000000000000"),
    ("E", "1000000000000000000"),
    ("Ki", "1024"),
    ("Mi", "1048576"),
    ("Gi", "1073741824"),
    ("Ti", "1099511627776"),
    ("Pi", "1125899906842624"),
    ("Ei", "1152921504606846976"),
];

/// Renders a template of the type resourcesOversell.
pub(super) fn render(template: &OverrideRuleTemplate, program: &mut CueText, problems: &mut PolicyProblems) {
    let is_removed = template.operation == OverrideOperation::Remove;
    let factors = problems.within("resourcesOversell", |problems| {
        factors(template, is_removed, problems)
    });
    list_containers(program, &template.containers);
    let mut patches = PatchList::default();
    if is_removed {
        for (oversold, _) in &factors {
            let name = label(oversold.resource);
            patches.remove(
                &format!(
                    "for it in containers if it.container.resources.limits.{name} != _|_ if it.container.resources.requests.{name} != _|_"
                ),
                below_container(&Pointer::of(["resources", "requests", oversold.resource])),
            );
        }
        patches.declare(program);
        return;
    }
    for package in ["math", "strconv", "strings"] {
        program.import(package);
    }
    list_limits(program, &factors);
    list_requests(program);
    let has_limit = factors.iter().map(|(oversold, _)| {
        let name = label(oversold.resource);
        format!("it.container.resources.limits.{name} != _|_")
    });
    patches.add_json(
        &format!(
            "for it in containers if len(it.container.resources.requests) == _|_ if {}",
            has_limit.collect::<Vec<_>>().join(" || ")
        ),
        below_container(&Pointer::of(["resources", "requests"])),
        &json!({}),
    );
    patches.add(
        &format!("for it in requests if it.amount <= {}", i64::MAX),
        "it.path".to_owned(),
        expression("strconv.FormatInt(it.amount, 10) + it.unit"),
    );
    patches.declare(program);
}

/// The factors that are given, each with its resource.
fn factors(
    template: &OverrideRuleTemplate,
    is_removed: bool,
    problems: &mut PolicyProblems,
) -> Vec<(&'static Oversold, DecimalText)> {
    let Some(given) = &template.resources_oversell else {
        problems.note("", "is missing: give cpuFactor, memoryFactor or diskFactor");
        return Vec::new();
    };
    let texts = [&given.cpu_factor, &given.memory_factor, &given.disk_factor];
    let mut has_problem = false;
    let mut factors = Vec::new();
    for (oversold, text) in OVERSOLD.iter().zip(texts) {
        if text.is_empty() {
            continue;
        }
        match DecimalText::parse(text) {
            // What is removed is named by a factor, whatever it is.
            Some(factor) if is_removed || factor.is_part() => factors.push((oversold, factor)),
            Some(factor) if factor.is_zero() => {}
            _ => {
                has_problem = true;
                let message =
                    format!("{text:?} is not a factor: write a number above 0 and below 1, for example 0.5");
                problems.note(oversold.field, message);
            }
        }
    }
    if factors.is_empty() && !has_problem {
        problems.note(
            "",
            "has no factor: give cpuFactor, memoryFactor or diskFactor above 0 and below 1",
        );
    }
    factors
}

/// Has the program list the limits that requests are made of.
fn list_limits(program: &mut CueText, factors: &[(&Oversold, DecimalText)]) {
    let limit = |(oversold, factor): &(&Oversold, DecimalText)| {
        let limit = format!("it.container.resources.limits.{}", label(oversold.resource));
        let (factor, unit) = match oversold.scale {
            Scale::Thousandths => (format!("{} * 1000", factor.literal()), "m"),
            Scale::Whole => (factor.literal(), ""),
        };
        let request = Pointer::of(["resources", "requests", oversold.resource]);
        each(
            format!(
                "for it in containers if {limit} != _|_ for limit in [{limit}] if \"\\(limit)\" != _|_ if \"\\(limit)\" =~ quantity"
            ),
            CueValue::Struct(vec![
                field("path", expression(below_container(&request))),
                field("text", expression("\"\\(limit)\"")),
                field("factor", expression(factor)),
                field("unit", expression(quote(unit))),
            ]),
        )
    };
    program.section(
        "How quantities are written.",
        "quantity",
        expression(quote(QUANTITY)),
    );
    program.section(
        "Their limits, as they are written, and what they are multiplied by.",
        "limits",
        CueValue::List(factors.iter().map(limit).collect()),
    );
}

/// Has the program list the requests that come of limits.
fn list_requests(program: &mut CueText) {
    let mut units: Vec<_> = UNITS
        .iter()
        .map(|(unit, amount)| {
            each(
                format!("if strings.HasSuffix(it.text, {})", quote(unit)),
                expression(*amount),
            )
        })
        .collect();
    units.push(CueElement::Item(expression("1")));
    let digits = format!("strings.TrimRight(it.text, {})", quote(UNIT_LETTERS));
    let number = format!("strconv.ParseFloat({digits}, 64)");
    program.section(
        "What their containers ask for.",
        "requests",
        CueValue::List(vec![each(
            "for it in limits",
            CueValue::Struct(vec![
                field("path", expression("it.path")),
                field("number", expression(number)),
                field("units", CueValue::List(units)),
                field("amount", expression("math.Round(number * units[0] * it.factor)")),
                field("unit", expression("it.unit")),
            ]),
        )]),
    );
}
