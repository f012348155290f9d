//! Operations and JSON pointers.

use std::fmt;

use serde_json::{Map, Value, json};
use thiserror::Error;

/// The maximum number of operations per patch.
const MOST: usize = 10_000;

/// The maximum number of tokens in a pointer.
const DEEPEST: usize = 100;

/// A JSON patch (RFC 6902): operations in the order in which they are applied.
pub type JsonPatch = Vec<JsonPatchOperation>;

/// One operation, with its paths and its value.
#[derive(Clone, Debug, PartialEq)]
pub enum JsonPatchOperation {
    /// Adds a value at a path, or before an item of a list.
    Add(Pointer, Value),
    /// Replaces the value at a path, or adds it if it is missing.
    Replace(Pointer, Value),
    /// Removes the value at a path, if it exists.
    Remove(Pointer),
    /// Fails unless the value is equal.
    Test(Pointer, Value),
    /// Copies the value of the first path to the second.
    Copy(Pointer, Pointer),
    /// Moves the value of the first path to the second.
    Move(Pointer, Pointer),
}

/// A JSON pointer (RFC 6901).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pointer(Vec<String>);

/// Why a value is not a valid JSON patch.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{place}{message}")]
pub struct InvalidPatchError {
    /// The operation, for example `patches[0].path: `; empty for the patch.
    place: String,
    message: String,
}

impl Pointer {
    /// Parses a pointer.
    ///
    /// # Errors
    ///
    /// If it has no leading slash, has an unescaped `~`, or more than 100 levels.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        let rest = text
            .strip_prefix('/')
            .ok_or_else(|| format!("{text:?} is not a JSON pointer: begin with /"))?;
        let tokens: Vec<_> = rest
            .split('/')
            .take(DEEPEST + 1)
            .map(|token| {
                let plain = token.replace("~0", "").replace("~1", "");
                if plain.contains('~') {
                    return Err(format!(
                        "{text:?} is not a JSON pointer: write ~0 for ~ and ~1 for /"
                    ));
                }
                Ok(token.replace("~1", "/").replace("~0", "~"))
            })
            .collect::<Result<_, _>>()?;
        if tokens.len() > DEEPEST {
            return Err(format!("has more than {DEEPEST} levels"));
        }
        Ok(Self(tokens))
    }

    /// Creates a pointer from names and indexes.
    pub fn from_tokens<T: Into<String>>(tokens: impl IntoIterator<Item = T>) -> Self {
        Self(tokens.into_iter().map(Into::into).collect())
    }

    /// Appends a name or index.
    #[must_use]
    pub fn join(&self, token: impl Into<String>) -> Self {
        let mut tokens = self.0.clone();
        tokens.push(token.into());
        Self(tokens)
    }

    /// The names and indexes, unescaped.
    pub fn tokens(&self) -> &[String] {
        &self.0
    }

    /// Returns the value at the pointer.
    pub fn find<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(value, |value, token| match value {
            Value::Object(fields) => fields.get(token),
            Value::Array(items) => items.get(index(token)?),
            _ => None,
        })
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for token in &self.0 {
            write!(formatter, "/{}", token.replace('~', "~0").replace('/', "~1"))?;
        }
        Ok(())
    }
}

/// Parses an index of a list, without leading zeros as in the RFC.
pub(super) fn index(token: &str) -> Option<usize> {
    let is_plain = token.bytes().all(|byte| byte.is_ascii_digit());
    let is_padded = token.len() > 1 && token.starts_with('0');
    (is_plain && !is_padded).then(|| token.parse().ok()).flatten()
}

impl JsonPatchOperation {
    /// Parses a list of operations.
    ///
    /// # Errors
    ///
    /// The first invalid operation.
    pub fn read(patches: &Value) -> Result<JsonPatch, InvalidPatchError> {
        let error = |place: String, message: String| InvalidPatchError { place, message };
        let Value::Array(items) = patches else {
            return Err(error(String::new(), "patches is not a list".into()));
        };
        if items.len() > MOST {
            let message = format!(
                "patches has {} operations; at most {MOST} are applied",
                items.len()
            );
            return Err(error(String::new(), message));
        }
        let read = |(place, item): (usize, &Value)| {
            Self::read_one(item)
                .map_err(|(field, message)| error(format!("patches[{place}]{field}: "), message))
        };
        items.iter().enumerate().map(read).collect()
    }

    fn read_one(item: &Value) -> Result<Self, (String, String)> {
        let Value::Object(fields) = item else {
            return Err((String::new(), "is not an object".into()));
        };
        let pointer = |name: &str| {
            let text = fields.get(name).ok_or_else(|| "is missing".to_owned());
            text.and_then(|text| text.as_str().ok_or_else(|| "is not a string".into()))
                .and_then(Pointer::parse)
                .map_err(|message| (format!(".{name}"), message))
        };
        let value = |fields: &Map<String, Value>| {
            let value = fields.get("value").cloned();
            value.ok_or_else(|| (".value".to_owned(), "is missing".to_owned()))
        };
        match fields.get("op").and_then(Value::as_str) {
            Some("add") => Ok(Self::Add(pointer("path")?, value(fields)?)),
            Some("replace") => Ok(Self::Replace(pointer("path")?, value(fields)?)),
            Some("remove") => Ok(Self::Remove(pointer("path")?)),
            Some("test") => Ok(Self::Test(pointer("path")?, value(fields)?)),
            Some("copy") => Ok(Self::Copy(pointer("from")?, pointer("path")?)),
            Some("move") => Ok(Self::Move(pointer("from")?, pointer("path")?)),
            _ => Err((
                ".op".into(),
                "must be add, replace, remove, test, copy or move".into(),
            )),
        }
    }

    /// Formats the operation as in the RFC.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Add(path, value) => json!({"op": "add", "path": path.to_string(), "value": value}),
            Self::Replace(path, value) => json!({"op": "replace", "path": path.to_string(), "value": value}),
            Self::Remove(path) => json!({"op": "remove", "path": path.to_string()}),
            Self::Test(path, value) => json!({"op": "test", "path": path.to_string(), "value": value}),
            Self::Copy(from, path) => {
                json!({"op": "copy", "from": from.to_string(), "path": path.to_string()})
            }
            Self::Move(from, path) => {
                json!({"op": "move", "from": from.to_string(), "path": path.to_string()})
            }
        }
    }
}
