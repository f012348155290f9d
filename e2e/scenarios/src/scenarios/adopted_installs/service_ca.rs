//! An install with certificates of service-ca is adopted, given back, and adopted for good.

use serde_json::json;
use windlass_object::ca_injectors::SERVICE_CA_SERVING_CERT;

use super::{
    foreign_install::{ForeignInstall, InstallIssuer, SECRET, collection},
    round_trip::adopt_and_give_back,
};
use crate::{service_ca::ServiceCa, steps::succeed, test_cluster::TestCluster};

pub(in super::super) async fn an_install_with_service_ca_is_adopted_and_given_back_without_a_failed_call(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let foreign = ForeignInstall::openshift();
    let issuer = InstallIssuer::new(&foreign)?;
    foreign.install(client, &issuer).await?;
    let service = format!("{}/{}", collection("Service"), foreign.service);
    let asking = json!({"metadata": {"annotations": {SERVICE_CA_SERVING_CERT[0]: SECRET}}});
    succeed(client, "PATCH", &service, Some(&asking)).await?;
    let service_ca = ServiceCa::start(client, issuer.bundle());
    let source = format!("service-ca/{}", foreign.service);
    adopt_and_give_back(cluster, &foreign, &source, None).await?;
    service_ca.stop().await
}
