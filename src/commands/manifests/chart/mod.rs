//! The Helm chart: the manifests as templates with values.

mod disarm_hook;
mod part;
mod template;
mod values;

use serde_json::{Value, json};
use windlass_operator::admission::{AdmissionService, CERTIFICATES_ACCOUNT};

use self::{part::parts, template::Template};
use super::{
    command::ManifestFile,
    deployment,
    document::{Document, NAME},
    ui,
};

/// Returns the objects of the Helm hook that disarms policies.
pub(super) fn policy_disarm_hook() -> Vec<Document> {
    let documents = disarm_hook::documents().into_iter();
    documents.map(|(document, _)| document).collect()
}

/// A file of the chart.
#[derive(Debug)]
pub(super) struct ChartFile {
    /// Path relative to the chart's folder.
    pub(super) path: String,
    pub(super) text: String,
}

/// Keeps Helm from deleting a CustomResourceDefinition, and with it all its objects and the Secrets of
/// certificates.
const KEEP: (&str, &str) = ("helm.sh/resource-policy", "keep");

/// The oldest Kubernetes with all fields of the manifests: `lifecycle.preStop.sleep` is on by default since
/// then.
const KUBE_VERSION: &str = ">=1.30.0-0";

/// Returns every file of the chart, from the manifests.
///
/// # Errors
///
/// When an object cannot be written as YAML or JSON.
pub(super) fn files(manifests: impl Iterator<Item = ManifestFile>) -> anyhow::Result<Vec<ChartFile>> {
    let file = |path: &str, text: String| ChartFile {
        path: path.to_owned(),
        text,
    };
    let mut files = vec![
        file("Chart.yaml", Document::new(metadata()).text()?),
        file("values.yaml", values::yaml()?),
        file(
            "values.schema.json",
            serde_json::to_string_pretty(&values::schema())? + "\n",
        ),
        file("templates/NOTES.txt", NOTES.to_owned()),
    ];
    for part in parts(manifests) {
        files.push(file(&format!("templates/{}", part.name), part.text()?));
    }
    files.push(file("templates/policies-disarming.yaml", disarm_hook::text()?));
    Ok(files)
}

/// The message that Helm prints after an installation.
const NOTES: &str = r#"Windlass runs in the namespace {{ .Release.Namespace }}.
Its pods run with the Pod Security Standard "restricted": to have it enforced,
  kubectl label namespace {{ .Release.Namespace }} pod-security.kubernetes.io/enforce=restricted
helm uninstall keeps the CustomResourceDefinitions, and so all certificates, their keys and their Secrets.
"#;

fn metadata() -> Value {
    json!({
        "apiVersion": "v2",
        "name": NAME,
        "description": env!("CARGO_PKG_DESCRIPTION"),
        "type": "application",
        "version": env!("CARGO_PKG_VERSION"),
        "appVersion": deployment::TAG,
        "kubeVersion": KUBE_VERSION,
        "home": env!("CARGO_PKG_REPOSITORY"),
        "sources": [env!("CARGO_PKG_REPOSITORY")],
        "keywords": ["operator", "olm", "webhook", "certificate", "ca"],
    })
}

fn template(mut document: Document) -> anyhow::Result<String> {
    let mut template = Template::default();
    let object = &mut document.object;
    match object["kind"].as_str() {
        Some("CustomResourceDefinition") => object["metadata"]["annotations"][KEEP.0] = KEEP.1.into(),
        Some("Deployment") => fill_in(object, &mut template),
        _ => {}
    }
    Ok(template.text(&document.text()?))
}

/// Returns the key of a Deployment's settings in the values.
fn role(deployment: &Value) -> &'static str {
    let name = deployment["metadata"]["name"].as_str();
    if name == Some(CERTIFICATES_ACCOUNT) {
        "certificates"
    } else if name == Some(AdmissionService::POLICIES.name) {
        "policies"
    } else if name == Some(ui::NAME) {
        "ui"
    } else {
        "bundles"
    }
}

fn fill_in(deployment: &mut Value, template: &mut Template) {
    let role = role(deployment);
    deployment["spec"]["replicas"] = template.scalar("{{ .Values.replicas }}");
    let pod = &mut deployment["spec"]["template"]["spec"];
    fill_in_pod(pod, template);
    extend(&mut pod["volumes"], &format!("{role}.volumes"), template);
    let container = &mut pod["containers"][0];
    container["resources"] = template.field("resources");
    extend(
        &mut container["volumeMounts"],
        &format!("{role}.volumeMounts"),
        template,
    );
    extend(&mut container["env"], "extraEnv", template);
    extend(&mut container["args"], &format!("{role}.extraArgs"), template);
}

/// Fills in the image and the scheduling of a pod.
fn fill_in_pod(pod: &mut Value, template: &mut Template) {
    for field in ["imagePullSecrets", "nodeSelector", "tolerations", "affinity"] {
        pod[field] = template.field(field);
    }
    let container = &mut pod["containers"][0];
    container["image"] = template.scalar(IMAGE);
    container["imagePullPolicy"] = template.field("image.pullPolicy");
}

/// Appends the value `name` to a list, which is created if it is missing.
fn extend(list: &mut Value, name: &str, template: &mut Template) {
    match list.as_array_mut() {
        Some(items) => items.push(template.items(name)),
        None => *list = template.field(name),
    }
}

/// The image, by digest if one is set.
const IMAGE: &str = "\"{{ .Values.image.repository }}{{ with .Values.image.digest }}@{{ . }}{{ else }}:{{ .Values.image.tag | \
                     default .Chart.AppVersion }}{{ end }}\"";
