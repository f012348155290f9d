//! The objects behind a certificate of cert-manager or service-ca: neither tool lists them.

use std::collections::BTreeSet;

use anyhow::bail;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use windlass_adoption::{called_services, selects_pods_of};
use windlass_cluster::{Cluster, Kind, kinds};
use windlass_object::{
    ca_injectors::{CERT_MANAGER_CERTIFICATE, CERT_MANAGER_SECRET, SERVICE_CA_SERVING_CERT},
    object,
    secret_keys::TLS_CERTIFICATE,
};
use windlass_trust::pki::pem;

use super::ca::CERTIFICATE;
use crate::commands::cluster::explain_error;

const SERVICE_ACCOUNT: Kind = Kind::new("v1", "ServiceAccount");

/// Minimum time before a renewal: the new CA does not reach the callers until the adoption is ready.
const RENEWAL: SignedDuration = SignedDuration::from_mins(15);

/// How long before expiry service-ca renews a certificate (`service-ca-operator`,
/// `pkg/controller/servingcert`).
const SERVICE_CA_RENEWAL: SignedDuration = SignedDuration::from_hours(1);

/// Services by namespace and name.
type Services = BTreeSet<(String, String)>;

/// Returns the objects of a cert-manager Certificate: the Services of its DNS names, the objects that request
/// its CA, and the Services that these call.
///
/// # Errors
///
/// When the Certificate does not exist, cannot be read, or will be renewed soon.
pub(super) async fn objects_of_certificate(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
) -> anyhow::Result<Vec<Value>> {
    let key = CERTIFICATE.object(Some(namespace), name);
    let Some(certificate) = cluster.read(&key).await.map_err(explain_error)? else {
        bail!("{key} not found");
    };
    if let Some(renewal) = object::text(&certificate, "/status/renewalTime")
        && let Ok(renewal) = renewal.parse::<Timestamp>()
        && renewal < Timestamp::now() + RENEWAL
    {
        bail!("cert-manager renews {key} at {renewal}: try again after that");
    }
    let secret = object::text(&certificate, "/spec/secretName").unwrap_or_default();
    let place = format!("{namespace}/{name}");
    let secret_place = format!("{namespace}/{secret}");
    let asks = |caller: &Value| {
        let asks = |annotation, place: &str| object::annotation(caller, annotation) == Some(place);
        asks(CERT_MANAGER_CERTIFICATE, &place) || asks(CERT_MANAGER_SECRET, &secret_place)
    };
    let mut services: Services = object::items(&certificate, "/spec/dnsNames")
        .iter()
        .filter_map(|name| parse_service_name(name.as_str()?))
        .collect();
    let callers = callers(cluster, &mut services, asks).await?;
    let mut live = servers(cluster, &services).await?;
    live.extend(callers);
    live.push(certificate);
    Ok(live)
}

/// Returns the objects of a Service whose certificate service-ca issues.
///
/// # Errors
///
/// When the Service does not exist or has no certificate, cannot be read, or will be renewed soon.
pub(super) async fn objects_of_service(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
) -> anyhow::Result<Vec<Value>> {
    let key = kinds::SERVICE.object(Some(namespace), name);
    let Some(service) = cluster.read(&key).await.map_err(explain_error)? else {
        bail!("{key} not found");
    };
    let Some(secret) = serving_secret(&service) else {
        bail!(
            "{key} requests no certificate from service-ca: it has no annotation {}",
            SERVICE_CA_SERVING_CERT[0]
        );
    };
    let secret = kinds::SECRET.object(Some(namespace), secret);
    let Some(live) = cluster.read(&secret).await.map_err(explain_error)? else {
        bail!("{secret} not found: service-ca has not issued it yet");
    };
    let chain = object::data(&live, TLS_CERTIFICATE).unwrap_or_default();
    let renewal = match pem::parse(&chain).as_deref() {
        Ok([leaf, ..]) => leaf.not_after() - SERVICE_CA_RENEWAL,
        _ => bail!("{secret} has no certificate in {TLS_CERTIFICATE}"),
    };
    if renewal < Timestamp::now() + RENEWAL {
        bail!("service-ca renews {secret} at {renewal}: try again after that");
    }
    let mut services = Services::from([(namespace.to_owned(), name.to_owned())]);
    // service-ca injects the same CA into all objects, whichever Service they call.
    let callers = callers(cluster, &mut services, |_| false).await?;
    let mut live = servers(cluster, &services).await?;
    live.extend(callers);
    Ok(live)
}

/// Returns the name of the Secret that service-ca writes for a Service.
pub(super) fn serving_secret(service: &Value) -> Option<&str> {
    let mut annotations = SERVICE_CA_SERVING_CERT.iter();
    annotations.find_map(|annotation| object::annotation(service, annotation))
}

/// Returns the objects that call one of `services` or for which `asks` is true, and adds the Services that
/// these call.
async fn callers(
    cluster: &Cluster,
    services: &mut Services,
    asks: impl Fn(&Value) -> bool,
) -> anyhow::Result<Vec<Value>> {
    let mut callers = Vec::new();
    for kind in kinds::CALLERS {
        for object in cluster.list(&kind, None, None).await.map_err(explain_error)? {
            let called = called_services(&object);
            if asks(&object) {
                services.extend(called);
                callers.push(object);
            } else if !called.is_disjoint(services) {
                callers.push(object);
            }
        }
    }
    Ok(callers)
}

/// Returns the Services, the Deployments behind them, and the ServiceAccounts of these Deployments.
async fn servers(cluster: &Cluster, services: &Services) -> anyhow::Result<Vec<Value>> {
    let mut live = Vec::new();
    for (namespace, name) in services {
        let key = kinds::SERVICE.object(Some(namespace), name);
        live.extend(cluster.read(&key).await.map_err(explain_error)?);
    }
    let namespaces: BTreeSet<_> = services.iter().map(|(namespace, _)| namespace.clone()).collect();
    let mut accounts = BTreeSet::new();
    for namespace in namespaces {
        let deployments = cluster.list(&kinds::DEPLOYMENT, Some(&namespace), None).await;
        for deployment in deployments.map_err(explain_error)? {
            if !live.iter().any(|service| selects_pods_of(service, &deployment)) {
                continue;
            }
            if let Some(account) = object::text(&deployment, "/spec/template/spec/serviceAccountName") {
                accounts.insert(SERVICE_ACCOUNT.object(Some(&namespace), account));
            }
            live.push(deployment);
        }
    }
    for key in accounts {
        live.extend(cluster.read(&key).await.map_err(explain_error)?);
    }
    Ok(live)
}

/// Returns the Service of a DNS name: `NAME.NAMESPACE.svc`, with an optional cluster domain.
fn parse_service_name(dns_name: &str) -> Option<(String, String)> {
    let mut labels = dns_name.split('.');
    let (name, namespace, svc) = (labels.next()?, labels.next()?, labels.next()?);
    (svc == "svc").then(|| (namespace.to_owned(), name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dns_name_is_resolved_to_its_service() {
        let place = |namespace: &str, name: &str| Some((namespace.to_owned(), name.to_owned()));
        for (dns_name, expected) in [
            ("hook.n.svc", place("n", "hook")),
            ("hook.n.svc.cluster.local", place("n", "hook")),
            ("hook.example.com", None),
            ("hook", None),
        ] {
            assert_eq!(parse_service_name(dns_name), expected, "{dns_name}");
        }
    }
}
