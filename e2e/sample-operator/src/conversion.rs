//! Lossless conversion of the sample resources: only the field and the type of the size differ between
//! versions.

use serde_json::{Map, Value, json};

use crate::args::SampleVersion;

/// The group of the sample resources.
const GROUP: &str = "sample.windlass.dev";

/// The kinds of the sample resources.
const KINDS: [&str; 2] = ["Widget", "Gadget"];

/// Converts objects between the versions that this release supports.
#[derive(Clone, Debug)]
pub(crate) struct Converter {
    /// The versions of the sample resources that this release supports.
    pub(crate) versions: Vec<SampleVersion>,
    /// Fault: keep the version of every object.
    pub(crate) wrong_version: bool,
    /// Fault: remove the size.
    pub(crate) lose_field: bool,
}

/// Why an object cannot be converted.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ConversionError {
    /// This release does not support the version; a later release may.
    #[error("this release does not support {0}")]
    UnknownVersion(String),
    /// The desired version is not one of the object's group.
    #[error("cannot convert {from:?} to {to:?}")]
    OtherGroup { from: String, to: String },
    /// The size does not have the type of its version.
    #[error("{field} is not {expected}")]
    Size {
        field: &'static str,
        expected: &'static str,
    },
}

impl Converter {
    /// Returns the object in another version. For other kinds, only `apiVersion` changes.
    pub(crate) fn convert(&self, object: &Value, desired: &str) -> Result<Value, ConversionError> {
        let mut converted = object.clone();
        if self.wrong_version {
            return Ok(converted);
        }
        let from = object["apiVersion"].as_str().unwrap_or_default();
        if group(from) != group(desired) || !object.is_object() {
            return Err(ConversionError::OtherGroup {
                from: from.to_owned(),
                to: desired.to_owned(),
            });
        }
        if is_sample(object) {
            let (from, to) = (self.supported_version(from)?, self.supported_version(desired)?);
            if let Some(spec) = converted.get_mut("spec").and_then(Value::as_object_mut) {
                let size = take_size(spec, from)?;
                if let Some(size) = size.filter(|_| !self.lose_field) {
                    put_size(spec, to, size);
                }
            }
        }
        converted["apiVersion"] = json!(desired);
        Ok(converted)
    }

    fn supported_version(&self, api_version: &str) -> Result<SampleVersion, ConversionError> {
        version(api_version)
            .filter(|version| self.versions.contains(version))
            .ok_or_else(|| ConversionError::UnknownVersion(api_version.to_owned()))
    }
}

/// Reports whether an object is a Widget or a Gadget.
pub(crate) fn is_sample(object: &Value) -> bool {
    let kind = object["kind"].as_str().unwrap_or_default();
    group(object["apiVersion"].as_str().unwrap_or_default()) == GROUP && KINDS.contains(&kind)
}

/// Returns the size of a Widget or a Gadget, if it is present and valid in its version.
pub(crate) fn size(object: &Value) -> Option<i64> {
    let version = object["apiVersion"].as_str().and_then(version)?;
    let spec = object["spec"].as_object().filter(|_| is_sample(object))?;
    take_size(&mut spec.clone(), version).ok().flatten()
}

fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

fn version(api_version: &str) -> Option<SampleVersion> {
    SampleVersion::named(api_version.split_once('/')?.1)
}

/// Removes the size from a spec and returns it.
fn take_size(spec: &mut Map<String, Value>, version: SampleVersion) -> Result<Option<i64>, ConversionError> {
    let integer = |field| ConversionError::Size {
        field,
        expected: "an integer",
    };
    match version {
        SampleVersion::V1 => match spec.shift_remove("size") {
            None => Ok(None),
            Some(size) => size.as_i64().map(Some).ok_or_else(|| integer("spec.size")),
        },
        SampleVersion::V1beta1 => match spec.shift_remove("width") {
            None => Ok(None),
            Some(width) => width
                .as_str()
                .and_then(|width| width.parse().ok())
                .map(Some)
                .ok_or(ConversionError::Size {
                    field: "spec.width",
                    expected: "an integer in a string",
                }),
        },
        SampleVersion::V2 => {
            let Some(dimensions) = spec.get_mut("dimensions") else {
                return Ok(None);
            };
            let fields = dimensions.as_object_mut().ok_or(ConversionError::Size {
                field: "spec.dimensions",
                expected: "an object",
            })?;
            let size = fields.shift_remove("size");
            if fields.is_empty() && size.is_some() {
                spec.shift_remove("dimensions");
            }
            match size {
                None => Ok(None),
                Some(size) => size
                    .as_i64()
                    .map(Some)
                    .ok_or_else(|| integer("spec.dimensions.size")),
            }
        }
    }
}

