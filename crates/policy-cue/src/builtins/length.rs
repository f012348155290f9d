//! `len`.

use crate::{
    builtins::{Arguments, BuiltinFunction},
    evaluate::{CueValue, Evaluated},
    kind::KindSet,
};

const MEASURED: KindSet = KindSet::MEASURED;

pub(super) const FUNCTIONS: &[BuiltinFunction] = &[BuiltinFunction::new(
    "",
    "len",
    &[MEASURED],
    KindSet::INTEGER,
    len,
)];

/// The length of a string is in bytes.
fn len<'a>(arguments: &mut Arguments<'_, 'a, '_>) -> Evaluated<CueValue<'a>> {
    let length = match &arguments.values[0] {
        CueValue::Text(text) => Some(text.len()),
        other => arguments.evaluation.count(other),
    };
    let length = length.and_then(|length| i64::try_from(length).ok());
    length
        .map(CueValue::integer)
        .ok_or_else(|| arguments.error("the argument has no length"))
}
