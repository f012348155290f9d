//! A record as a ConfigMap.

use std::io::{self, Read, Write};

use base64::{Engine, engine::general_purpose::STANDARD};
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use thiserror::Error;
use windlass_api::{BundleStatus, Source};
use windlass_cluster::kinds;
use windlass_object::{names, object};

use super::record::RevisionRecord;

/// Why a record cannot be written or read.
#[derive(Debug, Error)]
pub enum RecordError {
    /// It does not fit a ConfigMap.
    #[error(
        "revision {number} with {objects} objects is too large to be recorded: {size} bytes compressed, limit {LARGEST}; split the bundle, or shorten spec.config"
    )]
    TooLarge {
        /// The number of the revision.
        number: i64,
        /// How many objects it has.
        objects: usize,
        /// Its size.
        size: usize,
    },
    /// It cannot be written as JSON.
    #[error("revision {number} cannot be recorded")]
    Encode {
        /// The number of the revision.
        number: i64,
        /// What is wrong.
        #[source]
        cause: io::Error,
    },
    /// The ConfigMap holds something else.
    #[error("the ConfigMap {config_map} is not a revision record: {problem}; delete it")]
    Decode {
        /// Its name.
        config_map: String,
        /// What is wrong with it.
        problem: String,
    },
}

/// What everybody can read of a record.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    revision: i64,
    #[serde(flatten)]
    bundle: BundleStatus,
    source: Source,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    image: Option<String>,
    config_maps: Vec<String>,
    installed: bool,
}

/// The key of the summary in `data`.
const SUMMARY: &str = "revision.json";

/// The keys in `binaryData`, each JSON by gzip.
const SETTINGS: &str = "settings.json.gz";
const INVENTORY: &str = "inventory.json.gz";

/// How many bytes a record may have: with base64 and metadata it stays below 1 MiB, where the API server draws the line.
const LARGEST: usize = 720 << 10;

/// How many bytes a part of a record may have when it is unpacked.
const MOST_UNPACKED: u64 = 64 << 20;

/// The record of a BundleDeployment with this name and uid, as a ConfigMap in `namespace`, the operator's. It goes with its
/// BundleDeployment.
///
/// # Errors
///
/// When it is too large.
pub fn encode(
    record: &RevisionRecord,
    deployment: &str,
    uid: &str,
    namespace: &str,
) -> Result<Value, RecordError> {
    let number = record.number;
    let failed = |cause| RecordError::Encode { number, cause };
    let summary = Summary {
        revision: number,
        bundle: record.bundle.clone(),
        source: record.source.clone(),
        image: record.image.clone(),
        config_maps: record.config_maps.clone(),
        installed: record.installed,
    };
    let summary = serde_json::to_string(&summary).map_err(|error| failed(error.into()))?;
    let settings = packed(&record.settings).map_err(failed)?;
    let inventory = packed(&record.inventory).map_err(failed)?;
    let size = summary.len() + settings.len() + inventory.len();
    if size > LARGEST {
        let objects = record.inventory.items().len();
        return Err(RecordError::TooLarge {
            number,
            objects,
            size,
        });
    }
    Ok(json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": record_name(deployment, number),
            "namespace": namespace,
            "labels": { names::REVISION_OF: deployment },
            "ownerReferences": [owner_reference(deployment, uid)],
        },
        "data": { SUMMARY: summary },
        "binaryData": { SETTINGS: STANDARD.encode(settings), INVENTORY: STANDARD.encode(inventory) },
    }))
}

/// The name of the ConfigMap with the record of a revision.
pub fn record_name(deployment: &str, number: i64) -> String {
    format!("{deployment}-revision-{number}")
}

/// Lets an object go with the BundleDeployment of this name and uid.
pub(crate) fn owner_reference(deployment: &str, uid: &str) -> Value {
    json!({
        "apiVersion": names::API_VERSION,
        "kind": kinds::BUNDLE_DEPLOYMENT.kind,
        "name": deployment,
        "uid": uid,
    })
}

/// The record that a ConfigMap holds.
///
/// # Errors
///
/// When it holds something else.
pub fn decode(config_map: &Value) -> Result<RevisionRecord, RecordError> {
    let failed = |problem| RecordError::Decode {
        config_map: object::text(config_map, "/metadata/name")
            .unwrap_or_default()
            .to_owned(),
        problem,
    };
    let Summary {
        revision,
        bundle,
        source,
        image,
        config_maps,
        installed,
    } = summary(config_map).map_err(failed)?;
    Ok(RevisionRecord {
        number: revision,
        bundle,
        source,
        image,
        settings: unpacked(config_map, SETTINGS).map_err(failed)?,
        config_maps,
        installed,
        inventory: unpacked(config_map, INVENTORY).map_err(failed)?,
    })
}

fn summary(config_map: &Value) -> Result<Summary, String> {
    let text = config_map
        .get("data")
        .and_then(|data| data.get(SUMMARY)?.as_str());
    let text = text.ok_or_else(|| format!("it has no {SUMMARY}"))?;
    serde_json::from_str(text).map_err(|error| format!("{SUMMARY}: {error}"))
}

fn packed<T: Serialize>(part: &T) -> Result<Vec<u8>, io::Error> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&serde_json::to_vec(part)?)?;
    encoder.finish()
}

fn unpacked<T: DeserializeOwned>(config_map: &Value, key: &str) -> Result<T, String> {
    let encoded = config_map
        .get("binaryData")
        .and_then(|data| data.get(key)?.as_str())
        .ok_or_else(|| format!("it has no {key}"))?;
    let packed = STANDARD
        .decode(encoded)
        .map_err(|_| format!("{key} is not base64"))?;
    let mut part = Vec::new();
    GzDecoder::new(packed.as_slice())
        .take(MOST_UNPACKED)
        .read_to_end(&mut part)
        .map_err(|error| format!("{key}: {error}"))?;
    serde_json::from_slice(&part).map_err(|error| format!("{key}: {error}"))
}