/// Adds the size in the field of a version.
fn put_size(spec: &mut Map<String, Value>, version: SampleVersion, size: i64) {
    match version {
        SampleVersion::V1 => drop(spec.insert("size".to_owned(), json!(size))),
        SampleVersion::V1beta1 => drop(spec.insert("width".to_owned(), json!(size.to_string()))),
        SampleVersion::V2 => {
            let dimensions = spec.entry("dimensions").or_insert_with(|| json!({}));
            dimensions["size"] = json!(size);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL: [SampleVersion; 3] = [SampleVersion::V1beta1, SampleVersion::V1, SampleVersion::V2];

    fn converter(versions: &[SampleVersion]) -> Converter {
        Converter {
            versions: versions.to_vec(),
            wrong_version: false,
            lose_field: false,
        }
    }

    fn named(version: SampleVersion) -> String {
        format!("{GROUP}/{}", version.name())
    }

    fn widget(spec: &Value) -> Value {
        json!({"apiVersion": "sample.windlass.dev/v1", "kind": "Widget", "spec": spec, "status": {"size": 1},
            "metadata": {"name": "w", "uid": "1", "labels": {"a": "b"}, "annotations": {"c": "d"}}})
    }

    #[test]
    fn each_version_has_its_own_size_field() {
        let at = |version| {
            converter(&ALL)
                .convert(&widget(&json!({"size": 7})), &named(version))
                .unwrap()
        };
        assert_eq!(at(SampleVersion::V1beta1)["spec"], json!({"width": "7"}));
        assert_eq!(at(SampleVersion::V1)["spec"], json!({"size": 7}));
        assert_eq!(at(SampleVersion::V2)["spec"], json!({"dimensions": {"size": 7}}));
    }

    #[test]
    fn an_unsupported_version_is_rejected() {
        let older = converter(&[SampleVersion::V1beta1, SampleVersion::V1]);
        let refused = older.convert(&widget(&json!({"size": 7})), &named(SampleVersion::V2));
        assert_eq!(
            refused,
            Err(ConversionError::UnknownVersion(
                "sample.windlass.dev/v2".to_owned()
            ))
        );
    }

    #[test]
    fn only_the_version_of_other_kinds_changes() {
        let object =
            json!({"apiVersion": "a.example.com/v1", "kind": "Thing", "metadata": {}, "spec": {"size": "x"}});
        let converted = converter(&ALL).convert(&object, "a.example.com/v9").unwrap();
        assert_eq!(converted["apiVersion"], "a.example.com/v9");
        assert_eq!(converted["spec"], object["spec"]);
        assert!(converter(&ALL).convert(&object, "b.example.com/v9").is_err());
    }

    #[test]
    fn a_malformed_size_is_reported_with_its_field() {
        let error = converter(&ALL)
            .convert(&widget(&json!({"size": "7"})), &named(SampleVersion::V2))
            .unwrap_err();
        assert_eq!(error.to_string(), "spec.size is not an integer");
    }

    #[test]
    fn faults_change_the_result() {
        let wrong = Converter {
            wrong_version: true,
            ..converter(&ALL)
        };
        let object = widget(&json!({"size": 7}));
        assert_eq!(
            wrong.convert(&object, &named(SampleVersion::V2)).unwrap()["apiVersion"],
            object["apiVersion"]
        );
        let losing = Converter {
            lose_field: true,
            ..converter(&ALL)
        };
        assert_eq!(
            losing.convert(&object, &named(SampleVersion::V2)).unwrap()["spec"],
            json!({})
        );
    }

    proptest! {
        #[test]
        fn round_trips_through_any_versions_lose_nothing(
            size in proptest::option::of(any::<i64>()),
            color in proptest::option::of("[a-z]{1,8}"),
            way in proptest::collection::vec(0_usize..3, 0..6),
        ) {
            let mut spec = json!({});
            if let Some(size) = size {
                spec["size"] = json!(size);
            }
            if let Some(color) = color {
                spec["color"] = json!(color);
            }
            let object = widget(&spec);
            let mut converted = object.clone();
            for step in way.into_iter().map(|step| ALL[step]).chain([SampleVersion::V1]) {
                converted = converter(&ALL).convert(&converted, &named(step)).unwrap();
            }
            prop_assert_eq!(converted, object);
        }
    }
}
