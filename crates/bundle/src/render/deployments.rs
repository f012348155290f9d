//! Deployments, from the install strategy of a ClusterServiceVersion.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use windlass_object::json;

use super::{
    certificates,
    install_modes::TargetNamespaces,
    options::{CertificateProvider, InstallOptions},
    rollout,
    serving_deployments::ServingDeployment,
    termination,
};
use crate::parse::{Bundle, ClusterServiceVersion, DeploymentSpec};

/// Annotation of pods: the namespaces to watch, comma-separated, empty for all.
const TARGET_NAMESPACES: &str = "olm.targetNamespaces";

/// Annotation of pods: the namespace of the operator.
const OPERATOR_NAMESPACE: &str = "olm.operatorNamespace";

/// Renders the Deployments; those that serve webhooks mount their certificates.
pub(super) fn deployments(
    bundle: &Bundle,
    serving: &[ServingDeployment<'_>],
    targets: &TargetNamespaces,
    options: &InstallOptions,
) -> Vec<Value> {
    let csv = bundle.csv();
    csv.deployments()
        .map(|written| {
            let mut deployment = deployment(csv, written, targets, &options.namespace);
            let serving = serving
                .iter()
                .find(|serving| serving.deployment.name() == written.name())
                .filter(|_| matches!(options.certificates, CertificateProvider::Windlass { .. }));
            if let Some(serving) = serving {
                let pod_spec = json::fields(&mut deployment, &["spec", "template", "spec"]);
                certificates::mount(pod_spec, &serving.secret);
            }
            options.config.apply(&mut deployment);
            if let Some(serving) = serving {
                options.config.scale(&mut deployment);
                rollout::add_rollout_settings(&mut deployment, serving, options.config.serving);
            }
            if matches!(options.certificates, CertificateProvider::Windlass { .. }) {
                termination::fall_back_to_logs(&mut deployment);
            }
            deployment
        })
        .collect()
}

fn deployment(
    csv: ClusterServiceVersion<'_>,
    written: DeploymentSpec<'_>,
    targets: &TargetNamespaces,
    namespace: &str,
) -> Value {
    let mut spec = written.spec().cloned().unwrap_or_default();
    json::drop_nulls(&mut spec);
    json::fields(&mut spec, &[]).insert("revisionHistoryLimit".into(), 1.into());

    let template = json::fields(&mut spec, &["template", "metadata"]);
    let mut annotations: BTreeMap<String, Value> = csv
        .annotations()
        .map(|(name, value)| (name.to_owned(), value.into()))
        .collect();
    if let Some(Value::Object(own)) = template.get("annotations") {
        annotations.extend(own.clone());
    }
    annotations.insert(TARGET_NAMESPACES.into(), targets.annotation().into());
    annotations.insert(OPERATOR_NAMESPACE.into(), namespace.into());
    template.insert(
        "annotations".into(),
        annotations.into_iter().collect::<Map<_, _>>().into(),
    );

    let mut metadata = json!({"name": written.name(), "namespace": namespace});
    if let Some(labels) = written.labels().filter(|labels| !labels.is_null()) {
        metadata["labels"] = labels.clone();
    }
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::sample;

    fn rendered(bundle: &Bundle, targets: &TargetNamespaces, certificates: CertificateProvider) -> Value {
        let options = InstallOptions {
            certificates,
            ..sample::options("ns")
        };
        deployments(bundle, &ServingDeployment::all(bundle), targets, &options).remove(0)
    }

    #[test]
    fn pods_get_the_annotations_of_the_bundle_but_keep_their_own() {
        let mut bundle = sample::bundle();
        bundle.csv.object["metadata"]["annotations"] =
            json!({"a": "csv", "b": "csv", "olm.targetNamespaces": "csv"});
        bundle.csv.object["spec"]["install"]["spec"]["deployments"][0]["spec"]["template"]["metadata"] =
            json!({"annotations": {"b": "own"}, "creationTimestamp": null});
        let targets = TargetNamespaces::These(vec!["x".into(), "y".into()]);
        let deployment = rendered(&bundle, &targets, CertificateProvider::None);
        assert_eq!(
            deployment["spec"]["template"]["metadata"],
            json!({"annotations": {
                "a": "csv", "b": "own", "olm.operatorNamespace": "ns", "olm.targetNamespaces": "x,y"
            }})
        );
        assert_eq!(
            deployment["metadata"],
            json!({"name": "widgets.controller", "namespace": "ns", "labels": {"app": "widgets"}})
        );
        assert_eq!(deployment["spec"]["revisionHistoryLimit"], 1);
    }

    #[test]
    fn without_certificates_nothing_is_added_for_serving() {
        let bundle = sample::bundle();
        let deployment = rendered(&bundle, &TargetNamespaces::All, CertificateProvider::None);
        let written = bundle
            .csv()
            .deployments()
            .next()
            .and_then(DeploymentSpec::spec)
            .unwrap();
        assert_eq!(
            deployment["spec"]["template"]["spec"],
            written["template"]["spec"]
        );
        assert!(deployment["spec"].get("strategy").is_none());

        let serving = rendered(&bundle, &TargetNamespaces::All, CertificateProvider::default());
        assert_eq!(
            serving["spec"]["template"]["spec"]["volumes"][0]["name"],
            "webhook-cert"
        );
        assert_eq!(serving["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"], 0);
    }

    #[test]
    fn an_invalid_deployment_does_not_panic() {
        let mut bundle = sample::bundle();
        for spec in [
            json!("text"),
            json!({"template": 3}),
            json!({"template": {"spec": [], "metadata": ""}}),
        ] {
            bundle.csv.object["spec"]["install"]["spec"]["deployments"][0]["spec"] = spec;
            rendered(&bundle, &TargetNamespaces::All, CertificateProvider::default());
        }
    }
}
