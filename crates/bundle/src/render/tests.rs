//! Tests of complete rendered bundles.

use proptest::{prelude::*, sample::subsequence};
use serde_json::{Value, json};
use windlass_object::{GoDuration, object};

use super::{rendered::*, *};
use crate::render::sample::{bundle, keys, manifest, options};

#[test]
fn parts_of_different_phases_are_separate() {
    let rendered = render(&bundle(), &options("ns")).unwrap();
    let role = object::text(&rendered.objects[1], "/metadata/name")
        .unwrap()
        .to_owned();
    assert_eq!(
        keys(&rendered.objects),
        [
            "ServiceAccount ns/widgets".to_owned(),
            format!("ClusterRole {role}"),
            format!("ClusterRoleBinding {role}"),
            "CustomResourceDefinition widgets.example.com".to_owned(),
            "Service ns/widgets-controller-service".to_owned(),
            "ServingCertificate ns/widgets-controller-service".to_owned(),
            "Deployment ns/widgets.controller".to_owned(),
        ]
    );
    assert_eq!(
        keys(&rendered.callers),
        [
            "ValidatingWebhookConfiguration vwidget.example.com",
            "MutatingWebhookConfiguration mwidget.example.com"
        ]
    );
    assert_eq!(
        rendered.certificates,
        [WebhookCertificate {
            service: "widgets-controller-service".into(),
            green: "widgets-controller-service-green".into(),
            secret: "widgets-controller-service-cert".into(),
            deployment: "widgets.controller".into(),
        }]
    );
    assert_eq!(rendered.conversions.len(), 1);
    assert!(rendered.objects[3]["spec"].get("conversion").is_none());

    let manifests = rendered.manifests();
    assert_eq!(manifests.len(), 9);
    assert_eq!(
        manifests[3]["spec"]["conversion"],
        rendered.conversions[0].stanza(None)
    );
}

#[test]
fn a_serving_certificate_names_its_services() {
    let mut options = options("ns");
    let certificate =
        |options: &InstallOptions| render(&bundle(), options).unwrap().objects[5]["spec"].clone();
    assert_eq!(
        certificate(&options),
        json!({
            "serviceName": "widgets-controller-service",
            "secretName": "widgets-controller-service-cert",
            "dnsNames": ["widgets-controller-service-green.ns.svc"],
            "reload": {"strategy": "Auto", "deploymentName": "widgets.controller"},
        })
    );
    let durations = Durations {
        certificate: GoDuration::from_hours(24),
        ca: GoDuration::from_hours(72),
    };
    options.certificates = CertificateProvider::Windlass {
        durations: Some(durations),
    };
    assert_eq!(certificate(&options)["duration"], "24h");
    assert_eq!(certificate(&options)["ca"], json!({"duration": "72h"}));
}

#[test]
fn without_certificates_the_output_contains_nothing_of_windlass() {
    let options = InstallOptions {
        certificates: CertificateProvider::None,
        ..options("ns")
    };
    let rendered = render(&bundle(), &options).unwrap();
    assert!(rendered.certificates.is_empty());
    let manifests = rendered.manifests();
    assert_eq!(manifests[3]["spec"]["conversion"]["strategy"], "Webhook");
    let text = Value::from(manifests).to_string();
    for trace in [
        "windlass",
        "ServingCertificate",
        "Secret",
        "volume",
        "caBundle",
        "preStop",
        "maxUnavailable",
    ] {
        assert!(!text.contains(trace), "{trace}");
    }
}

#[test]
fn all_errors_are_reported_at_once() {
    let mut bundle = bundle();
    bundle.crds[0].object["spec"]["preserveUnknownFields"] = json!(true);
    bundle.others = vec![
        manifest(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}})),
        manifest(json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "b"}})),
    ];
    bundle.csv.object["spec"]["webhookdefinitions"][1]["targetPort"] = json!(1);
    let options = InstallOptions {
        watch_namespaces: vec!["other".into()],
        ..options("ns")
    };
    let errors: Vec<_> = render(&bundle, &options)
        .unwrap_err()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        errors,
        [
            "invalid option(s): invalid target namespaces [other]: supported install modes [AllNamespaces] do not support target namespaces [other]",
            "custom resource definition 'widgets.example.com' must have .spec.preserveUnknownFields set to false to let API Server call webhook to do the conversion",
            "bundle contains unsupported resource: Name: a, Kind: Pod",
            "webhook definitions of deployment 'widgets.controller' send port 443 to several target ports [9443 1]",
        ]
    );
}

