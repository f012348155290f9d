//! Package `strings`. Positions and lengths count bytes, as in Go, unless the name contains "Rune".

use crate::{
    builtins::{Arguments, BuiltinFunction},
    evaluate::{CueValue, Evaluated, ValuePlace},
    kind::KindSet,
};

const S: KindSet = KindSet::STRING;
const I: KindSet = KindSet::INTEGER;

type Call = for<'a> fn(&mut Arguments<'_, 'a, '_>) -> Evaluated<CueValue<'a>>;

const fn function(
    name: &'static str,
    parameters: &'static [KindSet],
    result: KindSet,
    implementation: Call,
) -> BuiltinFunction {
    BuiltinFunction::new("strings", name, parameters, result, implementation)
}

/// Defines a predicate on two strings.
macro_rules! tests {
    ($name:literal, $test:expr) => {
        function($name, &[S, S], KindSet::BOOL, |arguments| {
            let test: fn(&str, &str) -> bool = $test;
            Ok(CueValue::Bool(test(arguments.text(0)?, arguments.text(1)?)))
        })
    };
}

/// Defines a function that trims its first argument by its second one.
macro_rules! trims {
    ($name:literal, $trim:expr) => {
        function($name, &[S, S], S, |arguments| {
            let trim: for<'t> fn(&'t str, &str) -> &'t str = $trim;
            let text = trim(arguments.text(0)?, arguments.text(1)?).to_owned();
            arguments.new_text(&text)
        })
    };
}

/// Defines a function that finds its second argument in its first one.
macro_rules! finds {
    ($name:literal, $find:expr) => {
        function($name, &[S, S], I, |arguments| {
            let find: fn(&str, &str) -> Option<usize> = $find;
            let found = find(arguments.text(0)?, arguments.text(1)?);
            let found = found.and_then(|found| i64::try_from(found).ok());
            Ok(CueValue::integer(found.unwrap_or(-1)))
        })
    };
}

/// Defines a function that transforms its argument.
macro_rules! maps {
    ($name:literal, $map:expr) => {
        function($name, &[S], S, |arguments| {
            let map: fn(&str) -> String = $map;
            let text = arguments.text(0)?;
            let length = text.len();
            // No mapping makes a string three times as long.
            arguments.evaluation.take(length.saturating_mul(3))?;
            let text = map(arguments.text(0)?);
            arguments.new_text(&text)
        })
    };
}

pub(super) const FUNCTIONS: &[BuiltinFunction] = &[
    function("Compare", &[S, S], I, |arguments| {
        let order = arguments.text(0)?.as_bytes().cmp(arguments.text(1)?.as_bytes());
        Ok(CueValue::integer(order as i64))
    }),
    tests!("Contains", |text, part| text.contains(part)),
    tests!("ContainsAny", |text, characters| text
        .contains(|character| characters.contains(character))),
    function("Count", &[S, S], I, |arguments| {
        let (text, part) = (arguments.text(0)?, arguments.text(1)?);
        let count = match part {
            "" => text.chars().count() + 1,
            part => text.matches(part).count(),
        };
        Ok(CueValue::integer(i64::try_from(count).unwrap_or(i64::MAX)))
    }),
    function("Fields", &[S], KindSet::LIST, |arguments| {
        let parts: Vec<String> = arguments.text(0)?.split_whitespace().map(str::to_owned).collect();
        split_texts(arguments, &parts)
    }),
    tests!("HasPrefix", |text, prefix| text.starts_with(prefix)),
    tests!("HasSuffix", |text, suffix| text.ends_with(suffix)),
    finds!("Index", |text, part| text.find(part)),
    function("Join", &[KindSet::LIST, S], S, join),
    finds!("LastIndex", |text, part| text.rfind(part)),
    function("MaxRunes", &[S, I], KindSet::BOOL, |arguments| {
        let length = i64::try_from(arguments.text(0)?.chars().count()).unwrap_or(i64::MAX);
        Ok(CueValue::Bool(length <= arguments.integer(1)?))
    }),
    function("MinRunes", &[S, I], KindSet::BOOL, |arguments| {
        let length = i64::try_from(arguments.text(0)?.chars().count()).unwrap_or(i64::MAX);
        Ok(CueValue::Bool(length >= arguments.integer(1)?))
    }),
    function("Repeat", &[S, I], S, |arguments| {
        let count = arguments.count(1)?;
        let length = arguments.text(0)?.len();
        arguments.evaluation.take(length.saturating_mul(count))?;
        Ok(CueValue::text(&arguments.text(0)?.repeat(count)))
    }),
    function("Replace", &[S, S, S, I], S, replace),
    function("SliceRunes", &[S, I, I], S, |arguments| {
        let (start, end) = (arguments.count(1)?, arguments.count(2)?);
        let length = arguments.text(0)?.chars().count();
        if start > end || end > length {
            return Err(arguments.error(format!(
                "the range {start} to {end} exceeds the {length} characters of the string"
            )));
        }
        let text: String = arguments.text(0)?.chars().skip(start).take(end - start).collect();
        arguments.new_text(&text)
    }),
    function("Split", &[S, S], KindSet::LIST, |arguments| {
        let (text, separator) = (arguments.text(0)?, arguments.text(1)?);
        let parts: Vec<String> = match separator {
            "" => text.chars().map(String::from).collect(),
            separator => text.split(separator).map(str::to_owned).collect(),
        };
        split_texts(arguments, &parts)
    }),
    maps!("ToCamel", |text| initials(text, lower)),
    maps!("ToLower", |text| text.chars().map(lower).collect()),
    maps!("ToTitle", |text| initials(text, upper)),
    maps!("ToUpper", |text| text.chars().map(upper).collect()),
    trims!("Trim", |text, set| text
        .trim_matches(|character| set.contains(character))),
    trims!("TrimLeft", |text, set| text
        .trim_start_matches(|character| set.contains(character))),
    trims!("TrimPrefix", |text, prefix| text
        .strip_prefix(prefix)
        .unwrap_or(text)),
    trims!("TrimRight", |text, set| text
        .trim_end_matches(|character| set.contains(character))),
    maps!("TrimSpace", |text| text.trim().to_owned()),
    trims!("TrimSuffix", |text, suffix| text
        .strip_suffix(suffix)
        .unwrap_or(text)),
];

