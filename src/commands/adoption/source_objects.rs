//! What belongs to an install of others, as it is in the cluster.

use std::collections::BTreeSet;

use anyhow::{Context, bail};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use windlass_adoption::{AdoptionSource, HelmRelease, OWNER, SourceName, called_services, hidden, leads_to};
use windlass_cluster::{Cluster, Kind, RequestError, kinds};
use windlass_object::{
    ObjectKey,
    ca_injectors::{CERT_MANAGER_CERTIFICATE, CERT_MANAGER_SECRET},
    object,
};

use super::{ca::CERTIFICATE, olm};
use crate::commands::cluster::explained;

const SERVICE_ACCOUNT: Kind = Kind::new("v1", "ServiceAccount");

/// How soon a certificate may be renewed: until the adoption is ready, nobody writes the new CA into its callers.
const RENEWAL: SignedDuration = SignedDuration::from_mins(15);

/// The objects of `source`, which has a namespace.
///
/// # Errors
///
/// When there is no such source, it cannot be read, or it is about to change.
pub(super) async fn of_source(cluster: &Cluster, source: &AdoptionSource) -> anyhow::Result<Vec<Value>> {
    let name = source.name();
    let namespace = name.namespace.as_deref().unwrap_or_default();
    let found = match source {
        AdoptionSource::Helm(_) => of_release(cluster, name).await,
        AdoptionSource::CertManager(_) => of_certificate(cluster, namespace, &name.name).await,
        AdoptionSource::Olm(_) => olm::of_csv(cluster, namespace, &name.name).await,
    };
    found.with_context(|| format!("cannot adopt from {source}"))
}

/// The Secrets of a release that Helm finds, or that are hidden from it.
///
/// # Errors
///
/// When they cannot be listed.
pub(super) async fn releases(
    cluster: &Cluster,
    name: &SourceName,
    is_hidden: bool,
) -> anyhow::Result<Vec<Value>> {
    let selector = format!("{}={},name={}", OWNER.0, hidden(is_hidden), name.name);
    let secrets = cluster
        .list(&kinds::SECRET, name.namespace.as_deref(), Some(&selector))
        .await;
    secrets.map_err(explained)
}

async fn of_release(cluster: &Cluster, name: &SourceName) -> anyhow::Result<Vec<Value>> {
    let namespace = name.namespace.as_deref().unwrap_or_default();
    let release = HelmRelease::deployed(&releases(cluster, name, false).await?, namespace)?;
    let mut live = Vec::new();
    for key in release.objects.iter().filter_map(ObjectKey::of) {
        match cluster.read(&key).await {
            // Somebody has deleted it, or its kind.
            Ok(None) | Err(RequestError::UnknownKind { .. }) => {}
            Ok(Some(object)) => live.push(object),
            Err(error) => return Err(explained(error)),
        }
    }
    Ok(live)
}

async fn of_certificate(cluster: &Cluster, namespace: &str, name: &str) -> anyhow::Result<Vec<Value>> {
    let key = CERTIFICATE.object(Some(namespace), name);
    let Some(certificate) = cluster.read(&key).await.map_err(explained)? else {
        bail!("{key} not found");
    };
    if let Some(renewal) = object::text(&certificate, "/status/renewalTime")
        && let Ok(renewal) = renewal.parse::<Timestamp>()
        && renewal < Timestamp::now() + RENEWAL
    {
        bail!("cert-manager renews {key} at {renewal}: try again when it has");
    }
    let secret = object::text(&certificate, "/spec/secretName").unwrap_or_default();
    let place = format!("{namespace}/{name}");
    let secret_place = format!("{namespace}/{secret}");
    let mut services: BTreeSet<_> = object::items(&certificate, "/spec/dnsNames")
        .iter()
        .filter_map(|name| service_of(name.as_str()?))
        .collect();
    let mut callers = Vec::new();
    for kind in kinds::CALLERS {
        for object in cluster.list(&kind, None, None).await.map_err(explained)? {
            let asks = |annotation, place: &str| object::annotation(&object, annotation) == Some(place);
            let asks = asks(CERT_MANAGER_CERTIFICATE, &place) || asks(CERT_MANAGER_SECRET, &secret_place);
            let called = called_services(&object);
            if asks {
                services.extend(called);
                callers.push(object);
            } else if !called.is_disjoint(&services) {
                callers.push(object);
            }
        }
    }
    let mut live = Vec::new();
    for (namespace, name) in &services {
        let key = kinds::SERVICE.object(Some(namespace), name);
        live.extend(cluster.read(&key).await.map_err(explained)?);
    }
    let namespaces: BTreeSet<_> = services.iter().map(|(namespace, _)| namespace.clone()).collect();
    let mut accounts = BTreeSet::new();
    for namespace in namespaces {
        let deployments = cluster.list(&kinds::DEPLOYMENT, Some(&namespace), None).await;
        for deployment in deployments.map_err(explained)? {
            if !live.iter().any(|service| leads_to(service, &deployment)) {
                continue;
            }
            if let Some(account) = object::text(&deployment, "/spec/template/spec/serviceAccountName") {
                accounts.insert(SERVICE_ACCOUNT.object(Some(&namespace), account));
            }
            live.push(deployment);
        }
    }
    for key in accounts {
        live.extend(cluster.read(&key).await.map_err(explained)?);
    }
    live.extend(callers);
    live.push(certificate);
    Ok(live)
}

/// The Service that a DNS name is of: `NAME.NAMESPACE.svc`, with what may follow.
fn service_of(dns_name: &str) -> Option<(String, String)> {
    let mut labels = dns_name.split('.');
    let (name, namespace, svc) = (labels.next()?, labels.next()?, labels.next()?);
    (svc == "svc").then(|| (namespace.to_owned(), name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dns_name_says_which_service_it_is_of() {
        let place = |namespace: &str, name: &str| Some((namespace.to_owned(), name.to_owned()));
        for (dns_name, expected) in [
            ("hook.n.svc", place("n", "hook")),
            ("hook.n.svc.cluster.local", place("n", "hook")),
            ("hook.example.com", None),
            ("hook", None),
        ] {
            assert_eq!(service_of(dns_name), expected, "{dns_name}");
        }
    }
}
