//! JSON paths in the form that problems print.

use std::fmt;

/// The path of a field below an object, for example `.spec.webhookdefinitions[0].rules`; empty for the
/// object.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct JsonPath(String);

impl JsonPath {
    /// Returns the path of the object itself.
    pub fn root() -> Self {
        Self::default()
    }

    /// Returns a path of plain field names, separated by dots.
    pub fn from_fields(fields: &str) -> Self {
        fields
            .split('.')
            .fold(Self::root(), |path, field| path.field(field))
    }

    /// Returns the path of the field `name` below this path.
    pub fn field(&self, name: &str) -> Self {
        let plain = !name.is_empty()
            && name
                .chars()
                .all(|character| character.is_ascii_alphanumeric() || matches!(character, '_' | '-'));
        if plain {
            return Self(format!("{}.{name}", self.0));
        }
        let quoted = name.replace('\\', "\\\\").replace('\'', "\\'");
        Self(format!("{}['{quoted}']", self.0))
    }

    /// Appends `path` to this path.
    pub fn join(&self, path: &Self) -> Self {
        Self(format!("{}{}", self.0, path.0))
    }

    /// Returns the path of the item at `index`, counted from 0.
    pub fn item(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }
}

impl fmt::Display for JsonPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Reports whether the printed path `part` is equal to or below the printed path `path`.
pub fn is_within(part: &str, path: &str) -> bool {
    part.strip_prefix(path)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_quotes_names_that_are_not_plain() {
        let path = JsonPath::from_fields("metadata.annotations")
            .field("olm.properties")
            .item(2);
        assert_eq!(path.to_string(), ".metadata.annotations['olm.properties'][2]");
    }
}
