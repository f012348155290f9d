//! What a stand-in serves in place of a container: the ports that anything asks it on, and the certificate that it
//! mounts.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, Probe, Service};

use crate::probe::action::port_number;

/// The file that a folder with a serving certificate holds.
const CERTIFICATE: &str = "tls.crt";

/// Where operators built with controller-runtime serve webhooks, and what their certificate folder ends with.
const WEBHOOK_PORT: u16 = 9443;
const CERTIFICATE_FOLDER: &str = "serving-certs";

/// The ports that a container says it has: its own, and those of its probes.
fn declared(container: &Container) -> BTreeSet<u16> {
    let own = container
        .ports
        .iter()
        .flatten()
        .filter(|port| port.protocol.as_deref().unwrap_or("TCP") == "TCP");
    let own = own.filter_map(|port| u16::try_from(port.container_port).ok());
    let probes = [
        &container.readiness_probe,
        &container.liveness_probe,
        &container.startup_probe,
    ];
    own.chain(
        probes
            .into_iter()
            .flatten()
            .filter_map(|probe| probed(probe, container)),
    )
    .collect()
}

fn probed(probe: &Probe, container: &Container) -> Option<u16> {
    if let Some(grpc) = &probe.grpc {
        return u16::try_from(grpc.port).ok();
    }
    let get = probe.http_get.as_ref().map(|get| &get.port);
    port_number(
        get.or(probe.tcp_socket.as_ref().map(|connect| &connect.port))?,
        container,
    )
}

/// The ports that Services of the pod's namespace send to.
///
/// Whether they select the pod is not asked: a pod that is still to prove itself serves what its siblings do, before any
/// Service sends to it. That a pod has a port open which nobody asks is no harm: its address is its own.
fn targeted(spec: &PodSpec, services: &[impl AsRef<Service>]) -> BTreeSet<u16> {
    let services = services
        .iter()
        .filter_map(|service| service.as_ref().spec.as_ref());
    let selecting = services.filter(|service| {
        service
            .selector
            .as_ref()
            .is_some_and(|selector| !selector.is_empty())
    });
    let ports = selecting.flat_map(|service| service.ports.iter().flatten());
    ports
        .filter_map(|port| match &port.target_port {
            None => u16::try_from(port.port).ok(),
            Some(target) => spec
                .containers
                .iter()
                .find_map(|container| port_number(target, container)),
        })
        .collect()
}

/// The ports that the stand-in of one container serves.
///
/// A port that several containers declare is the first one's; one that only a Service knows, and the usual port of
/// webhooks, is the first stood-in container's. `stood_in` says which containers have a stand-in.
pub(crate) fn ports(
    pod: &Pod,
    container: &str,
    services: &[impl AsRef<Service>],
    stood_in: impl Fn(&Container) -> bool,
) -> BTreeSet<u16> {
    let Some(spec) = &pod.spec else {
        return BTreeSet::new();
    };
    let mut taken = BTreeSet::new();
    let mut mine = BTreeSet::new();
    for other in &spec.containers {
        let ports = declared(other);
        if other.name == container {
            mine = ports.difference(&taken).copied().collect();
        }
        taken.extend(ports);
    }
    if spec
        .containers
        .iter()
        .find(|container| stood_in(container))
        .is_some_and(|first| first.name == container)
    {
        let mut others = targeted(spec, services);
        others.insert(WEBHOOK_PORT);
        mine.extend(others.difference(&taken));
    }
    mine
}

/// The folder of the serving certificate among a container's mounts: one that holds a certificate, and rather the one
/// that controller-runtime looks in, which may also be filled later.
pub(crate) fn certificate_folder(mounts: &BTreeMap<String, PathBuf>) -> Option<&Path> {
    let rank = |path: &str, folder: &Path| {
        (
            folder.join(CERTIFICATE).exists(),
            path.ends_with(CERTIFICATE_FOLDER),
        )
    };
    let ranked = mounts
        .iter()
        .map(|(path, folder)| (rank(path, folder), folder.as_path()));
    let best = ranked
        .filter(|(rank, _)| *rank != (false, false))
        .max_by_key(|(rank, _)| *rank)?;
    Some(best.1)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;

    fn pod() -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": "p", "labels": {"app": "a"}},
            "spec": {"containers": [
                {"name": "real", "image": "mapped", "ports": [{"containerPort": 7000}]},
                {"name": "manager", "image": "x", "ports": [{"containerPort": 9443, "name": "webhook"},
                    {"containerPort": 53, "protocol": "UDP"}],
                    "readinessProbe": {"httpGet": {"port": 8081}},
                    "livenessProbe": {"tcpSocket": {"port": "webhook"}}},
                {"name": "proxy", "image": "x", "ports": [{"containerPort": 8443}, {"containerPort": 9443}]},
            ]},
        }))
        .unwrap()
    }

    fn service(selector: &Value, ports: &Value) -> Arc<Service> {
        Arc::new(serde_json::from_value(json!({"spec": {"selector": selector, "ports": ports}})).unwrap())
    }

    fn of(container: &str, services: &[Arc<Service>]) -> Vec<u16> {
        let stood_in = |container: &Container| container.image.as_deref() != Some("mapped");
        ports(&pod(), container, services, stood_in).into_iter().collect()
    }

    #[test]
    fn a_stand_in_serves_what_its_container_declares_and_probes_ask() {
        assert_eq!(of("manager", &[]), [8081, 9443]);
        assert_eq!(of("proxy", &[]), [8443]);
    }

    #[test]
    fn a_port_that_only_a_service_knows_is_served_once() {
        let selected = service(
            &json!({"app": "a"}),
            &json!([{"port": 443, "targetPort": 4343}, {"port": 1, "targetPort": "webhook"}, {"port": 6443},
                {"port": 2, "targetPort": 7000}]),
        );
        let sibling = service(&json!({"app": "b"}), &json!([{"port": 5000}]));
        let elsewhere = service(&json!({}), &json!([{"port": 5001}]));
        let services = [selected, sibling, elsewhere];
        assert_eq!(of("manager", &services), [4343, 5000, 6443, 8081, 9443]);
        assert_eq!(of("proxy", &services), [8443]);
    }

    #[test]
    fn the_usual_certificate_folder_is_preferred() {
        let folder = tempfile::TempDir::new().unwrap();
        let mut mounts = BTreeMap::new();
        for (path, name, file) in [
            ("/apiserver.local.config/certificates", "a", "tls.crt"),
            ("/etc/settings", "b", "settings"),
            ("/tmp/k8s-webhook-server/serving-certs", "c", "tls.crt"),
        ] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
            std::fs::write(folder.path().join(name).join(file), "").unwrap();
            mounts.insert(path.to_owned(), folder.path().join(name));
        }
        assert!(certificate_folder(&mounts).unwrap().ends_with("c"));
        std::fs::remove_file(folder.path().join("c/tls.crt")).unwrap();
        assert!(certificate_folder(&mounts).unwrap().ends_with("a"));
        mounts.remove("/apiserver.local.config/certificates");
        assert!(
            certificate_folder(&mounts).unwrap().ends_with("c"),
            "it may be filled later"
        );
        mounts.remove("/tmp/k8s-webhook-server/serving-certs");
        assert_eq!(certificate_folder(&mounts), None);
    }
}
