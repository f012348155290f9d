//! Estimates the maximum cost of an expression from its form and its inputs.
//!
//! The CEL library has no budget, and an evaluation cannot be stopped from outside. So an expression is not
//! evaluated if it could exceed the step or memory limit. Values selected from an input have their actual
//! sizes; for all others the maximum is assumed.

use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators,
};
use serde_json::Value;

use crate::engine::{EvaluationBudget, ProgramError};

/// The maximum number of alternative values that are tracked for one part of an expression.
const LOOKED_AT: usize = 20_000;

/// The steps charged for compiling a regular expression: one with counts, or an unknown one, may be large.
const SIMPLE_REGEX: u64 = 500;
const LARGE_REGEX: u64 = 100_000;

/// An upper bound of the values of a part of an expression.
#[derive(Clone, Debug)]
enum Extent<'a> {
    /// One of these input values.
    Known(Vec<&'a Value>),
    /// Any value up to this size: items of lists and maps, and bytes of texts, all counted.
    AtMost(u64),
}

/// The estimated cost and extent of a part of an expression.
type Estimate<'a> = (u64, Extent<'a>);

struct CostEstimator<'a> {
    names: Vec<(&'a str, Extent<'a>)>,
}

/// Checks that an expression stays within a budget for these inputs.
///
/// # Errors
///
/// If it could exceed the budget.
pub(super) fn check(
    root: &IdedExpr,
    inputs: &[(&str, &Value)],
    budget: &EvaluationBudget<'_>,
) -> Result<(), ProgramError> {
    let mut reckoning = CostEstimator {
        names: inputs
            .iter()
            .map(|(name, value)| (*name, Extent::Known(vec![*value])))
            .collect(),
    };
    let (steps, extent) = reckoning.estimate(root);
    if steps > budget.steps {
        let message = "may take too long for an object of this size: nest fewer loops";
        return Err(ProgramError::new(message));
    }
    if extent.weight() > budget.bytes as u64 {
        return Err(ProgramError::new("may yield more than fits the memory limit"));
    }
    Ok(())
}

impl<'a> Extent<'a> {
    /// The maximum number of items.
    fn items(&self) -> u64 {
        match self {
            Self::Known(values) => values.iter().map(|value| length(value)).max().unwrap_or(0),
            Self::AtMost(weight) => *weight,
        }
    }

    /// The maximum size, including nested values.
    fn weight(&self) -> u64 {
        match self {
            Self::Known(values) => values.iter().map(|value| weight(value)).max().unwrap_or(0),
            Self::AtMost(weight) => *weight,
        }
    }

    /// Returns the extents of the parts that `part` selects in each value.
    fn parts(&self, part: impl Fn(&'a Value) -> Vec<&'a Value>) -> Self {
        match self {
            Self::Known(values) => {
                let parts: Vec<_> = values
                    .iter()
                    .flat_map(|value| part(value))
                    .take(LOOKED_AT + 1)
                    .collect();
                if parts.len() > LOOKED_AT {
                    return Self::AtMost(self.weight());
                }
                Self::Known(parts)
            }
            Self::AtMost(weight) => Self::AtMost(*weight),
        }
    }

    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Known(mut values), Self::Known(others)) if values.len() + others.len() <= LOOKED_AT => {
                values.extend(others);
                Self::Known(values)
            }
            (one, other) => Self::AtMost(one.weight().max(other.weight())),
        }
    }
}

fn length(value: &Value) -> u64 {
    match value {
        Value::Array(items) => items.len() as u64,
        Value::Object(fields) => fields.len() as u64,
        _ => 0,
    }
}

fn weight(value: &Value) -> u64 {
    match value {
        Value::String(text) => 1 + text.len() as u64,
        Value::Array(items) => 1 + items.iter().map(weight).sum::<u64>(),
        Value::Object(fields) => {
            let of_field = |(name, value): (&String, &Value)| name.len() as u64 + weight(value);
            1 + fields.iter().map(of_field).sum::<u64>()
        }
        _ => 1,
    }
}

