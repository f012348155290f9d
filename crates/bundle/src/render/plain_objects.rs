//! Bundled objects other than the ClusterServiceVersion and the CustomResourceDefinitions.

use serde_json::Value;
use windlass_object::json;

use super::{error::RenderError, serving_deployments::ServingDeployment};
use crate::{
    kinds::BundledKind,
    parse::{Bundle, Manifest},
    phase::Phase,
};

/// Renders the objects; those of namespaced kinds go to `namespace`. Skips the callers of the `serving`
/// Deployments, which are armed separately, and Services that generated ones replace.
pub(super) fn objects(
    bundle: &Bundle,
    namespace: &str,
    serving: &[ServingDeployment<'_>],
) -> Result<Vec<Value>, Vec<RenderError>> {
    let is_replaced = |manifest: &Manifest| serving.iter().any(|serving| serving.replaced == Some(manifest));
    let mut objects = Vec::new();
    let mut errors = Vec::new();
    for manifest in &bundle.others {
        let Some(kind) = BundledKind::from_kind(manifest.kind()) else {
            errors.push(RenderError::UnsupportedKind {
                kind: manifest.kind().to_owned(),
                name: manifest.name().to_owned(),
            });
            continue;
        };
        if kind.phase == Phase::Callers || is_replaced(manifest) {
            continue;
        }
        let mut object = manifest.object.clone();
        json::drop_live_fields(&mut object);
        json::set_namespace(&mut object, kind.namespaced.then_some(namespace));
        objects.push(object);
    }
    if errors.is_empty() {
        Ok(objects)
    } else {
        Err(errors)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::render::sample;

    #[test]
    fn only_namespaced_kinds_get_the_namespace() {
        let mut bundle = sample::bundle();
        for kind in ["ConfigMap", "VerticalPodAutoscaler", "PriorityClass"] {
            let object =
                json!({"kind": kind, "metadata": {"name": "a", "namespace": "there"}, "data": {"k": null}});
            bundle.others.push(sample::manifest(object));
        }
        let got: Vec<_> = objects(&bundle, "ns", &[])
            .unwrap()
            .iter()
            .map(|object| (object["metadata"]["namespace"].clone(), object["data"].clone()))
            .collect();
        let data = json!({"k": null});
        assert_eq!(
            got,
            [
                (json!("ns"), data.clone()),
                (json!("ns"), data.clone()),
                (Value::Null, data)
            ]
        );
    }

    #[test]
    fn unsupported_kinds_are_refused() {
        let mut bundle = sample::bundle();
        bundle.others = vec![sample::manifest(
            json!({"kind": "Job", "metadata": {"name": "a"}}),
        )];
        assert_eq!(
            objects(&bundle, "ns", &[]).unwrap_err()[0].to_string(),
            "bundle contains unsupported resource: Name: a, Kind: Job"
        );
    }
}
