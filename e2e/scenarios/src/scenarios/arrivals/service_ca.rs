//! An install with certificates of service-ca is adopted, given back, and adopted for good.

use serde_json::json;
use windlass_object::ca_injectors::SERVICE_CA_SERVING_CERT;

use super::{
    theirs::{SECRET, TheirIssuer, Theirs, collection},
    there_and_back::there_and_back,
};
use crate::{service_ca::ServiceCa, steps::succeed, test_cluster::TestCluster};

pub(in super::super) async fn what_service_ca_serves_is_adopted_and_given_back_without_a_failed_call(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let theirs = Theirs::of_openshift();
    let issuer = TheirIssuer::new(&theirs)?;
    theirs.install(client, &issuer).await?;
    let service = format!("{}/{}", collection("Service"), theirs.service);
    let asking = json!({"metadata": {"annotations": {SERVICE_CA_SERVING_CERT[0]: SECRET}}});
    succeed(client, "PATCH", &service, Some(&asking)).await?;
    let service_ca = ServiceCa::start(client, issuer.bundle());
    let source = format!("service-ca/{}", theirs.service);
    there_and_back(cluster, &theirs, &source, None).await?;
    service_ca.stop().await
}
