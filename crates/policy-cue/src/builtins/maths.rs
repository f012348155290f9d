//! Package `math`.

use crate::{
    builtins::{Arguments, BuiltinFunction, detected},
    evaluate::{CueValue, Evaluated},
    kind::KindSet,
    number::{CueNumber, RoundingMode},
};

const ONE: &[KindSet] = &[KindSet::NUMBER];

const fn rounding(
    name: &'static str,
    implementation: for<'a> fn(&mut Arguments<'_, 'a, '_>) -> Evaluated<CueValue<'a>>,
) -> BuiltinFunction {
    BuiltinFunction::new("math", name, ONE, KindSet::INTEGER, implementation)
}

pub(super) const FUNCTIONS: &[BuiltinFunction] = &[
    BuiltinFunction::new("math", "Abs", ONE, KindSet::NUMBER, |arguments| {
        let number = arguments.number(0)?.decimal.clone();
        Ok(CueValue::number(detected(number.absolute())))
    }),
    rounding("Ceil", |arguments| round(arguments, RoundingMode::Ceiling)),
    rounding("Floor", |arguments| round(arguments, RoundingMode::Floor)),
    rounding("Round", |arguments| round(arguments, RoundingMode::HalfUp)),
    rounding("RoundToEven", |arguments| {
        round(arguments, RoundingMode::HalfEven)
    }),
    rounding("Trunc", |arguments| round(arguments, RoundingMode::Down)),
    BuiltinFunction::new("math", "Signbit", ONE, KindSet::BOOL, |arguments| {
        Ok(CueValue::Bool(arguments.number(0)?.decimal.is_negative()))
    }),
];

fn round<'a>(arguments: &mut Arguments<'_, 'a, '_>, mode: RoundingMode) -> Evaluated<CueValue<'a>> {
    let rounded = arguments.number(0)?.decimal.to_integral(mode);
    let rounded = rounded.map_err(|error| arguments.error(error.to_string()))?;
    Ok(CueValue::number(CueNumber::integer(rounded)))
}
