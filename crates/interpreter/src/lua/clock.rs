//! The library `os`: time and dates. The functions of C are not thread-safe.

use jiff::{
    Span, Timestamp, Zoned, civil,
    fmt::strtime::{BrokenDownTime, Config, PosixCustom},
    tz::TimeZone,
};
use mlua::{Lua, Table, Value as LuaValue, Variadic};

use super::arguments::{Arguments, raise};

/// The longest format, in bytes.
const LONGEST: usize = 10_000;

/// Creates the `os` library with the functions that read the time.
pub(super) fn library(lua: &Lua) -> mlua::Result<Table> {
    let library = lua.create_table()?;
    let time = |lua: &Lua, values: Variadic<LuaValue>| {
        let function = "time";
        time(&Arguments {
            lua,
            function,
            values,
        })
    };
    library.raw_set("time", lua.create_function(time)?)?;
    let date = |lua: &Lua, values: Variadic<LuaValue>| {
        let function = "date";
        date(&Arguments {
            lua,
            function,
            values,
        })
    };
    library.raw_set("date", lua.create_function(date)?)?;
    Ok(library)
}

/// Returns the seconds since 1970, now or for the local time in a table; `nil` if there is no such time.
fn time(arguments: &Arguments<'_>) -> mlua::Result<Option<f64>> {
    if arguments.value(1).is_nil() {
        return Ok(Some(Timestamp::now().as_second() as f64));
    }
    let table = arguments.table(1)?;
    let field = |name: &str, default: Option<i64>| {
        let value = arguments.lua.coerce_number(table.raw_get(name)?)?;
        #[expect(clippy::cast_possible_truncation, reason = "date is out of range")]
        let value = value.map(|value| value as i64).or(default);
        value.ok_or_else(|| raise(arguments.lua, &format!("field '{name}' missing in date table")))
    };
    let [year, month, day] = [field("year", None)?, field("month", None)?, field("day", None)?];
    let [hour, minute, second] = [
        field("hour", Some(12))?,
        field("min", Some(0))?,
        field("sec", Some(0))?,
    ];
    Ok(local([year, month, day, hour, minute, second]).map(|time| time.timestamp().as_second() as f64))
}

/// Returns a local time from parts that may be out of range: the fourteenth month is the second of the next
/// year.
fn local([year, month, day, hour, minute, second]: [i64; 6]) -> Option<Zoned> {
    let months = year.checked_mul(12)?.checked_add(month.checked_sub(1)?)?;
    let year = i16::try_from(months.div_euclid(12)).ok()?;
    let month = i8::try_from(months.rem_euclid(12) + 1).ok()?;
    let first = civil::DateTime::new(year, month, 1, 0, 0, 0, 0).ok()?;
    // Added one at a time, because a span of several units has a single sign.
    let parts: [fn(i64) -> Result<Span, jiff::Error>; 4] = [
        |days| Span::new().try_days(days),
        |hours| Span::new().try_hours(hours),
        |minutes| Span::new().try_minutes(minutes),
        |seconds| Span::new().try_seconds(seconds),
    ];
    let amounts = [day.checked_sub(1)?, hour, minute, second];
    let time = parts
        .iter()
        .zip(amounts)
        .try_fold(first, |time, (span, amount)| {
            time.checked_add(span(amount).ok()?).ok()
        })?;
    time.to_zoned(TimeZone::system()).ok()
}

/// Formats a time in the local time zone, or in UTC if the format starts with `!`; `*t` returns a table.
fn date(arguments: &Arguments<'_>) -> mlua::Result<LuaValue> {
    let lua = arguments.lua;
    let format = match arguments.value(1) {
        LuaValue::Nil => "%c".to_owned(),
        _ => arguments.text(1)?.to_string_lossy(),
    };
    if format.len() > LONGEST {
        return Err(arguments.bad_argument(1, &format!("longer than {LONGEST} bytes")));
    }
    let timestamp = match arguments.optional_number(2)? {
        #[expect(clippy::cast_possible_truncation, reason = "date is out of range")]
        Some(time) => {
            Timestamp::from_second(time as i64).map_err(|_| arguments.bad_argument(2, "out of range"))?
        }
        None => Timestamp::now(),
    };
    let (zone, format) = match format.strip_prefix('!') {
        Some(rest) => (TimeZone::UTC, rest),
        None => (TimeZone::system(), format.as_str()),
    };
    let time = timestamp.to_zoned(zone);
    if format.starts_with("*t") {
        return parts(lua, &time).map(LuaValue::Table);
    }
    let config = Config::new().lenient(true).custom(PosixCustom::new());
    let mut text = String::new();
    let written = BrokenDownTime::from(&time).format_with_config(&config, format, &mut text);
    written.map_err(|error| arguments.bad_argument(1, &error.to_string()))?;
    lua.create_string(text).map(LuaValue::String)
}

fn parts(lua: &Lua, time: &Zoned) -> mlua::Result<Table> {
    let parts = lua.create_table()?;
    for (name, value) in [
        ("year", i32::from(time.year())),
        ("month", time.month().into()),
        ("day", time.day().into()),
        ("hour", time.hour().into()),
        ("min", time.minute().into()),
        ("sec", time.second().into()),
        ("wday", time.weekday().to_sunday_one_offset().into()),
        ("yday", time.day_of_year().into()),
    ] {
        parts.raw_set(name, value)?;
    }
    let is_summer = time.time_zone().to_offset_info(time.timestamp()).dst().is_dst();
    parts.raw_set("isdst", is_summer)?;
    Ok(parts)
}
