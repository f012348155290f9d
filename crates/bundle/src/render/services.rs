//! Services for the Deployments that serve webhooks, runtime hooks or aggregated APIs.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windlass_object::object;

use super::{error::RenderError, serving_deployments::ServingDeployment};
use crate::callers::selects_same_port;

/// Renders the Service of a Deployment, with one port per called port.
pub(super) fn service(serving: &ServingDeployment<'_>, namespace: &str) -> Result<Value, Vec<RenderError>> {
    Ok(json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": serving.service, "namespace": namespace},
        "spec": {"ports": ports(serving)?, "selector": selector(serving.spec())},
    }))
}

/// The selector of the pods. A Service selects by labels only; if the Deployment selects by expressions, the
/// labels of its template are the narrowest selector that finds every pod.
fn selector(spec: &Value) -> Value {
    let labels = if object::items(spec, "/selector/matchExpressions").is_empty() {
        "/selector/matchLabels"
    } else {
        "/template/metadata/labels"
    };
    spec.pointer(labels).cloned().unwrap_or_else(|| json!({}))
}

fn ports(serving: &ServingDeployment<'_>) -> Result<Vec<Value>, Vec<RenderError>> {
    let mut ports: BTreeMap<i64, Vec<Value>> = BTreeMap::new();
    for (port, target_port) in serving.ports().chain(bundled_ports(serving)) {
        let targets = ports.entry(port).or_default();
        if !targets
            .iter()
            .any(|known| selects_same_port(serving.spec(), known, &target_port))
        {
            targets.push(target_port);
        }
    }
    let clashes: Vec<_> = ports
        .iter()
        .filter(|(_, targets)| targets.len() > 1)
        .map(|(port, targets)| RenderError::TargetPorts {
            deployment: serving.deployment.name().to_owned(),
            port: *port,
            targets: targets
                .iter()
                .map(|target| target.as_str().map_or_else(|| target.to_string(), str::to_owned))
                .collect(),
        })
        .collect();
    if !clashes.is_empty() {
        return Err(clashes);
    }
    Ok(ports
        .iter()
        .filter_map(|(port, targets)| {
            let target = targets.first()?;
            Some(json!({"name": port.to_string(), "port": port, "targetPort": target}))
        })
        .collect())
}

/// The ports of the bundled Service that the generated Service replaces.
fn bundled_ports(serving: &ServingDeployment<'_>) -> impl Iterator<Item = (i64, Value)> {
    let ports = serving
        .replaced
        .map(|bundled| object::items(&bundled.object, "/spec/ports"));
    ports.into_iter().flatten().filter_map(|port| {
        let number = port.get("port")?.as_i64()?;
        let target = port.get("targetPort").filter(|target| !target.is_null());
        Some((number, target.cloned().unwrap_or_else(|| number.into())))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{parse::Bundle, render::sample};

    fn rendered(bundle: &Bundle) -> Result<Value, Vec<String>> {
        service(&ServingDeployment::all(bundle)[0], "ns")
            .map_err(|errors| errors.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn ports_are_sorted_and_unique() {
        let mut bundle = sample::bundle();
        bundle.csv.object["spec"]["webhookdefinitions"] = json!([
            {"deploymentName": "widgets.controller", "containerPort": 8443},
            {"deploymentName": "widgets.controller", "targetPort": 9443},
            {"deploymentName": "widgets.controller", "containerPort": 443, "targetPort": "webhook-server"},
            {"deploymentName": "widgets.controller", "containerPort": 0, "targetPort": 9443},
            {"deploymentName": "widgets.controller", "containerPort": 8443, "targetPort": 8443},
            {"deploymentName": "other", "containerPort": 1},
        ]);
        let service = rendered(&bundle).unwrap();
        assert_eq!(
            service["spec"]["ports"],
            json!([{"name": "443", "port": 443, "targetPort": 9443}, {"name": "8443", "port": 8443, "targetPort": 8443}])
        );
        assert_eq!(
            service["metadata"],
            json!({"name": "widgets-controller-service", "namespace": "ns"})
        );
    }

    #[test]
    fn one_port_cannot_have_two_targets() {
        let mut bundle = sample::bundle();
        bundle.csv.object["spec"]["webhookdefinitions"] = json!([
            {"deploymentName": "widgets.controller", "targetPort": 9443},
            {"deploymentName": "widgets.controller", "targetPort": "metrics"},
        ]);
        assert_eq!(
            rendered(&bundle).unwrap_err(),
            [
                "webhook definitions of deployment 'widgets.controller' send port 443 to several target ports [9443 metrics]"
            ]
        );
    }

    #[test]
    fn the_selector_uses_template_labels_if_the_deployment_selects_by_expressions() {
        let mut bundle = sample::bundle();
        assert_eq!(
            rendered(&bundle).unwrap()["spec"]["selector"],
            json!({"app": "widgets"})
        );
        bundle.csv.object["spec"]["install"]["spec"]["deployments"][0]["spec"]["selector"] =
            json!({"matchExpressions": [{"key": "app", "operator": "Exists"}]});
        assert_eq!(
            rendered(&bundle).unwrap()["spec"]["selector"],
            json!({"app": "widgets", "tier": "control"})
        );
    }
}
