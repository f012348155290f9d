//! The CAs that the previous callers trust now. The issuer may have rotated them since the record was
//! written.

use serde_json::Value;
use windlass_cluster::{Cluster, Kind, RequestError, kinds};
use windlass_object::{
    ca_injectors::{CERT_MANAGER_CERTIFICATE, CERT_MANAGER_SECRET, CERT_MANAGER_VERSION, CaInjector},
    object,
    secret_keys::CA_CERTIFICATES,
};

use crate::commands::cluster::explain_error;

pub(super) const CERTIFICATE: Kind = Kind::new(CERT_MANAGER_VERSION, "Certificate");

/// Where service-ca stores the CAs of all Services: the namespace, the ConfigMap and its key
/// (`service-ca-operator`, `pkg/operator/sync_common.go`).
const SIGNING_CAS: (&str, &str, &str) = ("openshift-service-ca", "signing-cabundle", "ca-bundle.crt");

/// Returns the CAs in PEM that an object requests from cert-manager or service-ca; empty if it requests none
/// or they are missing.
///
/// # Errors
///
/// When the cluster cannot be read.
pub(super) async fn requested_certificates(cluster: &Cluster, caller: &Value) -> anyhow::Result<String> {
    let place = |annotation| object::annotation(caller, annotation)?.split_once('/');
    let secret = match (place(CERT_MANAGER_CERTIFICATE), place(CERT_MANAGER_SECRET)) {
        (Some((namespace, name)), _) => {
            let key = CERTIFICATE.object(Some(namespace), name);
            let certificate = match cluster.read(&key).await {
                Err(RequestError::UnknownKind { .. }) => None,
                read => read.map_err(explain_error)?,
            };
            let secret = certificate
                .as_ref()
                .and_then(|certificate| object::text(certificate, "/spec/secretName"));
            secret.map(|secret| kinds::SECRET.object(Some(namespace), secret))
        }
        (None, Some((namespace, name))) => Some(kinds::SECRET.object(Some(namespace), name)),
        (None, None) => None,
    };
    let Some(key) = secret else {
        return match CaInjector::ServiceCa.annotation_on(caller) {
            Some(_) => service_ca_certificates(cluster).await,
            None => Ok(String::new()),
        };
    };
    let secret = cluster.read(&key).await.map_err(explain_error)?;
    let ca = secret.and_then(|secret| object::data(&secret, CA_CERTIFICATES));
    Ok(String::from_utf8_lossy(&ca.unwrap_or_default()).into_owned())
}

async fn service_ca_certificates(cluster: &Cluster) -> anyhow::Result<String> {
    let (namespace, name, entry) = SIGNING_CAS;
    let config_map = cluster
        .read(&kinds::CONFIG_MAP.object(Some(namespace), name))
        .await;
    let config_map = config_map.map_err(explain_error)?.unwrap_or_default();
    Ok(config_map["data"][entry].as_str().unwrap_or_default().to_owned())
}