impl<'a> CostEstimator<'a> {
    fn estimate(&mut self, expression: &'a IdedExpr) -> Estimate<'a> {
        match &expression.expr {
            Expr::Unspecified | Expr::Struct(_) => (1, Extent::AtMost(1)),
            Expr::Literal(LiteralValue::String(text)) => (1, Extent::AtMost(1 + text.inner().len() as u64)),
            Expr::Literal(LiteralValue::Bytes(bytes)) => (1, Extent::AtMost(1 + bytes.inner().len() as u64)),
            Expr::Literal(_) => (1, Extent::AtMost(1)),
            Expr::Ident(name) => {
                let known = self.names.iter().rev().find(|(known, _)| known == name);
                (1, known.map_or(Extent::AtMost(1), |(_, extent)| extent.clone()))
            }
            Expr::Select(select) => {
                let (steps, operand) = self.estimate(&select.operand);
                if select.test {
                    return (steps.saturating_add(1), Extent::AtMost(1));
                }
                let field = operand.parts(|value| value.get(&select.field).into_iter().collect());
                (steps.saturating_add(1), field)
            }
            Expr::List(list) => self.sum(list.elements.iter()),
            Expr::Map(map) => {
                let parts = map.entries.iter().flat_map(|entry| match &entry.expr {
                    EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
                    EntryExpr::StructField(field) => vec![&field.value],
                });
                self.sum(parts)
            }
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
        }
    }

    /// Combines several parts into one value.
    fn sum(&mut self, parts: impl Iterator<Item = &'a IdedExpr>) -> Estimate<'a> {
        let (mut steps, mut weight) = (1_u64, 1_u64);
        for part in parts {
            let (of_part, extent) = self.estimate(part);
            let of_extent = extent.weight();
            // The value is copied.
            steps = steps.saturating_add(of_part).saturating_add(of_extent);
            weight = weight.saturating_add(of_extent);
        }
        (steps, Extent::AtMost(weight))
    }

    fn call(&mut self, call: &'a CallExpr) -> Estimate<'a> {
        let parts: Vec<_> = call.target.as_deref().into_iter().chain(&call.args).collect();
        let estimates: Vec<_> = parts.iter().map(|part| self.estimate(part)).collect();
        let steps = estimates
            .iter()
            .fold(1_u64, |sum, (steps, _)| sum.saturating_add(*steps));
        match (call.func_name.as_str(), estimates.as_slice()) {
            (operators::CONDITIONAL, [_, (_, one), (_, other)]) => (steps, one.clone().or(other.clone())),
            (operators::LOGICAL_AND | operators::LOGICAL_OR | operators::LOGICAL_NOT, _) => {
                (steps, Extent::AtMost(1))
            }
            (operators::INDEX, [(_, operand), _]) => (steps, indexed(operand, parts[1])),
            ("size", [(_, operand)]) => (steps.saturating_add(operand.items()), Extent::AtMost(1)),
            (name, estimates) => {
                // Arguments are copied and scanned.
                let weights: Vec<_> = estimates.iter().map(|(_, extent)| extent.weight()).collect();
                let weight = weights
                    .iter()
                    .fold(1_u64, |sum, weight| sum.saturating_add(*weight));
                let (work, result) = function(name, &weights, weight, &parts);
                (steps.saturating_add(work), Extent::AtMost(result))
            }
        }
    }

    fn comprehension(&mut self, comprehension: &'a ComprehensionExpr) -> Estimate<'a> {
        let (of_range, range) = self.estimate(&comprehension.iter_range);
        let (of_init, init) = self.estimate(&comprehension.accu_init);
        let times = range.items();
        let element = range.parts(|value| match value {
            Value::Array(items) => items.iter().collect(),
            // A field name is at most as long as all names together.
            value => vec![value],
        });
        let known = self.names.len();
        self.names.push((&comprehension.iter_var, element.clone()));
        // The growth of the accumulator per iteration.
        self.names.push((&comprehension.accu_var, Extent::AtMost(1)));
        let (of_condition, _) = self.estimate(&comprehension.loop_cond);
        let (of_step, step) = self.estimate(&comprehension.loop_step);
        let grows = step.weight() > 1;
        let weight = step.weight().saturating_mul(if grows { times } else { 1 });
        let weight = weight.saturating_add(init.weight());
        self.names.truncate(known + 1);
        self.names.push((&comprehension.accu_var, Extent::AtMost(weight)));
        let (of_result, result) = self.estimate(&comprehension.result);
        self.names.truncate(known);
        // Each iteration copies the element and the accumulator.
        let copied = element.weight().saturating_add(weight / 2);
        let of_turn = of_condition.saturating_add(of_step).saturating_add(copied / 8);
        let steps = of_turn
            .saturating_mul(times)
            .saturating_add(of_range)
            .saturating_add(of_init)
            .saturating_add(of_result);
        (steps, result)
    }
}

fn indexed<'a>(operand: &Extent<'a>, index: &IdedExpr) -> Extent<'a> {
    match &index.expr {
        Expr::Literal(LiteralValue::String(name)) => {
            operand.parts(|value| value.get(name.inner()).into_iter().collect())
        }
        _ => operand.parts(|value| match value {
            Value::Array(items) => items.iter().collect(),
            Value::Object(fields) => fields.values().collect(),
            _ => Vec::new(),
        }),
    }
}

/// Returns the cost of a function call, and the maximum size of its result.
fn function(name: &str, weights: &[u64], weight: u64, parts: &[&IdedExpr]) -> (u64, u64) {
    let literal = |place: usize| parts.get(place).and_then(|part| text_of(part));
    let product = weights
        .iter()
        .fold(1_u64, |product, weight| product.saturating_mul((*weight).max(1)));
    match name {
        operators::ADD => (weight, weight),
        name if name.contains('_') || name == operators::IN => (weight, 1),
        "matches" | "find" | "findAll" => {
            let is_simple =
                literal(1).is_some_and(|pattern| !pattern.contains(['{', '\\']) && pattern.len() <= 200);
            let compiling = if is_simple { SIMPLE_REGEX } else { LARGE_REGEX };
            (weight.saturating_add(compiling), weight)
        }
        // Each position of the first argument may be replaced by the third; joining appends the second to
        // each item.
        "replace" | "join" => (product, product),
        "format" => {
            let precise = |format: &str| {
                format
                    .split('.')
                    .skip(1)
                    .any(|rest| rest.bytes().take_while(u8::is_ascii_digit).count() > 2)
            };
            let is_bounded = literal(0).is_some_and(|format| !precise(format));
            let result = if is_bounded {
                product.saturating_add(weight.saturating_mul(128))
            } else {
                u64::MAX
            };
            (result, result)
        }
        "range" | "lists.range" => {
            let count = parts.last().and_then(|part| match &part.expr {
                Expr::Literal(LiteralValue::Int(count)) => u64::try_from(*count.inner()).ok(),
                _ => None,
            });
            let count = count.unwrap_or(u64::MAX);
            (count, count)
        }
        "contains" | "containsCIDR" | "containsIP" | "equivalent" | "intersects" | "distinct"
        | "sets.contains" | "sets.equivalent" | "sets.intersects" | "flatten" | "sort" => {
            let compared = weight.saturating_mul(weight) / 64;
            (compared.saturating_add(weight), weight)
        }
        _ => (weight, weight.saturating_mul(2).saturating_add(64)),
    }
}

fn text_of(expression: &IdedExpr) -> Option<&str> {
    match &expression.expr {
        Expr::Literal(LiteralValue::String(text)) => Some(text.inner()),
        _ => None,
    }
}
