//! Helm releases in the format of its storage driver for Secrets (helm.sh/helm/v3 pkg/storage/driver): one
//! Secret per revision, which holds base64 of gzip of JSON. The driver lists them by the label `owner=helm`.

use std::io::Read;

use base64::{Engine, engine::general_purpose::STANDARD};
use flate2::read::GzDecoder;
use serde_json::Value;
use thiserror::Error;
use windlass_object::{json::set_namespace, object, yaml};

/// The label by which Helm lists its Secrets, and its value.
pub const OWNER: (&str, &str) = ("owner", "helm");

/// The value of the label that hides a release from Helm.
const HIDDEN_OWNER: &str = "windlass-adoption";

/// The type of the Secrets.
const TYPE: &str = "helm.sh/release.v1";

/// The maximum size of an unpacked release.
const MAX_UNPACKED: u64 = 32 << 20;

/// A deployed Helm release, read from its Secret.
#[derive(Clone, Debug, PartialEq)]
pub struct HelmRelease {
    /// Number of the deployed revision.
    pub revision: u64,
    /// The objects in the release's manifest. Namespaced objects without a namespace belong to that of the
    /// release.
    pub objects: Vec<Value>,
}

/// Why a release cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the message explains each field")]
pub enum HelmReleaseError {
    /// The release has no Secret.
    #[error("no release of that name and namespace: to list all, run helm list --all-namespaces")]
    Absent,
    /// No revision is deployed.
    #[error("no revision of the release is deployed: to list them, run helm history")]
    NotDeployed,
    /// A Helm operation is running or was interrupted.
    #[error("revision {revision} of the release is {status}: wait for helm, or roll it back")]
    Pending {
        /// The newest revision.
        revision: u64,
        /// The status that Helm reports.
        status: String,
    },
    /// The revision cannot be read.
    #[error("revision {revision} of the release cannot be read: {problem}")]
    Garbage { revision: u64, problem: String },
}

impl HelmRelease {
    /// Reads the deployed revision from the Secrets of a release.
    ///
    /// # Errors
    ///
    /// [`HelmReleaseError`].
    pub fn deployed(secrets: &[Value], namespace: &str) -> Result<Self, HelmReleaseError> {
        let mut revisions: Vec<_> = secrets
            .iter()
            .filter(|secret| object::text(secret, "/type") == Some(TYPE))
            .filter_map(|secret| Some((object::label(secret, "version")?.parse::<u64>().ok()?, secret)))
            .collect();
        revisions.sort_by_key(|(revision, _)| *revision);
        let status = |secret: &Value| object::label(secret, "status").unwrap_or_default().to_owned();
        let (newest, last) = revisions.last().ok_or(HelmReleaseError::Absent)?;
        if status(last).starts_with("pending") || status(last) == "uninstalling" {
            return Err(HelmReleaseError::Pending {
                revision: *newest,
                status: status(last),
            });
        }
        let (revision, secret) = revisions
            .iter()
            .rfind(|(_, secret)| status(secret) == "deployed")
            .ok_or(HelmReleaseError::NotDeployed)?;
        let objects = objects(secret, namespace).map_err(|problem| HelmReleaseError::Garbage {
            revision: *revision,
            problem,
        })?;
        Ok(Self {
            revision: *revision,
            objects,
        })
    }
}

/// Returns the value of the label [`OWNER`] for a release that is hidden from Helm, or visible to it.
pub fn owner_label_value(is_hidden: bool) -> &'static str {
    if is_hidden { HIDDEN_OWNER } else { OWNER.1 }
}

fn objects(secret: &Value, namespace: &str) -> Result<Vec<Value>, String> {
    let encoded = object::data(secret, "release").ok_or("its Secret has no release")?;
    let packed = STANDARD
        .decode(encoded.trim_ascii())
        .map_err(|error| format!("invalid base64: {error}"))?;
    let release: Value =
        serde_json::from_slice(&unpacked(&packed)?).map_err(|error| format!("invalid JSON: {error}"))?;
    let manifest = object::text(&release, "/manifest").ok_or("it has no manifest")?;
    let documents =
        yaml::documents(manifest.as_bytes()).map_err(|problem| format!("its manifest {problem}"))?;
    let mut objects = Vec::new();
    for document in documents {
        match document.get("items") {
            Some(Value::Array(items)) if object::text(&document, "/kind").is_some_and(is_list) => {
                objects.extend(items.iter().cloned());
            }
            _ => objects.push(document),
        }
    }
    for object in &mut objects {
        if object::text(object, "/metadata/namespace").is_none() {
            set_namespace(object, Some(namespace));
        }
    }
    Ok(objects)
}

