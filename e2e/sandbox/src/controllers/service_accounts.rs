//! Creates the default ServiceAccount and the root certificate ConfigMap in every namespace.

use serde_json::json;

use super::{
    client::ControllerClient,
    objects::{is_deleting, name},
};

const ROOT: &str = "kube-root-ca.crt";

/// Reconciles all Namespaces once.
pub(super) async fn pass(client: &ControllerClient) {
    for namespace in client.list("", "namespaces", None) {
        if is_deleting(&namespace) {
            continue;
        }
        let namespace = name(&namespace);
        let exists = |resource: &str, wanted: &str| {
            client
                .list("", resource, Some(namespace))
                .iter()
                .any(|object| name(object) == wanted)
        };
        if !exists("serviceaccounts", "default") {
            let account =
                json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
            client
                .create(
                    &format!("/api/v1/namespaces/{namespace}/serviceaccounts"),
                    &account,
                )
                .await;
        }
        if !exists("configmaps", ROOT) {
            let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": ROOT},
                             "data": {"ca.crt": client.root_certificate()}});
            client
                .create(&format!("/api/v1/namespaces/{namespace}/configmaps"), &map)
                .await;
        }
    }
}
