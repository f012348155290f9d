//! The objects that serve the page of `windlass report`.

use serde_json::{Value, json};
use windlass_object::names;

use super::{
    deployment,
    document::{Document, NAMESPACE},
    guard::PORT,
    rbac,
};

/// The name of the objects.
pub(in crate::commands) const NAME: &str = "windlass-ui";

/// The Secret with the serving certificate.
const SECRET: &str = "windlass-ui-cert";

/// The folder of the certificate in the pods.
const CERTIFICATE_FOLDER: &str = "/var/run/windlass-ui";

/// The name of the port in the Deployment and in the Service.
const PORT_NAME: &str = "https";

/// The comment at the beginning of the file.
const SERVICE: &str = "Optional: serves the page of `windlass report` at /ui, to users who may `get` that path. Apply this file to turn it on, then bind the
ClusterRole windlass-ui-viewer to these users. Windlass issues and rotates this certificate.";

/// The comment on the Deployment.
const DEPLOYMENT: &str =
    "The page, separate from all controllers: its server can read no key and change nothing.";

pub(super) fn documents() -> Vec<Document> {
    let mut documents = vec![Document::commented(SERVICE, service())];
    documents.extend(rbac::ui_documents());
    documents.push(Document::commented(DEPLOYMENT, deployment()));
    documents.push(deployment::disruption_budget(NAME));
    documents
}

fn service() -> Value {
    let labels = json!({ "app.kubernetes.io/name": NAME });
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": NAME,
            "namespace": NAMESPACE,
            "labels": labels,
            "annotations": { names::SERVING_CERT_SECRET: SECRET },
        },
        "spec": {
            "selector": labels,
            "ports": [{ "name": PORT_NAME, "port": 443, "targetPort": PORT_NAME }],
        },
    })
}

fn deployment() -> Value {
    let address = format!("0.0.0.0:{PORT}");
    let arguments = ["ui", "--cert-dir", CERTIFICATE_FOLDER, "--bind", &address];
    let port = json!({ "name": PORT_NAME, "containerPort": PORT });
    let probed = json!({ "port": PORT_NAME, "scheme": "HTTPS" });
    let mut deployment = deployment::deployment_with_ports(NAME, &arguments, &[port], &probed);
    let pod = &mut deployment["spec"]["template"]["spec"];
    pod["containers"][0]["volumeMounts"] =
        json!([{ "name": "certificate", "mountPath": CERTIFICATE_FOLDER, "readOnly": true }]);
    pod["volumes"] = json!([{ "name": "certificate", "secret": { "secretName": SECRET } }]);
    deployment
}
