//! Converts Lua values to JSON.

use std::os::raw::c_void;

use mlua::{Table, Value as LuaValue};
use serde_json::{Map, Number, Value};

/// The maximum nesting of tables, as for JSON.
const DEPTH: usize = 128;

/// The approximate memory of a value, without the bytes of strings.
const VALUE: usize = size_of::<Value>();

/// The approximate memory of an object's field, without its value and the bytes of its name: the name, its
/// hash and its slot.
const FIELD: usize = size_of::<(String, u64, usize)>();

/// The state of a conversion.
struct Conversion {
    path: String,
    /// The tables that contain the current value.
    within: Vec<*const c_void>,
    /// The remaining bytes.
    left: usize,
    bytes: usize,
}

/// Converts a value to JSON of at most `bytes` bytes; a table that is referenced twice counts twice. A table
/// becomes a list if its keys are 1 to n, or if it is empty, and an object if all keys are strings.
///
/// # Errors
///
/// The problem, with its field.
pub(super) fn from_lua(value: &LuaValue, bytes: usize) -> Result<Value, String> {
    let mut conversion = Conversion {
        path: String::new(),
        within: Vec::new(),
        left: bytes,
        bytes,
    };
    conversion.value(value)
}

impl Conversion {
    fn value(&mut self, value: &LuaValue) -> Result<Value, String> {
        self.take(VALUE)?;
        match value {
            LuaValue::Nil => Ok(Value::Null),
            LuaValue::Boolean(value) => Ok(Value::Bool(*value)),
            LuaValue::Integer(number) => Ok(Value::from(*number)),
            LuaValue::Number(number) => {
                number_of(*number).ok_or_else(|| self.wrong("is not a finite number"))
            }
            LuaValue::String(text) => {
                let text = utf8(&text.as_bytes());
                self.take(text.len())?;
                Ok(Value::String(text))
            }
            LuaValue::Table(table) => self.table(table),
            other => Err(self.wrong(&format!("cannot encode {} to JSON", other.type_name()))),
        }
    }

    fn table(&mut self, table: &Table) -> Result<Value, String> {
        let pointer = table.to_pointer();
        if self.within.contains(&pointer) {
            return Err(self.wrong("a table contains itself"));
        }
        if self.within.len() >= DEPTH {
            return Err(self.wrong(&format!("tables are more than {DEPTH} deep")));
        }
        self.within.push(pointer);
        let mut fields = Map::new();
        let mut items: Vec<(usize, Value)> = Vec::new();
        let before = self.path.len();
        for pair in table.pairs::<LuaValue, LuaValue>() {
            let (key, value) = pair.map_err(|error| self.wrong(&error.to_string()))?;
            match &key {
                LuaValue::String(name) => {
                    let name = utf8(&name.as_bytes());
                    self.take(name.len() + FIELD)?;
                    self.path.push('.');
                    self.path.push_str(&name);
                    fields.insert(name, self.value(&value)?);
                }
                LuaValue::Integer(_) | LuaValue::Number(_) => {
                    let index = index_of(&key).ok_or_else(|| self.wrong("cannot encode sparse array"))?;
                    self.path.push_str(&format!("[{index}]"));
                    items.push((index, self.value(&value)?));
                }
                _ => return Err(self.wrong("cannot encode mixed or invalid key types")),
            }
            self.path.truncate(before);
        }
        self.within.pop();
        if fields.is_empty() {
            items.sort_by_key(|(index, _)| *index);
            let is_list = (1..).zip(&items).all(|(expected, (index, _))| expected == *index);
            return match is_list {
                true => Ok(Value::Array(items.into_iter().map(|(_, item)| item).collect())),
                false => Err(self.wrong("cannot encode sparse array")),
            };
        }
        match items.is_empty() {
            true => Ok(Value::Object(fields)),
            false => Err(self.wrong("cannot encode mixed or invalid key types")),
        }
    }

    fn take(&mut self, bytes: usize) -> Result<(), String> {
        let left = self.left.checked_sub(bytes);
        self.left = left.ok_or_else(|| format!("it is larger than {} bytes", self.bytes))?;
        Ok(())
    }

    fn wrong(&self, problem: &str) -> String {
        match self.path.strip_prefix('.').unwrap_or(&self.path) {
            "" => problem.to_owned(),
            path => format!("{path}: {problem}"),
        }
    }
}

/// Converts bytes to text; invalid UTF-8 is replaced, as in Go, because scripts may cut strings anywhere.
fn utf8(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    text
}

/// Converts a number. Whole numbers within 64 bits become integers, because API servers do not read floats as
/// integers.
fn number_of(number: f64) -> Option<Value> {
    /// 2^63, the first value out of range.
    const END: f64 = 9_223_372_036_854_775_808.0;
    if number.fract() == 0.0 && (-END..END).contains(&number) {
        #[expect(clippy::cast_possible_truncation, reason = "the number is whole and in range")]
        return Some(Value::from(number as i64));
    }
    Number::from_f64(number).map(Value::Number)
}

fn index_of(key: &LuaValue) -> Option<usize> {
    match key {
        LuaValue::Integer(index) => usize::try_from(*index).ok(),
        LuaValue::Number(number) => usize::try_from(number_of(*number)?.as_i64()?).ok(),
        _ => None,
    }
}
