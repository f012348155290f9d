//! ServingCertificates, and the volumes through which pods mount them.
//!
//! Operators read their certificate from one of two well-known paths; like OLM, Windlass mounts it at both.

use serde_json::{Map, Value, json};
use windlass_object::{
    json,
    names::API_VERSION,
    object,
    secret_keys::{TLS_CERTIFICATE, TLS_PRIVATE_KEY},
};

use super::{names, options::Durations, serving_deployments::ServingDeployment};

/// The default certificate path of controller-runtime.
const WEBHOOK: Place = Place {
    volume: "webhook-cert",
    path: "/tmp/k8s-webhook-server/serving-certs",
    certificate: TLS_CERTIFICATE,
    key: TLS_PRIVATE_KEY,
};

/// The default certificate path of aggregated API servers.
const API_SERVICE: Place = Place {
    volume: "apiservice-cert",
    path: "/apiserver.local.config/certificates",
    certificate: "apiserver.crt",
    key: "apiserver.key",
};

/// A serving certificate that a bundle needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookCertificate {
    /// Name of the Service and of the ServingCertificate.
    pub service: String,
    /// Name of the second Service of the blue-green pair. Webhooks call one of the two; each selects pods of
    /// one revision.
    pub green: String,
    /// Name of the Secret with the certificate, in the namespace of the operator.
    pub secret: String,
    /// Name of the Deployment whose pods use the certificate.
    pub deployment: String,
}

/// A path at which pods read their certificate.
struct Place {
    volume: &'static str,
    path: &'static str,
    certificate: &'static str,
    key: &'static str,
}

impl WebhookCertificate {
    /// The certificate of a Deployment that serves webhooks.
    pub(super) fn new(serving: &ServingDeployment<'_>) -> Self {
        Self {
            service: serving.service.clone(),
            green: names::green(&serving.service),
            secret: serving.secret.clone(),
            deployment: serving.deployment.name().to_owned(),
        }
    }

    /// A reference to the second Service in `namespace`, which exists only during some upgrades.
    pub(super) fn green_service(&self, namespace: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": self.green, "namespace": namespace}})
    }

    pub(super) fn object(&self, namespace: &str, durations: Option<&Durations>) -> Value {
        let mut spec = json!({
            "serviceName": self.service,
            "secretName": self.secret,
            "dnsNames": [format!("{}.{namespace}.svc", self.green)],
        });
        if let Some(durations) = durations {
            spec["duration"] = json!(durations.certificate);
            spec["ca"] = json!({"duration": durations.ca});
        }
        spec["reload"] = json!({"strategy": "Auto", "deploymentName": self.deployment});
        json!({
            "apiVersion": API_VERSION,
            "kind": "ServingCertificate",
            "metadata": {"name": self.service, "namespace": namespace},
            "spec": spec,
        })
    }
}

