//! Allocation of cluster IPs.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{api_server::ApiServer, kinds::ServedResource};

/// Sets the cluster IP of a new Service and the fields that depend on it.
pub(super) fn allocate(server: &ApiServer, served: &ServedResource, object: &mut Value) {
    if served.kind != "Service" || !served.group.is_empty() || object["spec"]["type"] == "ExternalName" {
        return;
    }
    let spec = &mut object["spec"];
    if !spec.is_object() {
        return;
    }
    if spec["clusterIP"].as_str().unwrap_or_default().is_empty() {
        let services = server.shared().all("", "services", None);
        let taken: BTreeSet<&str> = services
            .iter()
            .filter_map(|service| service["spec"]["clusterIP"].as_str())
            .collect();
        // The first address of the range belongs to the Service of the API server.
        let free = (2..=u16::MAX)
            .map(|number| format!("10.96.{}.{}", number >> 8, number & 0xff))
            .find(|address| !taken.contains(address.as_str()));
        spec["clusterIP"] = json!(free.unwrap_or_default());
    }
    spec["clusterIPs"] = json!([spec["clusterIP"].clone()]);
    for (field, value) in [
        ("ipFamilies", json!(["IPv4"])),
        ("ipFamilyPolicy", json!("SingleStack")),
    ] {
        if spec[field].is_null() {
            spec[field] = value;
        }
    }
}