fn is_list(kind: &str) -> bool {
    kind.ends_with("List")
}

/// Releases of old Helm versions are not packed.
fn unpacked(packed: &[u8]) -> Result<Vec<u8>, String> {
    if !packed.starts_with(&[0x1f, 0x8b]) {
        return Ok(packed.to_vec());
    }
    let mut unpacked = Vec::new();
    GzDecoder::new(packed)
        .take(MAX_UNPACKED + 1)
        .read_to_end(&mut unpacked)
        .map_err(|error| format!("it cannot be unpacked: {error}"))?;
    if unpacked.len() as u64 > MAX_UNPACKED {
        return Err(format!("it has more than {} MiB", MAX_UNPACKED >> 20));
    }
    Ok(unpacked)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, write::GzEncoder};
    use serde_json::json;

    use super::*;

    fn packed(content: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    fn secret(revision: u64, status: &str, release: &[u8]) -> Value {
        let encoded = STANDARD.encode(STANDARD.encode(release));
        json!({"type": TYPE, "metadata": {"labels": {"version": revision.to_string(), "status": status}},
            "data": {"release": encoded}})
    }

    fn release(manifest: &str) -> Vec<u8> {
        packed(json!({"manifest": manifest}).to_string().as_bytes())
    }

    #[test]
    fn the_deployed_revision_is_read_and_lists_are_flattened() {
        let manifest = "---\n# Source: a.yaml\nkind: Service\nmetadata: {name: a}\n---\nkind: ConfigMapList\nitems:\n- kind: ConfigMap\n  metadata: {name: b, namespace: m}\n";
        let secrets = [
            secret(2, "superseded", b"garbage"),
            secret(10, "deployed", &release(manifest)),
            secret(9, "superseded", b"garbage"),
            secret(11, "failed", b"garbage"),
        ];
        let read = HelmRelease::deployed(&secrets, "n").unwrap();
        assert_eq!(read.revision, 10);
        assert_eq!(
            read.objects,
            [
                json!({"kind": "Service", "metadata": {"name": "a", "namespace": "n"}}),
                json!({"kind": "ConfigMap", "metadata": {"name": "b", "namespace": "m"}}),
            ]
        );
        let plain = json!({"manifest": ""}).to_string();
        let read = HelmRelease::deployed(&[secret(1, "deployed", plain.as_bytes())], "n");
        assert_eq!(read.unwrap().objects, [json!(null); 0]);
    }

    #[test]
    fn errors_are_one_line() {
        let bomb = packed(&vec![b' '; usize::try_from(MAX_UNPACKED).unwrap() + 2]);
        let mut other = secret(1, "deployed", &release(""));
        other["type"] = "Opaque".into();
        for (secrets, expected) in [
            (vec![], "no release of that name"),
            (vec![other], "no release of that name"),
            (
                vec![secret(1, "failed", b"")],
                "no revision of the release is deployed",
            ),
            (
                vec![
                    secret(1, "deployed", &release("")),
                    secret(2, "pending-upgrade", b""),
                ],
                "revision 2 of the release is pending-upgrade",
            ),
            (
                vec![secret(3, "deployed", b"\x1f\x8bgarbage")],
                "cannot be unpacked",
            ),
            (
                vec![secret(3, "deployed", b"garbage")],
                "revision 3 of the release cannot be read: invalid JSON",
            ),
            (vec![secret(3, "deployed", &bomb)], "more than 32 MiB"),
            (vec![secret(3, "deployed", &release("a: ["))], "its manifest"),
            (vec![secret(3, "deployed", &packed(b"{}"))], "it has no manifest"),
        ] {
            let refused = HelmRelease::deployed(&secrets, "n").unwrap_err().to_string();
            assert!(refused.contains(expected), "{refused}");
            assert!(!refused.contains('\n'), "{refused}");
        }
    }
}
