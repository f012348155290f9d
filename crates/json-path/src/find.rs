//! Finds the values that a path selects.

use std::{cmp::Ordering, collections::HashSet, ptr};

use serde_json::Value;

use crate::{
    comparison::{equal, order},
    path::{PathFilter, PathOperand, PathOperator, PathStep},
};

/// Returns the values that steps select, each once.
pub(crate) fn follow<'a>(object: &'a Value, steps: &[PathStep]) -> Vec<&'a Value> {
    let mut found = vec![object];
    for step in steps {
        let mut next = Vec::new();
        for value in found {
            apply_step(step, value, &mut next);
        }
        // Without this, repeated steps would find a value once for each way to it.
        if matches!(step, PathStep::Union(_) | PathStep::Descent) {
            let mut seen = HashSet::with_capacity(next.len());
            next.retain(|value| seen.insert(ptr::from_ref(*value)));
        }
        found = next;
    }
    found
}

fn apply_step<'a>(step: &PathStep, value: &'a Value, next: &mut Vec<&'a Value>) {
    match step {
        PathStep::Field(name) => next.extend(value.get(name)),
        PathStep::Wildcard => next.extend(children(value)),
        PathStep::Index(_) | PathStep::Slice { .. } => {
            let items = value.as_array().map_or(&[][..], Vec::as_slice);
            next.extend(positions(step, items.len()).filter_map(|position| items.get(position)));
        }
        PathStep::Filter(filter) => next.extend(children(value).filter(|child| is_selected(filter, child))),
        PathStep::Union(steps) => steps.iter().for_each(|step| apply_step(step, value, next)),
        PathStep::Descent => {
            let mut open = vec![value];
            while let Some(value) = open.pop() {
                next.push(value);
                let start = open.len();
                open.extend(children(value));
                open[start..].reverse();
            }
        }
    }
}

/// The items of a list, or the values of an object's fields.
fn children(value: &Value) -> impl Iterator<Item = &Value> {
    let list = value.as_array().into_iter().flatten();
    list.chain(value.as_object().into_iter().flat_map(|fields| fields.values()))
}

/// The positions that an index, a slice or a wildcard selects in a list of `length` items.
pub(crate) fn positions(step: &PathStep, length: usize) -> impl Iterator<Item = usize> + use<> {
    let (start, end, step) = match *step {
        PathStep::Index(index) => {
            let position = position(index, length).filter(|position| *position < length);
            let start = position.unwrap_or(length);
            (start, length.min(start.saturating_add(1)), 1)
        }
        PathStep::Slice { start, end, step } => {
            let place = |index, absent| match index {
                None => absent,
                Some(index) => position(index, length).unwrap_or(0).min(length),
            };
            (place(start, 0), place(end, length), step)
        }
        PathStep::Wildcard => (0, length, 1),
        _ => (0, 0, 1),
    };
    (start..end).step_by(step.max(1))
}

/// Converts an index to a position from the front; `None` if it is before the first item.
pub(crate) fn position(index: i64, length: usize) -> Option<usize> {
    match usize::try_from(index) {
        Ok(index) => Some(index),
        Err(_) => length.checked_sub(usize::try_from(index.unsigned_abs()).ok()?),
    }
}

pub(crate) fn is_selected(filter: &PathFilter, item: &Value) -> bool {
    let (left, operator, right) = match filter {
        PathFilter::Exists(steps) => return !follow(item, steps).is_empty(),
        PathFilter::Compare(left, operator, right) => (left, operator, right),
    };
    let (Some(left), Some(right)) = (resolve(left, item), resolve(right, item)) else {
        return false;
    };
    match operator {
        PathOperator::Equal => equal(left, right),
        PathOperator::NotEqual => !equal(left, right),
        PathOperator::Less => order(left, right).is_some_and(Ordering::is_lt),
        PathOperator::LessOrEqual => order(left, right).is_some_and(Ordering::is_le),
        PathOperator::Greater => order(left, right).is_some_and(Ordering::is_gt),
        PathOperator::GreaterOrEqual => order(left, right).is_some_and(Ordering::is_ge),
    }
}

fn resolve<'a>(operand: &'a PathOperand, item: &'a Value) -> Option<&'a Value> {
    match operand {
        PathOperand::Steps(steps) => follow(item, steps).into_iter().next(),
        PathOperand::Literal(value) => Some(value),
    }
}