impl Place {
    /// Reports whether mounting the certificate here would hide `mount` or contain it.
    fn covers(&self, mount: &Value) -> bool {
        let path = object::text(mount, "/mountPath")
            .unwrap_or_default()
            .trim_end_matches('/');
        path.strip_prefix(self.path)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    fn volume(&self, secret: &str) -> Value {
        let items = json!([
            {"key": TLS_CERTIFICATE, "path": self.certificate},
            {"key": TLS_PRIVATE_KEY, "path": self.key},
        ]);
        json!({"name": self.volume, "secret": {"secretName": secret, "items": items}})
    }

    fn mount(&self) -> Value {
        json!({"name": self.volume, "mountPath": self.path})
    }
}

/// Mounts the certificate in `secret` at both paths of every container, replacing existing mounts there.
pub(super) fn mount(pod_spec: &mut Map<String, Value>, secret: &str) {
    let removed: Vec<String> = json::list(pod_spec, "containers")
        .iter()
        .flat_map(|container| object::items(container, "/volumeMounts"))
        .filter(|mount| [WEBHOOK, API_SERVICE].iter().any(|place| place.covers(mount)))
        .filter_map(|mount| mount.get("name")?.as_str())
        .chain([WEBHOOK.volume, API_SERVICE.volume])
        .map(str::to_owned)
        .collect();
    let is_removed = |named: &Value| {
        object::text(named, "/name").is_some_and(|name| removed.iter().any(|gone| gone == name))
    };

    let volumes = json::list(pod_spec, "volumes");
    volumes.retain(|volume| !is_removed(volume));
    volumes.extend([WEBHOOK.volume(secret), API_SERVICE.volume(secret)]);
    for container in json::list(pod_spec, "containers") {
        let mounts = json::list(json::fields(container, &[]), "volumeMounts");
        mounts.retain(|mount| !is_removed(mount));
        mounts.extend([WEBHOOK.mount(), API_SERVICE.mount()]);
    }
    // Init containers serve no requests, but may read the certificate volume that replaces a removed volume.
    let Some(init_containers) = pod_spec.get_mut("initContainers").and_then(Value::as_array_mut) else {
        return;
    };
    for container in init_containers {
        let Some(mounts) = container.get_mut("volumeMounts").and_then(Value::as_array_mut) else {
            continue;
        };
        for mount in mounts.iter_mut().filter(|mount| is_removed(mount)) {
            let is_api_service =
                API_SERVICE.covers(mount) || object::text(mount, "/name") == Some(API_SERVICE.volume);
            let place = if is_api_service { &API_SERVICE } else { &WEBHOOK };
            json::fields(mount, &[]).insert("name".into(), place.volume.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mounted(mut pod_spec: Value) -> Value {
        mount(json::fields(&mut pod_spec, &[]), "s-cert");
        pod_spec
    }

    fn serving_mounts() -> Value {
        json!([
            {"name": "webhook-cert", "mountPath": "/tmp/k8s-webhook-server/serving-certs"},
            {"name": "apiservice-cert", "mountPath": "/apiserver.local.config/certificates"},
        ])
    }

    #[test]
    fn the_certificate_is_at_both_paths_of_every_container() {
        let pod_spec = mounted(json!({"containers": [{"name": "a"}, {"name": "b", "volumeMounts": []}]}));
        for container in object::items(&pod_spec, "/containers") {
            assert_eq!(container["volumeMounts"], serving_mounts());
        }
        assert_eq!(
            pod_spec["volumes"],
            json!([
                {"name": "webhook-cert", "secret": {"secretName": "s-cert", "items": [
                    {"key": "tls.crt", "path": "tls.crt"}, {"key": "tls.key", "path": "tls.key"}]}},
                {"name": "apiservice-cert", "secret": {"secretName": "s-cert", "items": [
                    {"key": "tls.crt", "path": "apiserver.crt"}, {"key": "tls.key", "path": "apiserver.key"}]}},
            ])
        );
    }

    #[test]
    fn existing_mounts_at_the_paths_are_removed_with_their_volumes() {
        let pod_spec = mounted(json!({
            "volumes": [{"name": "cert"}, {"name": "file"}, {"name": "data"}, {"name": "webhook-cert"}],
            "containers": [
                {"name": "a", "volumeMounts": [
                    {"name": "cert", "mountPath": "/tmp/k8s-webhook-server/serving-certs/", "readOnly": true},
                    {"name": "file", "mountPath": "/tmp/k8s-webhook-server/serving-certs/tls.crt", "subPath": "tls.crt"},
                    {"name": "data", "mountPath": "/tmp/k8s-webhook-server/serving-certs-of-others"},
                ]},
                {"name": "b", "volumeMounts": [{"name": "cert", "mountPath": "/elsewhere"}]},
            ],
        }));
        let volumes: Vec<_> = object::items(&pod_spec, "/volumes")
            .iter()
            .map(|volume| &volume["name"])
            .collect();
        assert_eq!(volumes, ["data", "webhook-cert", "apiservice-cert"]);
        assert_eq!(object::items(&pod_spec, "/containers/0/volumeMounts").len(), 3);
        assert_eq!(pod_spec["containers"][1]["volumeMounts"], serving_mounts());
    }

    #[test]
    fn init_containers_do_not_mount_removed_volumes() {
        let pod_spec = mounted(json!({
            "volumes": [{"name": "cert"}, {"name": "data"}],
            "initContainers": [{"name": "copy", "volumeMounts": [
                {"name": "cert", "mountPath": "/certs", "readOnly": true}, {"name": "data", "mountPath": "/data"}
            ]}, {"name": "plain"}],
            "containers": [{"name": "a", "volumeMounts": [
                {"name": "cert", "mountPath": "/tmp/k8s-webhook-server/serving-certs"}
            ]}],
        }));
        assert_eq!(
            pod_spec["initContainers"],
            json!([{"name": "copy", "volumeMounts": [
                {"name": "webhook-cert", "mountPath": "/certs", "readOnly": true}, {"name": "data", "mountPath": "/data"}
            ]}, {"name": "plain"}])
        );
    }
}