fn split_texts<'a>(arguments: &mut Arguments<'_, 'a, '_>, parts: &[String]) -> Evaluated<CueValue<'a>> {
    let mut items = Vec::with_capacity(parts.len());
    for part in parts {
        arguments.evaluation.step()?;
        items.push(ValuePlace::Value(arguments.new_text(part)?));
    }
    arguments.evaluation.new_list(items)
}

fn join<'a>(arguments: &mut Arguments<'_, 'a, '_>) -> Evaluated<CueValue<'a>> {
    let items = arguments.list(0)?;
    let mut joined = String::new();
    for (index, item) in items.iter().enumerate() {
        arguments.evaluation.step()?;
        let value = arguments.evaluation.value_of(item)?;
        let value = arguments.evaluation.decide(value)?;
        let CueValue::Text(part) = &value else {
            return Err(arguments.evaluation.wrong_kind(&value, S));
        };
        let separator = if index == 0 { "" } else { arguments.text(1)? };
        let (separator, length) = (separator.to_owned(), separator.len() + part.len());
        arguments.evaluation.take(length)?;
        joined.push_str(&separator);
        joined.push_str(part);
    }
    Ok(CueValue::text(&joined))
}

fn replace<'a>(arguments: &mut Arguments<'_, 'a, '_>) -> Evaluated<CueValue<'a>> {
    let most = usize::try_from(arguments.integer(3)?).unwrap_or(usize::MAX);
    let (text, old, new) = (arguments.text(0)?, arguments.text(1)?, arguments.text(2)?);
    let count = match old {
        "" => text.chars().count() + 1,
        old => text.matches(old).count(),
    };
    let longest = text.len() + count.min(most).saturating_mul(new.len());
    arguments.evaluation.take(longest)?;
    let (text, old, new) = (arguments.text(0)?, arguments.text(1)?, arguments.text(2)?);
    Ok(CueValue::text(&text.replacen(old, new, most)))
}

/// Maps the first character after each space.
fn initials(text: &str, map: fn(char) -> char) -> String {
    let mut before = ' ';
    let mapped = text.chars().map(|character| {
        let is_first = before.is_whitespace();
        before = character;
        if is_first { map(character) } else { character }
    });
    mapped.collect()
}

/// Like Go, maps each character to a single one; if Unicode has several, the character stays.
fn upper(character: char) -> char {
    // Greek letters with iota subscript have a single-character capital, besides the one of two characters.
    match u32::from(character) {
        0x1F80..=0x1F87 | 0x1F90..=0x1F97 | 0x1FA0..=0x1FA7 => return offset_char(character, 8),
        0x1FB3 | 0x1FC3 | 0x1FF3 => return offset_char(character, 9),
        _ => {}
    }
    single(character.to_uppercase()).unwrap_or(character)
}

fn lower(character: char) -> char {
    if character == 'İ' {
        return 'i';
    }
    single(character.to_lowercase()).unwrap_or(character)
}

fn offset_char(character: char, by: u32) -> char {
    char::from_u32(u32::from(character) + by).unwrap_or(character)
}

fn single(mut characters: impl ExactSizeIterator<Item = char>) -> Option<char> {
    if characters.len() == 1 {
        characters.next()
    } else {
        None
    }
}
