//! Validation of Windlass's own kinds by schemas and rules.

use serde_json::{Value, json};

use super::traffic;
use crate::{
    request, sample,
    steps::{self, BUNDLE_DEPLOYMENTS, serving_certificates, succeed},
    test_cluster::TestCluster,
};

/// A change of a valid object as a JSON merge patch, and a part of the expected error.
type Case = (Value, &'static str);

/// Sends each changed object, which must be refused with the expected error.
async fn check_refusals(
    cluster: &TestCluster,
    path: &str,
    good: &Value,
    cases: &[Case],
) -> anyhow::Result<()> {
    let mut wrong = Vec::new();
    for (change, words) in cases {
        let mut object = good.clone();
        json_patch::merge(&mut object, change);
        let answer = request::send(
            &cluster.client,
            "POST",
            &format!("{path}?dryRun=All"),
            Some(&object),
        )
        .await?;
        if answer.code != 422 || !answer.message().contains(words) {
            wrong.push(format!("{change} must be refused with {words:?}: {answer}"));
        }
    }
    anyhow::ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    // The unchanged object must be valid.
    succeed(&cluster.client, "POST", &format!("{path}?dryRun=All"), Some(good)).await?;
    Ok(())
}

pub(super) async fn invalid_bundle_deployments_are_refused(cluster: &TestCluster) -> anyhow::Result<()> {
    let good = steps::bundle_deployment("sample", "sample-system", "sample.v1");
    let long = "a".repeat(64);
    let cases: &[Case] = &[
        (
            json!({"metadata": {"name": long}}),
            "must have at most 63 characters",
        ),
        (json!({"spec": {"namespace": ""}}), "spec.namespace"),
        (json!({"spec": {"namespace": "Not-A-Label"}}), "spec.namespace"),
        (
            json!({"spec": {"namespace": null}}),
            "spec.namespace: Required value",
        ),
        (
            json!({"spec": {"source": {"directory": null}}}),
            "specify exactly one source",
        ),
        (
            json!({"spec": {"source": {"configMaps": [{"name": "a"}]}}}),
            "specify exactly one source",
        ),
        (
            json!({"spec": {"source": {"directory": {"path": ""}}}}),
            "spec.source.directory.path",
        ),
        (
            json!({"spec": {"source": {"catalog": {"ref": "quay.io/catalog", "package": "a"}}}}),
            "specify exactly one source",
        ),
        (
            json!({"spec": {"source": {"directory": null, "catalog": {"ref": "quay.io/catalog", "package": "A b"}}}}),
            "spec.source.catalog.package",
        ),
        (
            json!({"spec": {"source": {"directory": null, "catalog": {"package": "a"}}}}),
            "spec.source.catalog.ref",
        ),
        (
            json!({"spec": {"source": {"directory": null,
                "catalog": {"ref": "quay.io/catalog", "package": "a", "approval": "Sometimes"}}}}),
            "spec.source.catalog.approval",
        ),
        (
            json!({"spec": {"watchNamespaces": "all"}}),
            "spec.watchNamespaces",
        ),
        (
            json!({"spec": {"crdUpgradeSafety": "Whatever"}}),
            "spec.crdUpgradeSafety",
        ),
        (
            json!({"spec": {"crdUpgradeExceptions": [{"enforcement": "None"}]}}),
            "specify at least one of crd, version, field and rule",
        ),
        (
            json!({"spec": {"crdUpgradeExceptions": [{"rule": "no-such-rule", "enforcement": "None"}]}}),
            "spec.crdUpgradeExceptions[0].rule",
        ),
        (
            json!({"spec": {"crdUpgradeExceptions": [{"field": "spec.size", "enforcement": "None"}]}}),
            "spec.crdUpgradeExceptions[0].field",
        ),
        (
            json!({"spec": {"crdUpgradeExceptions": [{"rule": "type", "enforcement": "Maybe"}]}}),
            "spec.crdUpgradeExceptions[0].enforcement",
        ),
        (
            json!({"spec": {"certificates": {"duration": "soon"}}}),
            "spec.certificates.duration",
        ),
        (
            json!({"spec": {"certificates": {"duration": "2h", "caDuration": "3h"}}}),
            "caDuration must be at least twice as long as duration",
        ),
        (
            json!({"spec": {"certificates": {"duration": "10m44s"}}}),
            "duration must be at least 10m45s",
        ),
    ];
    check_refusals(cluster, BUNDLE_DEPLOYMENTS, &good, cases).await?;
    succeed(&cluster.client, "POST", BUNDLE_DEPLOYMENTS, Some(&good)).await?;
    let moved = json!({"spec": {"namespace": "elsewhere"}});
    let path = sample::BUNDLE_DEPLOYMENT;
    let answer = request::send(&cluster.client, "PATCH", path, Some(&moved)).await?;
    anyhow::ensure!(
        answer.code == 422 && answer.message().contains("namespace is immutable"),
        "the namespace was changed: {answer}"
    );
    Ok(())
}

pub(super) async fn invalid_serving_certificates_are_refused(cluster: &TestCluster) -> anyhow::Result<()> {
    traffic::create_namespace(cluster, traffic::NAMESPACE).await?;
    let path = serving_certificates(traffic::NAMESPACE);
    let good = json!({
        "apiVersion": "windlass.dev/v1alpha1", "kind": "ServingCertificate", "metadata": {"name": "one"},
        "spec": {"serviceName": "one", "secretName": "one-cert"},
    });
    let cases: &[Case] = &[
        (
            json!({"spec": {"serviceName": null}}),
            "spec.serviceName: Required value",
        ),
        (json!({"spec": {"secretName": ""}}), "spec.secretName"),
        (
            json!({"spec": {"duration": "2h", "ca": {"duration": "3h"}}}),
            "ca.duration must be at least twice as long",
        ),
        (
            json!({"spec": {"duration": "10m44s"}}),
            "duration must be at least 10m45s",
        ),
        (
            json!({"spec": {"duration": "0s", "ca": {"duration": "0s"}}}),
            "duration must be at least 10m45s",
        ),
        (
            json!({"spec": {"privateKey": {"algorithm": "RSA", "size": 1024}}}),
            "2048, 3072 or 4096 with RSA",
        ),
        (
            json!({"spec": {"privateKey": {"algorithm": "ECDSA", "size": 384}}}),
            "size must be 256 with ECDSA",
        ),
        (
            json!({"spec": {"privateKey": {"algorithm": "Ed25519"}}}),
            "spec.privateKey.algorithm",
        ),
        (
            json!({"spec": {"reload": {"strategy": "Sometimes"}}}),
            "spec.reload.strategy",
        ),
        (json!({"spec": {"dnsNames": [""]}}), "spec.dnsNames[0]"),
    ];
    check_refusals(cluster, &path, &good, cases).await?;
    succeed(&cluster.client, "POST", &path, Some(&good)).await?;
    let renamed = json!({"spec": {"secretName": "other"}});
    let answer = request::send(&cluster.client, "PATCH", &format!("{path}/one"), Some(&renamed)).await?;
    anyhow::ensure!(
        answer.code == 422 && answer.message().contains("secretName is immutable"),
        "the name of the Secret was changed: {answer}"
    );
    Ok(())
}
