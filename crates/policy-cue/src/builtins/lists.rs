//! Package `list`.

use std::cmp::Ordering;

use crate::{
    builtins::{Arguments, BuiltinFunction, detected},
    evaluate::{CueValue, Evaluated, ValuePlace},
    kind::KindSet,
    number::CueNumber,
};

const L: KindSet = KindSet::LIST;
const I: KindSet = KindSet::INTEGER;

type Call = for<'a> fn(&mut Arguments<'_, 'a, '_>) -> Evaluated<CueValue<'a>>;

const fn function(
    name: &'static str,
    parameters: &'static [KindSet],
    result: KindSet,
    implementation: Call,
) -> BuiltinFunction {
    BuiltinFunction::new("list", name, parameters, result, implementation)
}

pub(super) const FUNCTIONS: &[BuiltinFunction] = &[
    function("Concat", &[L], L, |arguments| {
        let mut all = Vec::new();
        for list in arguments.list(0)? {
            let value = arguments.evaluation.value_of(&list)?;
            let value = arguments.evaluation.decide(value)?;
            match arguments.evaluation.list(&value)? {
                Some(items) => all.extend(items),
                None => return Err(arguments.evaluation.wrong_kind(&value, L)),
            }
        }
        arguments.evaluation.new_list(all)
    }),
    function("Contains", &[L, KindSet::TOP], KindSet::BOOL, contains),
    function("Drop", &[L, I], L, |arguments| {
        let count = arguments.count(1)?;
        let items = arguments.list(0)?;
        let rest = items.into_iter().skip(count).collect();
        arguments.evaluation.new_list(rest)
    }),
    function("FlattenN", &[KindSet::TOP, I], L, |arguments| {
        let depth = arguments.integer(1)?;
        let Some(items) = arguments.evaluation.list(&arguments.values[0])? else {
            return Err(arguments.evaluation.wrong_kind(&arguments.values[0], L));
        };
        let mut flat = Vec::with_capacity(items.len());
        flatten(arguments, items, depth, &mut flat)?;
        arguments.evaluation.new_list(flat)
    }),
    function("Max", &[L], KindSet::NUMBER, |arguments| {
        extreme(arguments, Ordering::Greater)
    }),
    function("MaxItems", &[L, I], KindSet::BOOL, |arguments| {
        let length = i64::try_from(arguments.list(0)?.len()).unwrap_or(i64::MAX);
        Ok(CueValue::Bool(length <= arguments.integer(1)?))
    }),
    function("Min", &[L], KindSet::NUMBER, |arguments| {
        extreme(arguments, Ordering::Less)
    }),
    function("MinItems", &[L, I], KindSet::BOOL, |arguments| {
        let length = i64::try_from(arguments.list(0)?.len()).unwrap_or(i64::MAX);
        Ok(CueValue::Bool(length >= arguments.integer(1)?))
    }),
    function("Repeat", &[L, I], L, |arguments| {
        let count = arguments.count(1)?;
        let items = arguments.list(0)?;
        let length = items.len().saturating_mul(count);
        arguments
            .evaluation
            .take(length.saturating_mul(size_of::<ValuePlace<'_>>()))?;
        let mut all = Vec::with_capacity(length);
        if !items.is_empty() {
            for _ in 0..count {
                all.extend_from_slice(&items);
            }
        }
        arguments.evaluation.new_list(all)
    }),
    function("Slice", &[L, I, I], L, |arguments| {
        let (start, end) = (arguments.count(1)?, arguments.count(2)?);
        let items = arguments.list(0)?;
        match items.get(start..end) {
            Some(part) => arguments.evaluation.new_list(part.to_vec()),
            None => {
                let length = items.len();
                Err(arguments.error(format!(
                    "the range {start} to {end} exceeds the {length} items of the list"
                )))
            }
        }
    }),
    function("SortStrings", &[L], L, |arguments| {
        let mut texts = Vec::new();
        for item in arguments.list(0)? {
            let value = arguments.evaluation.value_of(&item)?;
            let value = arguments.evaluation.decide(value)?;
            match value {
                CueValue::Text(text) => texts.push(text),
                other => return Err(arguments.evaluation.wrong_kind(&other, KindSet::STRING)),
            }
        }
        texts.sort_by(|left, right| left.as_bytes().cmp(right.as_bytes()));
        let items = texts
            .into_iter()
            .map(|text| ValuePlace::Value(CueValue::Text(text)));
        let items = items.collect();
        arguments.evaluation.new_list(items)
    }),
    function("Sum", &[L], KindSet::NUMBER, |arguments| {
        let mut sum = CueNumber::integer(0_i64.into());
        for number in numbers(arguments)? {
            sum = sum
                .plus(&number)
                .map_err(|error| arguments.error(error.to_string()))?;
        }
        Ok(CueValue::number(detected(sum.decimal)))
    }),
    function("Take", &[L, I], L, |arguments| {
        let count = arguments.count(1)?;
        let mut items = arguments.list(0)?;
        items.truncate(count);
        arguments.evaluation.new_list(items)
    }),
];

/// A negative depth is unlimited.
fn flatten<'a>(
    arguments: &mut Arguments<'_, 'a, '_>,
    items: Vec<ValuePlace<'a>>,
    depth: i64,
    flat: &mut Vec<ValuePlace<'a>>,
) -> Evaluated<()> {
    for item in items {
        arguments.evaluation.step()?;
        // A value that is not concrete is not a list.
        let value = arguments
            .evaluation
            .value_of(&item)
            .and_then(|value| arguments.evaluation.decide(value));
        let inner = match &value {
            Ok(value) if depth != 0 => arguments.evaluation.list(value)?,
            Err(failure) if !failure.is_incomplete() => {
                return Err(std::rc::Rc::clone(failure));
            }
            _ => None,
        };
        match inner {
            Some(inner) => {
                arguments.evaluation.enter()?;
                let flattened = flatten(arguments, inner, depth.saturating_sub(1), flat);
                arguments.evaluation.leave();
                flattened?;
            }
            None => flat.push(item),
        }
    }
    Ok(())
}

fn contains<'a>(arguments: &mut Arguments<'_, 'a, '_>) -> Evaluated<CueValue<'a>> {
    let wanted = arguments.values[1].clone();
    for item in arguments.list(0)? {
        let is_equal = match arguments.evaluation.value_of(&item) {
            Ok(value) => arguments.evaluation.are_equal(&value, &wanted)?,
            Err(failure) if failure.is_incomplete() => false,
            Err(failure) => return Err(failure),
        };
        if is_equal {
            return Ok(CueValue::Bool(true));
        }
    }
    Ok(CueValue::Bool(false))
}

fn numbers(arguments: &mut Arguments<'_, '_, '_>) -> Evaluated<Vec<CueNumber>> {
    let mut numbers = Vec::new();
    for item in arguments.list(0)? {
        arguments.evaluation.step()?;
        let value = arguments.evaluation.value_of(&item)?;
        let value = arguments.evaluation.decide(value)?;
        match value {
            CueValue::Number(number) => numbers.push((*number).clone()),
            other => return Err(arguments.evaluation.wrong_kind(&other, KindSet::NUMBER)),
        }
    }
    Ok(numbers)
}

fn extreme<'a>(arguments: &mut Arguments<'_, 'a, '_>, wanted: Ordering) -> Evaluated<CueValue<'a>> {
    let mut numbers = numbers(arguments)?.into_iter();
    let Some(mut found) = numbers.next() else {
        return Err(arguments.error("the list is empty"));
    };
    for number in numbers {
        if number.compare(&found) == wanted {
            found = number;
        }
    }
    Ok(CueValue::number(detected(found.decimal)))
}
