//! The relevant fields of a blob.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::Value;

use crate::documents::{BlobFormat, BlobText, VALUES};

/// A blob of any schema. No field is required, since any program may add schemas.
#[derive(Debug, Default)]
pub(crate) struct RawBlob {
    pub(crate) schema: RawText,
    pub(crate) package: RawText,
    pub(crate) name: RawText,
    pub(crate) image: RawText,
    pub(crate) default_channel: RawText,
    pub(crate) description: RawText,
    /// Entries of a channel or of deprecations; absent in other blobs.
    pub(crate) entries: Value,
    /// The properties that contain the version of a bundle.
    pub(crate) versions: Vec<PackageProperty>,
}

/// A field that should be a string.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum RawText {
    #[default]
    Missing,
    Text(String),
    /// The field has another type.
    Other,
}

/// A property `olm.package`.
#[derive(Debug, Default)]
pub(crate) struct PackageProperty {
    pub(crate) package: RawText,
    pub(crate) version: RawText,
}

/// The maximum nesting of YAML: FBC has some ten levels, and each needs up to 16 KiB of stack.
const DEPTH: usize = 64;

/// The maximum number of parser events from aliases.
const ALIASED: usize = 100_000;

/// The maximum length of a string in characters; descriptions have a few thousand.
const LONGEST: usize = 64 << 10;

const PACKAGE_PROPERTY: &str = "olm.package";

impl RawBlob {
    /// Parses a document; `None` if it is empty.
    ///
    /// # Errors
    ///
    /// The first error in the document.
    pub(crate) fn parse(document: &BlobText<'_>) -> Result<Option<Self>, String> {
        match document.format {
            BlobFormat::Json => serde_json::from_slice(document.bytes)
                .map(Some)
                .map_err(|error| format!("cannot be read as JSON: {}", in_file(&error, document.line))),
            BlobFormat::Yaml => {
                let text = std::str::from_utf8(document.bytes)
                    .map_err(|error| format!("byte {} of the blob is not UTF-8", error.valid_up_to()))?;
                serde_saphyr::from_str_with_options(text, yaml_options()).map_err(|error| {
                    let message = error.without_snippet().to_string();
                    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
                    format!("cannot be read as YAML (lines are those of the blob): {message}")
                })
            }
        }
    }
}

/// Replaces the document's line in an error of `serde_json` by the line in the file.
fn in_file(error: &serde_json::Error, line: usize) -> String {
    let message = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let message = message.strip_suffix(&place).unwrap_or(&message);
    format!(
        "{message} at line {}, column {}",
        line + error.line().max(1) - 1,
        error.column()
    )
}

fn yaml_options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: DEPTH,
            flow_nesting_limit: DEPTH,
            max_events: 2 * VALUES,
            max_nodes: VALUES,
            max_documents: 2,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: ALIASED,
        },
        duplicate_keys: serde_saphyr::options::DuplicateKeyPolicy::Error,
        legacy_octal_numbers: true,
        strict_booleans: true,
        with_snippet: false,
    }
}

impl<'de> Deserialize<'de> for RawBlob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct BlobVisitor;

        impl<'de> Visitor<'de> for BlobVisitor {
            type Value = RawBlob;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a blob with a schema")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawBlob, A::Error> {
                let mut blob = RawBlob::default();
                while let Some(key) = map.next_key::<Cow<'de, str>>()? {
                    match key.as_ref() {
                        "schema" => blob.schema = map.next_value()?,
                        "package" => blob.package = map.next_value()?,
                        "name" => blob.name = map.next_value()?,
                        "image" => blob.image = map.next_value()?,
                        "defaultChannel" => blob.default_channel = map.next_value()?,
                        "description" => blob.description = map.next_value()?,
                        "entries" => blob.entries = map.next_value()?,
                        "properties" => blob.versions = map.next_value::<PackageProperties>()?.0,
                        _ => drop(map.next_value::<IgnoredAny>()?),
                    }
                }
                Ok(blob)
            }
        }

        deserializer.deserialize_map(BlobVisitor)
    }
}

impl RawText {
    /// The text; `None` if it is missing or empty.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) if !text.is_empty() => Some(text),
            _ => None,
        }
    }
}

/// Visitor methods that ignore values of other types.
macro_rules! ignore_other_values {
    ($other:expr) => {
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("any value")
        }

        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok($other)
        }

        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
            Ok($other)
        }

        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
            Ok($other)
        }

        fn visit_i128<E>(self, _: i128) -> Result<Self::Value, E> {
            Ok($other)
        }

        fn visit_u128<E>(self, _: u128) -> Result<Self::Value, E> {
            Ok($other)
        }

        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
            Ok($other)
        }

        fn visit_none<E>(self) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
    };
}

impl<'de> Deserialize<'de> for RawText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;

        impl<'de> Visitor<'de> for TextVisitor {
            type Value = RawText;

            ignore_other_values!(RawText::Other);

            fn visit_str<E>(self, text: &str) -> Result<RawText, E> {
                Ok(RawText::Text(text.chars().take(LONGEST).collect()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<RawText, A::Error> {
                while items.next_element::<IgnoredAny>()?.is_some() {}
                Ok(RawText::Other)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawText, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(RawText::Other)
            }
        }

        deserializer.deserialize_any(TextVisitor)
    }
}

/// The properties `olm.package` in a list of properties.
#[derive(Default)]
struct PackageProperties(Vec<PackageProperty>);

impl<'de> Deserialize<'de> for PackageProperties {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ListVisitor;

        impl<'de> Visitor<'de> for ListVisitor {
            type Value = PackageProperties;

            ignore_other_values!(PackageProperties::default());

            fn visit_str<E>(self, _: &str) -> Result<PackageProperties, E> {
                Ok(PackageProperties::default())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<PackageProperties, A::Error> {
                let mut found = Vec::new();
                while let Some(property) = items.next_element::<AnyProperty>()? {
                    if property.kind.text() == Some(PACKAGE_PROPERTY) {
                        found.push(property.value);
                    }
                }
                Ok(PackageProperties(found))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PackageProperties, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(PackageProperties::default())
            }
        }

        deserializer.deserialize_any(ListVisitor)
    }
}

/// A property of any type, with the fields of an `olm.package`.
#[derive(Default)]
struct AnyProperty {
    kind: RawText,
    value: PackageProperty,
}

/// Reads two fields of an object and skips the rest.
macro_rules! object_of {
    ($type:ty, $($key:literal => $field:ident),+) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct ObjectVisitor;

                impl<'de> Visitor<'de> for ObjectVisitor {
                    type Value = $type;

                    ignore_other_values!(<$type>::default());

                    fn visit_str<E>(self, _: &str) -> Result<$type, E> {
                        Ok(<$type>::default())
                    }

                    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<$type, A::Error> {
                        while items.next_element::<IgnoredAny>()?.is_some() {}
                        Ok(<$type>::default())
                    }

                    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<$type, A::Error> {
                        let mut object = <$type>::default();
                        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
                            match key.as_ref() {
                                $($key => object.$field = map.next_value()?,)+
                                _ => drop(map.next_value::<IgnoredAny>()?),
                            }
                        }
                        Ok(object)
                    }
                }

                deserializer.deserialize_any(ObjectVisitor)
            }
        }
    };
}

object_of!(AnyProperty, "type" => kind, "value" => value);
object_of!(PackageProperty, "packageName" => package, "version" => version);
