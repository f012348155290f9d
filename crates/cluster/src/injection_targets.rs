//! Kinds of targets that InjectionTargets add.

use std::sync::Arc;

use serde_json::Value;
use thiserror::Error;
use windlass_api::{CaBundleEncoding, CaBundleReaders, InjectionTargetSpec};
use windlass_object::{names, object};
use windlass_trust::injection::{BundleReader, CaBundlePlace, Encoding, InvalidPath, KINDS, TargetKind};

use crate::kind::{Kind, kinds};

/// Why an InjectionTarget adds no kind.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidInjectionTarget {
    /// The spec is invalid.
    #[error("spec: {0}")]
    Spec(String),
    /// Some paths are invalid.
    #[error("{}", paths(.0))]
    Paths(
        /// Their indices, paths and causes.
        Vec<(usize, String, InvalidPath)>,
    ),
    /// The kind needs no InjectionTarget, or must not have one.
    #[error(
        "spec.kind: {0} may not be added: Windlass handles the CA bundles of this kind already, or reads the kind for other purposes"
    )]
    Reserved(String),
    /// Another InjectionTarget adds the kind.
    #[error("spec.kind: InjectionTarget {0} adds the same kind: delete one of them")]
    Taken(String),
}

/// Kinds that Windlass reads for other purposes than CA bundles, and so indexes by other fields.
const READ_KINDS: [Kind; 10] = [
    kinds::CERTIFICATE,
    kinds::NAMESPACE,
    kinds::SECRET,
    kinds::SERVICE,
    kinds::POD,
    kinds::ENDPOINT_SLICE,
    kinds::DEPLOYMENT,
    kinds::REPLICA_SET,
    kinds::EVENT,
    kinds::LEASE,
];

/// Returns the kinds that InjectionTargets add.
pub(crate) fn added_kinds(all: &[Arc<Value>]) -> Vec<TargetKind> {
    let added = all.iter().filter_map(|target| added_kind(target, all).ok());
    added.collect()
}

/// Returns the kind that an InjectionTarget adds. If several of `all` add the same kind, the first by name
/// does.
///
/// # Errors
///
/// When it adds none.
pub fn added_kind(target: &Value, all: &[Arc<Value>]) -> Result<TargetKind, InvalidInjectionTarget> {
    let kind = read(target)?;
    let name = |target: &Value| object::text(target, "/metadata/name").map(str::to_owned);
    let own_name = name(target);
    let earlier = all.iter().filter(|other| name(other) < own_name);
    let mut same = earlier.filter(|other| read(other).is_ok_and(|other| other.is(&kind.group, &kind.kind)));
    match same.next().and_then(|other| name(other)) {
        Some(other) => Err(InvalidInjectionTarget::Taken(other)),
        None => Ok(kind),
    }
}

/// Reads an InjectionTarget, without comparing it with others.
fn read(target: &Value) -> Result<TargetKind, InvalidInjectionTarget> {
    let spec = target.get("spec").cloned().unwrap_or_default();
    let spec: InjectionTargetSpec =
        serde_json::from_value(spec).map_err(|error| InvalidInjectionTarget::Spec(error.to_string()))?;
    let is_read = |known: &Kind| known.group_version().0 == spec.group && known.kind == spec.kind;
    let is_known = KINDS.iter().any(|known| known.is(&spec.group, &spec.kind));
    if is_known || spec.group == names::GROUP || READ_KINDS.iter().any(is_read) {
        return Err(InvalidInjectionTarget::Reserved(spec.kind));
    }
    let (mut places, mut invalid) = (Vec::new(), Vec::new());
    for (index, path) in spec.paths.into_iter().enumerate() {
        let encoding = match path.encoding {
            CaBundleEncoding::Base64 => Encoding::Base64,
            CaBundleEncoding::Pem => Encoding::Pem,
        };
        match CaBundlePlace::at(&path.path, encoding) {
            Ok(place) => places.push(place),
            Err(problem) => invalid.push((index, path.path, problem)),
        }
    }
    if !invalid.is_empty() {
        return Err(InvalidInjectionTarget::Paths(invalid));
    }
    Ok(TargetKind {
        group: spec.group.into(),
        version: spec.version.into(),
        older: &[],
        kind: spec.kind.into(),
        plural: spec.plural.into(),
        places,
        only_if: None,
        dropped_as_a_whole: None,
        reader: match spec.readers {
            CaBundleReaders::Watch => BundleReader::Watch,
            CaBundleReaders::Files => BundleReader::Files,
        },
    })
}

fn paths(invalid: &[(usize, String, InvalidPath)]) -> String {
    let problems = invalid
        .iter()
        .map(|(index, path, problem)| format!("spec.paths[{index}].path: {path:?} {problem}"));
    problems.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn injection_target(name: &str, group: &str, kind: &str, paths: &[&str]) -> Arc<Value> {
        let paths: Vec<_> = paths.iter().map(|path| json!({"path": path})).collect();
        Arc::new(json!({
            "apiVersion": names::API_VERSION, "kind": "InjectionTarget", "metadata": {"name": name},
            "spec": {"group": group, "version": "v1", "kind": kind, "plural": "things", "paths": paths},
        }))
    }

    #[test]
    fn every_kind_is_added_once() {
        let gateway = |name| injection_target(name, "example.com", "Gateway", &["/spec/caBundle"]);
        let other = injection_target("c", "other.example.com", "Gateway", &["/spec/caBundle"]);
        let all = [gateway("a"), gateway("b"), other];
        let kinds = added_kinds(&all);
        let versions: Vec<_> = kinds.iter().map(TargetKind::api_version).collect();
        assert_eq!(versions, ["example.com/v1", "other.example.com/v1"]);
        assert_eq!(
            added_kind(&all[1], &all),
            Err(InvalidInjectionTarget::Taken("a".to_owned()))
        );
        assert!(added_kind(&all[1], &all[1..]).is_ok(), "the first is deleted");
    }

    #[test]
    fn all_invalid_paths_are_reported() {
        let paths = injection_target("a", "example.com", "Gateway", &["/spec/a", "spec", "/status/a"]);
        assert_eq!(
            added_kind(&paths, &[]).unwrap_err().to_string(),
            "spec.paths[1].path: \"spec\" must be field names, each after a /, for example /spec/caBundle or \
             /webhooks/*/clientConfig/caBundle; spec.paths[2].path: \"/status/a\" must not be in apiVersion, kind, metadata or \
             status"
        );
        let error = added_kind(&json!({"spec": {"kind": 7}}), &[]).unwrap_err();
        assert!(error.to_string().starts_with("spec: "), "{error}");
    }

    #[test]
    fn built_in_kinds_are_not_added() {
        for (group, kind) in [
            ("apiextensions.k8s.io", "CustomResourceDefinition"),
            ("", "ConfigMap"),
            ("", "Secret"),
            ("apps", "Deployment"),
            (names::GROUP, "ServingCertificate"),
        ] {
            let target = injection_target("a", group, kind, &["/spec/a"]);
            assert_eq!(
                added_kind(&target, &[]),
                Err(InvalidInjectionTarget::Reserved(kind.to_owned()))
            );
        }
    }
}
