//! The requests that a bundle needs to start.

use serde_json::Value;
use windlass_object::{names, object};

use super::{
    known_labels::KnownLabels,
    request::{Place, Request, WatchedNamespaces},
};
use crate::{
    kinds::BundledKind,
    parse::{Bundle, ClusterServiceVersion, DeploymentSpec},
    phase::Phase,
};

const RBAC: &str = "rbac.authorization.k8s.io";

/// The operations of an apply.
const APPLY: &[&str] = &["CREATE", "UPDATE"];

/// Lists the writes of Windlass for `bundle`, and those of Kubernetes until its pods are ready endpoints. A
/// webhook that intercepts one of these writes while it is down never starts again. The requests that pods
/// need come first.
pub(crate) fn needed(bundle: &Bundle, watched: WatchedNamespaces) -> Vec<Request> {
    let mut requests = Vec::new();
    for deployment in bundle.csv().deployments() {
        add_pod_requests(deployment, &mut requests);
    }
    add_system_requests(&mut requests);
    if bundle.csv().webhooks().next().is_some() {
        add_service_requests(&mut requests);
    }
    add_permission_requests(bundle.csv(), watched, &mut requests);
    for crd in &bundle.crds {
        let labels = labels_of_installed(crd.object.pointer("/metadata/labels"));
        let (group, resource) = ("apiextensions.k8s.io", "customresourcedefinitions");
        add(&mut requests, APPLY, group, resource, Place::Cluster, &labels);
    }
    for manifest in &bundle.others {
        // Webhook configurations and APIServices are created after the pods are ready.
        let Some(kind) = BundledKind::from_kind(manifest.kind()).filter(|kind| kind.phase != Phase::Callers)
        else {
            continue;
        };
        let api_version = object::text(&manifest.object, "/apiVersion").unwrap_or_default();
        let (group, _) = object::group_and_version(api_version);
        let place = if kind.namespaced {
            Place::Own
        } else {
            Place::Cluster
        };
        let labels = labels_of_installed(manifest.object.pointer("/metadata/labels"));
        add(&mut requests, APPLY, group, kind.plural, place, &labels);
    }
    requests
}

/// The labels of an installed object.
fn labels_of_installed(written: Option<&Value>) -> KnownLabels {
    KnownLabels::from_object(written).with_key(names::BUNDLE_DEPLOYMENT)
}

fn add(
    requests: &mut Vec<Request>,
    operations: &[&'static str],
    group: &str,
    resource: &str,
    place: Place,
    labels: &KnownLabels,
) {
    requests.extend(operations.iter().map(|operation| Request {
        operation,
        group: group.to_owned(),
        resource: resource.to_owned(),
        place,
        labels: labels.clone(),
    }));
}

/// Adds the requests for a Deployment, its ReplicaSets and its pods.
fn add_pod_requests(deployment: DeploymentSpec<'_>, requests: &mut Vec<Request>) {
    let template = deployment
        .spec()
        .and_then(|spec| spec.pointer("/template/metadata/labels"));
    let pods = KnownLabels::from_object(template)
        .with_key("pod-template-hash")
        .with_key(names::REVISION);
    add(requests, &["CREATE"], "", "pods", Place::Own, &pods);
    add(requests, &["UPDATE"], "", "pods/status", Place::Own, &pods);
    add(requests, APPLY, "apps", "replicasets", Place::Own, &pods);
    let labels = labels_of_installed(deployment.labels());
    add(requests, APPLY, "apps", "deployments", Place::Own, &labels);
}

/// Adds the requests that every pod needs, whatever its bundle.
fn add_system_requests(requests: &mut Vec<Request>) {
    let none = KnownLabels::default();
    add(requests, &["CREATE"], "", "pods/binding", Place::Own, &none);
    let token = "serviceaccounts/token";
    add(requests, &["CREATE"], "", token, Place::Own, &none);
    // Labels that kubelets set.
    let node = ["hostname", "os", "arch"]
        .iter()
        .fold(KnownLabels::default(), |labels, name| {
            labels.with_key(&format!("kubernetes.io/{name}"))
        });
    add(requests, &["UPDATE"], "", "nodes/status", Place::Cluster, &node);
    // Leases of kubelets and of leader election, including that of Windlass.
    let (group, resource) = ("coordination.k8s.io", "leases");
    add(requests, &["UPDATE"], group, resource, Place::System, &none);
}

/// Adds the requests that make pods endpoints of a webhook's Service.
fn add_service_requests(requests: &mut Vec<Request>) {
    let service = labels_of_installed(None);
    add(requests, APPLY, "", "services", Place::Own, &service);
    let slice = service
        .with_key("kubernetes.io/service-name")
        .with_key("endpointslice.kubernetes.io/managed-by");
    let group = "discovery.k8s.io";
    add(requests, APPLY, group, "endpointslices", Place::Own, &slice);
    let secret = KnownLabels::default().with_key(names::SERVING_CERTIFICATE);
    add(requests, APPLY, "", "secrets", Place::Own, &secret);
    let authority = secret.with_key(names::SERVING_CERTIFICATE_NAMESPACE);
    add(requests, APPLY, "", "secrets", Place::System, &authority);
}

/// Adds the requests for ServiceAccounts, roles and bindings, which are cluster-wide if the operator watches
/// all namespaces.
fn add_permission_requests(
    csv: ClusterServiceVersion<'_>,
    watched: WatchedNamespaces,
    requests: &mut Vec<Request>,
) {
    let labels = labels_of_installed(None);
    let namespaced = csv.permissions().next().is_some();
    let in_cluster = csv.cluster_permissions().next().is_some() || (namespaced && watched.all);
    if namespaced || in_cluster {
        add(requests, APPLY, "", "serviceaccounts", Place::Own, &labels);
    }
    if namespaced && !watched.all {
        for resource in ["roles", "rolebindings"] {
            add(requests, APPLY, RBAC, resource, Place::Watched, &labels);
        }
    }
    if in_cluster {
        for resource in ["clusterroles", "clusterrolebindings"] {
            add(requests, APPLY, RBAC, resource, Place::Cluster, &labels);
        }
    }
}
