//! Text with `{{path}}` for values of the current object.

use std::borrow::Cow;

use serde_json::Value;
use thiserror::Error;

use crate::{
    patch::Pointer,
    selection::{field, scalar_text},
};

/// Text with placeholders for values of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PlaceholderText(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Path(String),
}

/// Why a placeholder has no text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum PlaceholderError {
    /// The value does not exist.
    #[error("{{{{{0}}}}} does not exist")]
    Missing(String),
    /// The value is a list or an object.
    #[error("{{{{{0}}}}} is neither a string nor a number nor a boolean")]
    NoText(String),
}

impl PlaceholderText {
    /// Parses a text.
    ///
    /// # Errors
    ///
    /// If a placeholder is not closed, or is empty.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let (path, after) = after.split_once("}}").ok_or("{{ without }}")?;
            let path = path.trim();
            if path.is_empty() || path.contains('{') {
                return Err("a path is missing between {{ and }}");
            }
            if !before.is_empty() {
                parts.push(Part::Text(before.to_owned()));
            }
            parts.push(Part::Path(path.to_owned()));
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        Ok(Self(parts))
    }

    /// The text before the first placeholder.
    pub(crate) fn leading_text(&self) -> &str {
        match self.0.first() {
            Some(Part::Text(text)) => text,
            _ => "",
        }
    }

    /// Reports whether the text has no placeholder.
    pub(crate) fn is_plain(&self) -> bool {
        self.0.iter().all(|part| matches!(part, Part::Text(_)))
    }

    /// Replaces the placeholders by values of an object, formatted by `encode`.
    pub(crate) fn fill(
        &self,
        object: &Value,
        encode: impl Fn(&str) -> Cow<'_, str>,
    ) -> Result<String, PlaceholderError> {
        let mut filled = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => filled.push_str(text),
                Part::Path(path) => {
                    let found = if path.starts_with('/') {
                        Pointer::parse(path)
                            .ok()
                            .and_then(|pointer| pointer.find(object))
                            .filter(|value| !value.is_null())
                    } else {
                        field(object, path)
                    };
                    let found = found.ok_or_else(|| PlaceholderError::Missing(path.clone()))?;
                    let text = scalar_text(found).ok_or_else(|| PlaceholderError::NoText(path.clone()))?;
                    filled.push_str(&encode(&text));
                }
            }
        }
        Ok(filled)
    }
}

/// Returns the text unchanged.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    text.into()
}

/// Encodes a value for a URL: everything but unreserved characters (RFC 3986 §2.3), so that no value changes
/// the target. A path segment of dots would refer to a parent.
pub(crate) fn percent_encoded(text: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let is_dots = !text.is_empty() && text.bytes().all(|byte| byte == b'.');
    if text.bytes().all(is_plain) && !is_dots {
        return text.into();
    }
    let encode = |byte: u8| {
        if is_plain(byte) && !is_dots {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    text.bytes().map(encode).collect::<String>().into()
}
