//! The schema of the chart's values, and their defaults, which are those of the manifests.

use serde_json::{Map, Value, json};

use crate::commands::manifests::{deployment, document::Document};

/// Returns the schema, in a draft that every Helm 3 supports.
pub(super) fn schema() -> Value {
    let mut schema = object(
        "Settings of the chart.",
        json!({
            "image": object("The image of Windlass.", json!({
                "repository": text("Registry and repository.", deployment::REPOSITORY),
                "tag": text("The tag [default: the version of the chart].", ""),
                "digest": digest(),
                "pullPolicy": pull_policy(),
            })),
            "imagePullSecrets": list("Secrets with credentials for the registry: [{name: …}].", "object"),
            "replicas": {
                "description": "Pods per Deployment. One of them is the leader, the others stand by.",
                "type": "integer",
                "minimum": 1,
                "default": deployment::REPLICAS,
            },
            "resources": {
                "description": "Resource requests and limits of a pod.",
                "type": "object",
                "properties": {
                    "requests": { "type": "object" }, "limits": { "type": "object" }, "claims": { "type": "array" },
                },
                "additionalProperties": false,
                "default": deployment::resources(),
            },
            "extraEnv": list(
                "More environment variables of all pods, such as [{name: OTEL_EXPORTER_OTLP_ENDPOINT, value: …}].",
                "object",
            ),
            "nodeSelector": map("Labels of the nodes that pods may run on."),
            "tolerations": list("Taints of nodes that pods tolerate.", "object"),
            "affinity": map("Affinity of pods, in addition to their topology spread over zones and nodes."),
            "certificates": controllers("The controllers of certificates.", true),
            "bundles": controllers(
                "The controllers of bundles, and the guard. Users who can create BundleDeployments are effectively cluster-admin.",
                true,
            ),
            "policies": controllers(
                "The policy server. Before it is turned off, a Helm hook removes its webhooks.",
                false,
            ),
            "ui": controllers("The page of windlass report at /ui, for users with the ClusterRole windlass-ui-viewer.", false),
            "networkPolicy": switch("Restricts connections to the ports of the pods.", true),
            "monitoring": switch(
                "Monitors and alerts for the Prometheus operator, and a dashboard for Grafana's sidecar.",
                false,
            ),
        }),
    );
    schema["$schema"] = "http://json-schema.org/draft-07/schema#".into();
    // Helm adds this value to each subchart.
    schema["properties"]["global"] = json!({ "type": "object" });
    schema
}

/// Returns `values.yaml`: every default, below its description.
///
/// # Errors
///
/// When a default cannot be written as YAML.
pub(super) fn yaml() -> anyhow::Result<String> {
    let mut lines = Vec::new();
    write(&schema(), "", &mut lines)?;
    Ok(lines.join("\n") + "\n")
}

fn write(schema: &Value, pad: &str, lines: &mut Vec<String>) -> anyhow::Result<()> {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let default = property.get("default");
        let is_parent = default.is_none() && property["properties"].is_object();
        if default.is_none() && !is_parent {
            continue;
        }
        if let Some(description) = property["description"].as_str() {
            lines.push(format!("{pad}# {description}"));
        }
        if let Some(default) = default {
            let field = Map::from_iter([(name.clone(), default.clone())]);
            let text = Document::new(field.into()).text()?;
            lines.extend(text.lines().map(|line| format!("{pad}{line}")));
        } else {
            lines.push(format!("{pad}{name}:"));
            write(property, &format!("{pad}  "), lines)?;
        }
    }
    Ok(())
}

fn object(description: &str, properties: Value) -> Value {
    json!({
        "description": description, "type": "object", "properties": properties, "additionalProperties": false,
    })
}

fn text(description: &str, default: &str) -> Value {
    json!({ "description": description, "type": "string", "default": default })
}

fn digest() -> Value {
    let mut digest = text("Pins the image, instead of the tag.", "");
    digest["pattern"] = "^(sha256:[0-9a-f]{64})?$".into();
    digest
}

fn pull_policy() -> Value {
    let mut policy = text(
        "When nodes pull the image [default: as Kubernetes does for its tag].",
        "",
    );
    policy["enum"] = json!(["", "Always", "IfNotPresent", "Never"]);
    policy
}

fn list(description: &str, of: &str) -> Value {
    json!({ "description": description, "type": "array", "items": { "type": of }, "default": [] })
}

fn map(description: &str) -> Value {
    json!({ "description": description, "type": "object", "default": {} })
}

fn switch(description: &str, default: bool) -> Value {
    object(
        description,
        json!({ "enabled": { "type": "boolean", "default": default } }),
    )
}

/// Returns the schema of one Deployment's settings.
fn controllers(description: &str, default: bool) -> Value {
    let mut controllers = switch(description, default);
    for (name, field) in [
        ("extraArgs", list("More arguments of its command.", "string")),
        (
            "volumes",
            list("Volumes, such as one with bundle directories.", "object"),
        ),
        ("volumeMounts", list("Mounts of these volumes.", "object")),
    ] {
        controllers["properties"][name] = field;
    }
    controllers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_a_default_of_its_type() {
        fn check(path: &str, schema: &Value) {
            for (name, property) in schema["properties"].as_object().unwrap() {
                let path = format!("{path}.{name}");
                let Some(default) = property.get("default") else {
                    if path != ".global" {
                        check(&path, property);
                    }
                    continue;
                };
                let kind = match default {
                    Value::String(_) => "string",
                    Value::Bool(_) => "boolean",
                    Value::Number(_) => "integer",
                    Value::Array(_) => "array",
                    _ => "object",
                };
                assert_eq!(property["type"], kind, "{path}");
            }
        }
        check("", &schema());
    }

    #[test]
    fn the_values_file_contains_every_default() {
        let text = yaml().unwrap();
        let values = windlass_object::yaml::documents(text.as_bytes()).unwrap();
        assert_eq!(values[0]["replicas"], 2);
        assert_eq!(values[0]["resources"], deployment::resources());
        assert_eq!(values[0]["policies"]["enabled"], false);
        assert_eq!(values[0]["image"]["repository"], deployment::REPOSITORY);
        assert!(values[0].get("global").is_none());
    }
}
