//! Resolves a Service to its endpoints.

use std::{
    collections::BTreeSet,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::{
    storage::{Collection, StorageKey, Store},
    webhook::{Endpoints, ResolveError},
};

/// The label that names the Service of an EndpointSlice.
pub(crate) const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// Resolves Services to stored endpoints, round robin.
pub(super) struct StoredEndpoints {
    store: Arc<Store>,
    next: AtomicUsize,
}

impl StoredEndpoints {
    pub(super) fn new(store: Arc<Store>) -> Self {
        Self {
            store,
            next: AtomicUsize::new(0),
        }
    }

    /// Returns the ready addresses of a Service for one of its named ports, in order.
    fn ready(&self, namespace: &str, service: &str, port_name: &str) -> Vec<SocketAddr> {
        let collection = Collection {
            group: "discovery.k8s.io",
            resource: "endpointslices",
            namespace: Some(namespace),
        };
        let mut addresses = BTreeSet::new();
        for (_, slice) in self.store.list(collection).0 {
            if slice["metadata"]["labels"][SERVICE_NAME] != service {
                continue;
            }
            let ports = slice["ports"].as_array().map(Vec::as_slice).unwrap_or_default();
            let port = ports
                .iter()
                .find(|port| port["name"].as_str().unwrap_or_default() == port_name);
            let Some(port) = port.and_then(|port| u16::try_from(port["port"].as_u64()?).ok()) else {
                continue;
            };
            for endpoint in slice["endpoints"].as_array().into_iter().flatten() {
                if endpoint["conditions"]["ready"] == false {
                    continue;
                }
                let parsed = endpoint["addresses"][0]
                    .as_str()
                    .and_then(|address| address.parse::<IpAddr>().ok());
                addresses.extend(parsed.map(|address| SocketAddr::new(address, port)));
            }
        }
        addresses.into_iter().collect()
    }
}

impl Endpoints for StoredEndpoints {
    fn resolve(&self, namespace: &str, service: &str, port: i64) -> Result<SocketAddr, ResolveError> {
        let key = StorageKey {
            group: String::new(),
            resource: "services".to_owned(),
            namespace: namespace.to_owned(),
            name: service.to_owned(),
        };
        let stored = self
            .store
            .read(&key)
            .ok_or_else(|| ResolveError::ServiceNotFound(service.to_owned()))?;
        let ports = stored["spec"]["ports"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let Some(named) = ports.iter().find(|entry| entry["port"].as_i64() == Some(port)) else {
            return Err(ResolveError::PortNotFound {
                service: service.to_owned(),
                port,
            });
        };
        let ready = self.ready(namespace, service, named["name"].as_str().unwrap_or_default());
        if ready.is_empty() {
            return Err(ResolveError::NoEndpoints(service.to_owned()));
        }
        Ok(ready[self.next.fetch_add(1, Ordering::Relaxed) % ready.len()])
    }
}