#[test]
fn an_operator_with_its_own_conversions_keeps_those_of_the_manifests() {
    let mut bundle = bundle();
    let stanza = json!({"strategy": "Webhook", "webhook": {
        "clientConfig": {"service": {"namespace": "own", "name": "webhook", "path": "/convert"}},
        "conversionReviewVersions": ["v1"],
    }});
    bundle.crds[0].object["spec"]["conversion"] = stanza.clone();
    let options = InstallOptions {
        conversion: ConversionMode::External,
        ..options("ns")
    };
    let rendered = render(&bundle, &options).unwrap();
    assert_eq!(rendered.conversions, []);
    let crd = &rendered.objects[3];
    assert!(crd["spec"].get("conversion").is_none());
    assert!(crd["metadata"].get("annotations").is_none());
    assert_eq!(
        rendered.self_managed,
        Some([("widgets.example.com".to_owned(), stanza.clone())].into())
    );
    assert_eq!(rendered.manifests()[3]["spec"]["conversion"], stanza);
}

#[test]
fn a_webhook_may_match_secrets_outside_of_its_namespace() {
    let mut bundle = bundle();
    bundle.csv.object["spec"]["installModes"] = json!([
        {"type": "AllNamespaces", "supported": true}, {"type": "SingleNamespace", "supported": true},
        {"type": "OwnNamespace", "supported": true},
    ]);
    bundle.csv.object["spec"]["webhookdefinitions"][2]["rules"] =
        json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["secrets"]}]);
    let errors = |watched: &[&str]| {
        let options = InstallOptions {
            watch_namespaces: watched.iter().map(|name| (*name).to_owned()).collect(),
            ..options("ns")
        };
        let errors = render(&bundle, &options).err().unwrap_or_default();
        errors.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let refused = "webhook 'vwidget.example.com' blocks itself: with failurePolicy Fail it matches CREATE of secrets, \
                   which its own bundle needs to start again: exclude these objects with objectSelector, or set \
                   failurePolicy: Ignore; to install it anyway, use --allow-blocking-webhooks, or \
                   spec.allowBlockingWebhooks; or let the operator watch other namespaces than its own \
                   (--watch-namespace NS)";
    assert_eq!(errors(&[]), [refused]);
    assert_eq!(errors(&["ns"]), [refused]);
    assert_eq!(errors(&["other"]), [""; 0]);
    let allowed = InstallOptions {
        blocking_webhooks: true,
        ..options("ns")
    };
    assert!(render(&bundle, &allowed).is_ok());
}

#[test]
fn duplicate_objects_are_refused() {
    let mut bundle = bundle();
    for name in ["widgets-controller-service", "widgets-controller-service-green"] {
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}});
        bundle.others = vec![manifest(service)];
        let errors = render(&bundle, &options("ns")).unwrap_err();
        let expected = format!("duplicate Service ns/{name}:");
        assert!(errors[0].to_string().starts_with(&expected), "{errors:?}");
    }
    // Without certificates there is no second Service.
    let alone = InstallOptions {
        certificates: CertificateProvider::None,
        ..options("ns")
    };
    assert!(render(&bundle, &alone).is_ok());
}

/// Values of every type, to replace other values.
fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        Just(json!("text")),
        Just(json!(0)),
        Just(json!([])),
        Just(json!([3])),
        Just(json!({})),
        Just(json!({"name": {}})),
    ]
}

/// JSON pointers into the sample's ClusterServiceVersion.
const PLACES: [&str; 12] = [
    "/metadata/name",
    "/metadata/annotations",
    "/spec/installModes",
    "/spec/install/spec/deployments/0/name",
    "/spec/install/spec/deployments/0/label",
    "/spec/install/spec/deployments/0/spec/selector",
    "/spec/install/spec/deployments/0/spec/template/metadata",
    "/spec/install/spec/deployments/0/spec/template/spec/containers",
    "/spec/install/spec/clusterPermissions/0/rules",
    "/spec/webhookdefinitions/0/targetPort",
    "/spec/webhookdefinitions/0/conversionCRDs",
    "/spec/webhookdefinitions/2",
];

proptest! {
    #[test]
    fn rendering_is_deterministic_and_never_panics(
        places in subsequence(PLACES.to_vec(), 0..=3),
        values in proptest::collection::vec(any_value(), 3),
    ) {
        let mut bundle = bundle();
        for (place, value) in places.iter().zip(values) {
            if let Some(found) = bundle.csv.object.pointer_mut(place) {
                *found = value;
            }
        }
        let options = options("ns");
        prop_assert_eq!(render(&bundle, &options), render(&bundle, &options));
    }
}
