//! An install with certificates of cert-manager is adopted, given back, and adopted for good.

use serde_json::json;
use windlass_object::ca_injectors::CERT_MANAGER_VERSION;

use super::{
    super::foreign,
    foreign_install::{CERTIFICATE, ForeignInstall, InstallIssuer, SECRET},
    round_trip::adopt_and_give_back,
};
use crate::{cainjector::Cainjector, sample::NAMESPACE, steps::succeed, test_cluster::TestCluster};

pub(in super::super) async fn an_install_with_cert_manager_is_adopted_and_given_back_without_a_failed_call(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let foreign = ForeignInstall::kubebuilder();
    let issuer = InstallIssuer::new(&foreign)?;
    let crd = foreign::crd(CERT_MANAGER_VERSION, "Certificate", "certificates", true);
    foreign::define(client, &crd).await?;
    foreign.install(client, &issuer).await?;
    let certificates = format!("/apis/{CERT_MANAGER_VERSION}/namespaces/{NAMESPACE}/certificates");
    let certificate = json!({"apiVersion": CERT_MANAGER_VERSION, "kind": "Certificate", "metadata": {"name": CERTIFICATE},
        "spec": {"secretName": SECRET, "issuerRef": {"name": "issuer"},
            "dnsNames": [format!("{}.{NAMESPACE}.svc", foreign.service)]}});
    succeed(client, "POST", &certificates, Some(&certificate)).await?;
    let _cainjector = Cainjector::start(cluster, &["--enable-certificates-data-source"])?;
    let certificate = format!("{certificates}/{CERTIFICATE}");
    adopt_and_give_back(
        cluster,
        &foreign,
        &format!("cert-manager/{CERTIFICATE}"),
        Some(certificate),
    )
    .await
}
