//! Example clusters for pages.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use windlass_object::names;
use windlass_report::{ClusterReport, ReportedTarget, Subjects};
use windlass_trust::{
    injection::{CaBundle, TargetKind},
    pki::{Certificate, sample},
    trust_bundle::TrustBundle,
};

/// A name that is markup unless it is escaped.
pub(crate) const HOSTILE: &str = "<script>alert(1)</script>\"'&";

/// Names of the example states.
pub(crate) const STATES: [&str; 4] = ["empty", "quiet", "rotating", "failing"];

/// The time of all pages.
pub(crate) fn now() -> Timestamp {
    sample::authority(1).certificate().not_after() - SignedDuration::from_hours(24 * 200)
}

/// Returns the report on a cluster in `state`.
pub(crate) fn report(state: &str) -> ClusterReport {
    let subjects = match state {
        "empty" => Subjects::default(),
        "quiet" => subjects(|number| (stable(number), ready(number))),
        "rotating" => subjects(|number| {
            if number == 1 {
                (rotating(), progressing())
            } else {
                (stable(number), ready(number))
            }
        }),
        _ => failing(),
    };
    ClusterReport::new(&subjects, "Kubernetes v1.36.0", now())
}

fn after(days: i64) -> String {
    (now() + SignedDuration::from_hours(24 * days)).to_string()
}

fn condition(condition_type: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": condition_type, "status": status, "reason": reason, "message": message, "lastTransitionTime": after(-1)})
}

fn subjects(of: impl Fn(usize) -> (Value, Value)) -> Subjects {
    let (mut certificates, mut deployments) = (Vec::new(), Vec::new());
    for number in 0..4 {
        let (certificate, deployment) = of(number);
        certificates.push(json!({
            "apiVersion": "windlass.dev/v1alpha1", "kind": "ServingCertificate",
            "metadata": {"namespace": format!("operator-{number}-system"), "name": "webhook-service", "generation": 1},
            "spec": {"serviceName": "webhook-service", "secretName": "webhook-service-cert"}, "status": certificate,
        }));
        deployments.push(json!({
            "apiVersion": "windlass.dev/v1alpha1", "kind": "BundleDeployment",
            "metadata": {"name": format!("operator-{number}"), "generation": 1},
            "spec": {"namespace": format!("operator-{number}-system"), "source": {}}, "status": deployment,
        }));
    }
    Subjects {
        bundle_deployments: serde_json::from_value(json!(deployments)).unwrap(),
        serving_certificates: serde_json::from_value(json!(certificates)).unwrap(),
        targets: (0..4).flat_map(targets).collect(),
        unread: Vec::new(),
    }
}

fn targets(number: usize) -> Vec<ReportedTarget> {
    let roots = [1, 2].map(|generation| sample::authority(generation).certificate().clone());
    let certificate = format!("operator-{number}-system/webhook-service");
    ["v", "m"]
        .map(|name| target(&format!("{name}{number}.example.com"), &certificate, Some(&roots)))
        .into()
}

fn target(name: &str, certificate: &str, roots: Option<&[Certificate]>) -> ReportedTarget {
    let trust = roots.map(|roots| CaBundle::encode(&TrustBundle::new(roots.to_vec()).unwrap()));
    let object = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name, "annotations": {names::INJECT_CA_FROM: certificate}},
        "webhooks": [{"name": name, "clientConfig": {"service": {"namespace": "a", "name": "b"}, "caBundle": trust}}],
    });
    ReportedTarget::read(&object, TargetKind::from_object(&object).unwrap()).unwrap()
}

fn stable(number: usize) -> Value {
    let renewal = i64::try_from(number).unwrap() * 15 + 10;
    json!({
        "observedGeneration": 1, "phase": "Stable", "notAfter": after(renewal + 30), "renewalTime": after(renewal),
        "ca": {"current": {"generation": 1, "notAfter": after(200)}, "next": {"generation": 2, "notAfter": after(365)}, "renewalTime": after(110)},
        "endpoints": {"ready": 2, "current": 2}, "targets": {"total": 2, "current": 2},
        "conditions": [condition("Ready", "True", "Ready", "trusted by all targets, served by all endpoints")],
    })
}

fn rotating() -> Value {
    let mut status = stable(1);
    status["phase"] = json!("Distributing");
    status["targets"] = json!({"total": 2, "current": 1});
    status["conditions"] = json!([condition(
        "Ready",
        "False",
        "WaitingForTargets",
        "1 of 2 targets trust CA 3; waiting for API servers to read it"
    )]);
    status
}

fn ready(number: usize) -> Value {
    json!({
        "observedGeneration": 1,
        "installed": {"revision": 2, "package": "operator", "name": format!("operator.v1.{number}.0"), "version": format!("1.{number}.0"), "digest": "sha256:0", "healthy": true},
        "conversions": [{"crd": "widgets.example.com", "state": "Armed"}],
        "webhooks": [{"name": "v.example.com", "type": "ValidatingAdmissionWebhook", "state": "Armed"}],
        "conditions": [condition("Available", "True", "Available", ""), condition("Armed", "True", "Armed", ""),
            condition("Ready", "True", "Ready", "installed, available and armed")],
    })
}

fn progressing() -> Value {
    let mut status = ready(1);
    status["conditions"] = json!([
        condition("Progressing", "True", "WaitingForPods", ""),
        condition(
            "Ready",
            "False",
            "WaitingForPods",
            "waiting for Deployment operator-1-system/controller-manager: 1 of 2 new pods are ready"
        )
    ]);
    status
}

fn failing() -> Subjects {
    let mut subjects = subjects(|number| match number {
        0 => {
            let mut status = stable(0);
            (status["notAfter"], status["renewalTime"]) = (json!(after(-1)), json!(after(-30)));
            (status, ready(0))
        }
        1 => {
            let mut deployment = ready(1);
            deployment["conditions"] = json!([
                condition("Available", "False", "PodsFailing", ""),
                condition("Ready", "False", "PodsFailing", HOSTILE)
            ]);
            let mut certificate = stable(1);
            certificate["targets"] = json!({"total": 2, "current": 1, "failing": [{"kind": "CustomResourceDefinition", "name": "widgets.example.com", "message": "forbidden"}],
                "contested": [{"kind": "ValidatingWebhookConfiguration", "name": "v1.example.com", "fieldManager": "argocd-controller", "repairs": 40}]});
            (certificate, deployment)
        }
        _ => (stable(number), ready(number)),
    });
    subjects.targets.push(target(
        "lost.example.com",
        "unknown/source",
        Some(&[sample::authority(1).certificate().clone()]),
    ));
    subjects.targets.push(target(
        "bare.example.com",
        "operator-2-system/webhook-service",
        None,
    ));
    subjects.unread.push(format!("list {HOSTILE}: forbidden"));
    subjects
}
