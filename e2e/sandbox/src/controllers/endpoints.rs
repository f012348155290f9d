//! EndpointSlices of Services: the pods of a Service and their addresses.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    client::ControllerClient,
    objects::{controller_reference, is_deleting, is_finished, is_ready, name, namespace, short_hash},
};
use crate::{admission::selector_matches, server::SERVICE_NAME};

const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const CONTROLLER: &str = "endpointslice-controller.k8s.io";

/// Reconciles all Services once.
pub(super) async fn pass(client: &ControllerClient) {
    for service in client.list("", "services", None) {
        let selects = service["spec"]["selector"]
            .as_object()
            .is_some_and(|selector| !selector.is_empty());
        let text = |field: &str| service["metadata"][field].as_str().unwrap_or_default();
        let faults = client.server().faults();
        if faults.ignores_pods_of(text("uid"), text("resourceVersion")) {
            continue;
        }
        if selects && service["spec"]["type"] != "ExternalName" && !is_deleting(&service) {
            publish(client, &service).await;
        }
    }
}

async fn publish(client: &ControllerClient, service: &Value) {
    let wanted = slices(client, service);
    let collection = format!(
        "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices",
        namespace(service)
    );
    let existing = client.list("discovery.k8s.io", "endpointslices", Some(namespace(service)));
    let mine = existing.iter().filter(|slice| {
        let labels = &slice["metadata"]["labels"];
        labels[SERVICE_NAME] == name(service) && labels[MANAGED_BY] == CONTROLLER
    });
    let mut missing: BTreeMap<String, Value> = wanted
        .into_iter()
        .map(|slice| (name(&slice).to_owned(), slice))
        .collect();
    for slice in mine {
        let path = format!("{collection}/{}", name(slice));
        let Some(mut wanted) = missing.remove(name(slice)) else {
            client.delete(&path).await;
            continue;
        };
        if slice["endpoints"] != wanted["endpoints"] || slice["ports"] != wanted["ports"] {
            wanted["metadata"] = slice["metadata"].clone();
            client.replace(&path, &wanted).await;
        }
    }
    for slice in missing.values() {
        client.create(&collection, slice).await;
    }
}

/// Builds one slice for each set of port numbers: a named target port may differ between pods.
fn slices(client: &ControllerClient, service: &Value) -> Vec<Value> {
    let selector = json!({"matchLabels": service["spec"]["selector"]});
    let mut groups: BTreeMap<String, (Value, Vec<Value>)> = BTreeMap::new();
    let nothing = json!([]);
    groups.insert(nothing.to_string(), (nothing, Vec::new()));
    for pod in client.list("", "pods", Some(namespace(service))) {
        if !selector_matches(&selector, &pod["metadata"]["labels"]) || is_finished(&pod) {
            continue;
        }
        if pod["status"]["podIP"].as_str().unwrap_or_default().is_empty() {
            continue;
        }
        let ports = ports(service, &pod);
        groups
            .entry(ports.to_string())
            .or_insert_with(|| (ports, Vec::new()))
            .1
            .push(endpoint(service, &pod));
    }
    if groups.len() > 1 {
        groups.retain(|_, (_, endpoints)| !endpoints.is_empty());
    }
    groups
        .into_values()
        .map(|(ports, endpoints)| slice(service, &ports, &endpoints))
        .collect()
}

fn slice(service: &Value, ports: &Value, endpoints: &[Value]) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": format!("{}-{}", name(service), short_hash(&ports.to_string(), 5)),
            "labels": {SERVICE_NAME: name(service), MANAGED_BY: CONTROLLER},
            "ownerReferences": [controller_reference(service)],
        },
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": ports,
    })
}

fn endpoint(service: &Value, pod: &Value) -> Value {
    let deleting = is_deleting(pod);
    let published = service["spec"]["publishNotReadyAddresses"] == true;
    let mut endpoint = json!({
        "addresses": [pod["status"]["podIP"]],
        "conditions": {
            "ready": published || (is_ready(pod) && !deleting), "serving": is_ready(pod), "terminating": deleting,
        },
        "targetRef": {"kind": "Pod", "namespace": namespace(pod), "name": name(pod), "uid": pod["metadata"]["uid"]},
    });
    if pod["spec"]["nodeName"].is_string() {
        endpoint["nodeName"] = pod["spec"]["nodeName"].clone();
    }
    endpoint
}

fn ports(service: &Value, pod: &Value) -> Value {
    let ports = service["spec"]["ports"].as_array().into_iter().flatten();
    ports
        .filter_map(|port| {
            let target = &port["targetPort"];
            let number = match target.as_str() {
                Some(name) => named_port(pod, name)?,
                None => target.as_i64().unwrap_or_default(),
            };
            let name = port["name"].as_str().unwrap_or_default();
            Some(json!({"name": name, "port": number, "protocol": port["protocol"]}))
        })
        .collect()
}

fn named_port(pod: &Value, name: &str) -> Option<i64> {
    let containers = pod["spec"]["containers"].as_array()?.iter();
    let mut ports = containers.flat_map(|container| container["ports"].as_array().into_iter().flatten());
    ports.find(|port| port["name"] == name)?["containerPort"].as_i64()
}
