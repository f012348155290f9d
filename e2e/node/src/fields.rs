//! The downward API: fields of a pod, as its containers see them.

use std::net::Ipv4Addr;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

/// A pod's fields, with the addresses that its status will show.
#[derive(Clone, Copy)]
pub(crate) struct PodFields<'a> {
    pub(crate) pod: &'a Pod,
    pub(crate) address: Option<Ipv4Addr>,
    pub(crate) host: Ipv4Addr,
    pub(crate) node: &'a str,
}

impl PodFields<'_> {
    /// The value of a field path that the downward API has; `None` for any other.
    pub(crate) fn resolve(&self, path: &str) -> Option<String> {
        let entry = |map: &std::collections::BTreeMap<String, String>, key: &str| {
            map.get(key).cloned().unwrap_or_default()
        };
        if let Some((field, key)) = subscript(path) {
            return match field {
                "metadata.labels" => Some(entry(self.pod.labels(), key)),
                "metadata.annotations" => Some(entry(self.pod.annotations(), key)),
                _ => None,
            };
        }
        let address = || {
            self.address
                .map(|address| address.to_string())
                .unwrap_or_default()
        };
        Some(match path {
            "metadata.name" => self.pod.name_any(),
            "metadata.namespace" => self.pod.namespace().unwrap_or_default(),
            "metadata.uid" => self.pod.uid().unwrap_or_default(),
            "metadata.labels" => lines(self.pod.labels()),
            "metadata.annotations" => lines(self.pod.annotations()),
            "spec.nodeName" => self.node.to_owned(),
            "spec.serviceAccountName" => service_account(self.pod).to_owned(),
            "status.hostIP" | "status.hostIPs" => self.host.to_string(),
            "status.podIP" | "status.podIPs" => address(),
            _ => return None,
        })
    }
}

/// The name of a pod's ServiceAccount.
pub(crate) fn service_account(pod: &Pod) -> &str {
    let name = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.service_account_name.as_deref());
    name.filter(|name| !name.is_empty()).unwrap_or("default")
}

/// `metadata.labels['key']` as field and key.
fn subscript(path: &str) -> Option<(&str, &str)> {
    let (field, key) = path.split_once('[')?;
    let key = key.strip_suffix(']')?;
    let quoted = ['\'', '"']
        .iter()
        .find_map(|quote| key.strip_prefix(*quote)?.strip_suffix(*quote));
    Some((field, quoted.unwrap_or(key)))
}

/// `key="value"` lines, as kubelet writes maps.
fn lines(map: &std::collections::BTreeMap<String, String>) -> String {
    map.iter()
        .map(|(key, value)| format!("{key}={value:?}"))
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_resolved_and_others_refused() {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "n", "uid": "u", "labels": {"a": "1", "b": "x\"y"},
                "annotations": {"olm.targetNamespaces": "here"}},
            "spec": {"containers": [], "serviceAccountName": "account"},
        }))
        .unwrap();
        let address = Some(Ipv4Addr::new(127, 1, 0, 9));
        let fields = PodFields {
            pod: &pod,
            address,
            host: Ipv4Addr::new(127, 1, 0, 1),
            node: "node",
        };
        for (path, value) in [
            ("metadata.name", "p"),
            ("metadata.namespace", "n"),
            ("metadata.labels['a']", "1"),
            ("metadata.labels['none']", ""),
            ("metadata.annotations['olm.targetNamespaces']", "here"),
            ("metadata.labels", "a=\"1\"\nb=\"x\\\"y\""),
            ("spec.nodeName", "node"),
            ("spec.serviceAccountName", "account"),
            ("status.podIP", "127.1.0.9"),
            ("status.hostIP", "127.1.0.1"),
        ] {
            assert_eq!(fields.resolve(path).as_deref(), Some(value), "{path}");
        }
        for path in ["spec.containers", "metadata.labels[", "status.x['a']", ""] {
            assert_eq!(fields.resolve(path), None, "{path}");
        }
    }
}
