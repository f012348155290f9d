//! Renders templates for requests as a fraction of limits.

use serde_json::json;

use crate::{
    api::{OverrideOperation, OverrideRuleTemplate},
    patch::Pointer,
    problem::PolicyProblems,
};

use super::{
    cue_text::{CueDeclaration, CueElement, CueText, ValueText, comprehension, expression, field},
    decimal::DecimalText,
    patches::PatchList,
    pods::list_containers,
    quote::{label, quote},
    resources::below_container,
};

/// An oversold resource.
struct Oversold {
    /// The field of the template.
    field: &'static str,
    resource: &'static str,
    /// The unit of rounding: thousandths, or whole numbers.
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

/// The pattern of non-negative quantities.
const QUANTITY: &str =
    r"^[+]?([0-9]{1,30}[.]?[0-9]{0,30}|[.][0-9]{1,30})([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,2})?$";

/// The characters of a quantity's number, without an exponent.
const NUMBER_LETTERS: &str = "+.0123456789";

/// The units of quantities, and their values.
const UNITS: [(&str, &str); 16] = [
    ("", "1"),
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
                below_container(&Pointer::from_tokens(["resources", "requests", oversold.resource])),
            );
        }
        patches.declare(program);
        return;
    }
    for package in ["math", "strconv", "strings"] {
        program.import(package);
    }
    list_resources(program, &factors);
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
        below_container(&Pointer::from_tokens(["resources", "requests"])),
        &json!({}),
    );
    patches.add(
        &format!("for it in requests if it.amount <= {}", i64::MAX),
        "it.path".to_owned(),
        expression("strconv.FormatInt(it.amount, 10) + it.unit"),
    );
    patches.declare(program);
}

/// Returns the given factors with their resources.
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
            // For a removal, any factor names the resource.
            Some(factor) if is_removed || factor.is_between_zero_and_one() => {
                factors.push((oversold, factor));
            }
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

/// Adds the list of oversold resources to the program.
fn list_resources(program: &mut CueText, factors: &[(&Oversold, DecimalText)]) {
    let resource = |(oversold, factor): &(&Oversold, DecimalText)| {
        let (factor, unit) = match oversold.scale {
            Scale::Thousandths => (factor.clone().shifted(3), "m"),
            Scale::Whole => (factor.clone(), ""),
        };
        CueElement::Item(ValueText::Struct(vec![
            field("name", expression(quote(oversold.resource))),
            field("factor", expression(factor.literal())),
            field("unit", expression(quote(unit))),
        ]))
    };
    program.section(
        "The factors of the limits, in thousandths for the unit m.",
        "resources",
        ValueText::List(factors.iter().map(resource).collect()),
    );
}

/// Adds the list of requests computed from limits to the program.
fn list_requests(program: &mut CueText) {
    let units = UNITS.map(|(unit, amount)| field(&label(unit), expression(amount)));
    program.section("The values of units.", "units", ValueText::Struct(units.into()));
    let limit = "\"\\(it.container.resources.limits[resource.name])\"";
    let amount = |number: &str| {
        let amount = format!("math.Round({number} * resource.factor)");
        vec![field("amount", expression(amount))]
    };
    program.section(
        "The requests of their containers. A number is followed by a unit or an exponent.",
        "requests",
        ValueText::List(vec![comprehension(
            format!(
                "for it in containers for resource in resources if {limit} != _|_ for text in [{limit}] if text =~ {}",
                quote(QUANTITY)
            ),
            ValueText::Struct(vec![
                // The names of these resources need no escaping.
                field("path", expression("\"\\(it.path)/resources/requests/\\(resource.name)\"")),
                field("unit", expression("resource.unit")),
                field(
                    "suffix",
                    expression(format!("strings.TrimLeft(text, {})", quote(NUMBER_LETTERS))),
                ),
                CueDeclaration::Guard(
                    "if units[suffix] != _|_".to_owned(),
                    amount("strconv.ParseFloat(strings.TrimSuffix(text, suffix), 64) * units[suffix]"),
                ),
                CueDeclaration::Guard(
                    "if units[suffix] == _|_".to_owned(),
                    amount("strconv.ParseFloat(text, 64)"),
                ),
            ]),
        )]),
    );
}
