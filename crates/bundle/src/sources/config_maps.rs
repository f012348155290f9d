//! A bundle in ConfigMaps: the parts of one .tar.gz, in the order of the ConfigMaps.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use thiserror::Error;
use windlass_object::object;

/// The maximum number of archive bytes per ConfigMap. In base64 and with metadata, the ConfigMap stays below
/// the API server's limit of 1 MiB.
pub const PART: usize = 720 << 10;

/// The key of a part in `binaryData`.
const KEY: &str = "bundle.tar.gz";

/// Why ConfigMaps do not form an archive.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the message explains each field")]
pub enum AssembleError {
    /// The ConfigMap is empty.
    #[error("the ConfigMap {name} is empty: put a part of the .tar.gz in its binaryData")]
    Empty { name: String },
    /// A value is not base64.
    #[error("the ConfigMap {name}: {key} is not base64")]
    Encoding {
        name: String,
        /// The key in `binaryData` or `data`.
        key: String,
    },
}

/// Joins the parts. Each ConfigMap contains one part in `binaryData`, or several in the order of their keys;
/// parts in `data` are base64.
///
/// # Errors
///
/// If a ConfigMap contains no part, or one that is not base64.
pub fn assemble<'a>(config_maps: impl IntoIterator<Item = &'a Value>) -> Result<Vec<u8>, AssembleError> {
    let mut archive = Vec::new();
    for config_map in config_maps {
        let name = object::text(config_map, "/metadata/name").unwrap_or_default();
        let mut parts: Vec<_> = ["binaryData", "data"]
            .into_iter()
            .filter_map(|field| config_map.get(field)?.as_object())
            .flatten()
            .filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
            .collect();
        if parts.is_empty() {
            return Err(AssembleError::Empty {
                name: name.to_owned(),
            });
        }
        parts.sort_unstable();
        for (key, value) in parts {
            // Tools wrap lines in `data`.
            let value: String = value.split_whitespace().collect();
            let part = STANDARD.decode(value).map_err(|_| AssembleError::Encoding {
                name: name.to_owned(),
                key: key.to_owned(),
            })?;
            archive.extend(part);
        }
    }
    Ok(archive)
}

/// Splits an archive into the contents of ConfigMaps, in order, each with at most `size` bytes in
/// `binaryData`.
pub fn divide(archive: &[u8], size: usize) -> impl Iterator<Item = Value> {
    archive
        .chunks(size)
        .map(|part| json!({ "binaryData": { KEY: STANDARD.encode(part) } }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_the_order_of_maps_and_then_of_keys() {
        let maps = [
            json!({"metadata": {"name": "a"}, "binaryData": {"1": STANDARD.encode("b"), "0": STANDARD.encode("a")}}),
            json!({"metadata": {"name": "b"}, "data": {"part": "Yw=\n="}}),
        ];
        assert_eq!(assemble(&maps), Ok(b"abc".to_vec()));
    }

    #[test]
    fn a_part_fits_a_config_map() {
        let archive = vec![7; 2 * PART + 1];
        let sizes: Vec<_> = divide(&archive, PART).map(|map| map.to_string().len()).collect();
        assert_eq!(sizes.len(), 3);
        assert!(
            sizes.iter().all(|size| *size < (1 << 20) - (16 << 10)),
            "{sizes:?}"
        );
    }

    #[test]
    fn an_empty_map_and_bad_base64_are_named() {
        let empty = json!({"metadata": {"name": "a"}});
        assert_eq!(assemble([&empty]), Err(AssembleError::Empty { name: "a".into() }));
        let bad = json!({"metadata": {"name": "a"}, "data": {"part": "no base64!"}});
        assert_eq!(
            assemble([&bad]),
            Err(AssembleError::Encoding {
                name: "a".into(),
                key: "part".into()
            })
        );
    }
}
