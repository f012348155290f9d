//! Requirements of the pods of a template.

use std::collections::BTreeMap;

use serde_json::Value;
use windlass_object::JsonPath;

use crate::{
    answer::{NodeClaim, ReplicaRequirements},
    fields::{FieldTypeError, Fields},
    quantity::{Quantity, QuantityError},
};

/// Why the requirements of a pod are unknown.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message explains each field")]
pub enum PodError {
    /// A field has the wrong type.
    #[error(transparent)]
    Field(#[from] FieldTypeError),
    /// A quantity is invalid.
    #[error("{path}: {source}")]
    Quantity { path: JsonPath, source: QuantityError },
}

/// Quantities by resource name.
type Amounts = BTreeMap<String, Quantity>;

/// Returns the requirements of each pod of a template; `None` if there are none. `accuratePodRequirements` of
/// Karmada's library for scripts.
///
/// The requests of containers are added. Init containers run one at a time, so only the largest of their
/// requests counts. Without a request, the limit is the request, as for the API server.
///
/// # Errors
///
/// The path of the invalid field, below the template.
pub fn requirements(template: &Value) -> Result<Option<ReplicaRequirements>, PodError> {
    let template = Fields::new(template);
    let Some(spec) = template.at("spec")? else {
        return Ok(None);
    };
    let node_claim = node_claim(&spec)?;
    let resource_request = resource_request(&spec)?;
    if node_claim.is_none() && resource_request.is_empty() {
        return Ok(None);
    }
    let some = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(str::to_owned);
    Ok(Some(ReplicaRequirements {
        node_claim,
        resource_request,
        namespace: some(template.text("metadata.namespace")?),
        priority_class_name: some(spec.text("priorityClassName")?),
    }))
}

fn node_claim(spec: &Fields<'_>) -> Result<Option<NodeClaim>, FieldTypeError> {
    let required = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution";
    let claim = NodeClaim {
        hard_node_affinity: spec.object(required)?.cloned().map(Value::Object),
        node_selector: node_selector(spec)?,
        tolerations: spec.list("tolerations")?.cloned().unwrap_or_default(),
    };
    Ok((claim != NodeClaim::default()).then_some(claim))
}

fn node_selector(spec: &Fields<'_>) -> Result<BTreeMap<String, String>, FieldTypeError> {
    let mut labels = BTreeMap::new();
    for (label, value) in spec.object("nodeSelector")?.into_iter().flatten() {
        let path = spec.path().field("nodeSelector").field(label);
        let value = value.as_str().ok_or(FieldTypeError {
            path,
            expected: "a string",
        })?;
        labels.insert(label.clone(), value.to_owned());
    }
    Ok(labels)
}

/// Returns the requests of one pod for resources that nodes have.
fn resource_request(spec: &Fields<'_>) -> Result<BTreeMap<String, String>, PodError> {
    let mut request = Amounts::new();
    for container in spec.items("containers")? {
        add(&mut request, container_request(&container)?);
    }
    for container in spec.items("initContainers")? {
        for (name, amount) in container_request(&container)? {
            let most = request.entry(name).or_default();
            *most = amount.max(*most);
        }
    }
    add(&mut request, amounts(spec, "overhead")?);
    let request = request.into_iter().filter(|(_, amount)| *amount > Quantity::ZERO);
    Ok(request.map(|(name, amount)| (name, amount.to_string())).collect())
}

fn container_request(container: &Fields<'_>) -> Result<Amounts, PodError> {
    let mut request = amounts(container, "resources.limits")?;
    request.extend(amounts(container, "resources.requests")?);
    Ok(request)
}

fn add(request: &mut Amounts, more: Amounts) {
    for (name, amount) in more {
        *request.entry(name).or_default() += amount;
    }
}

/// Returns a resource list without resources that nodes do not have.
fn amounts(part: &Fields<'_>, names: &str) -> Result<Amounts, PodError> {
    let mut amounts = Amounts::new();
    let Some(resources) = part.at(names)? else {
        return Ok(amounts);
    };
    for (name, amount) in part.object(names)?.into_iter().flatten() {
        let path = resources.path().field(name);
        let text = match amount {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => {
                let expected = "a quantity";
                return Err(FieldTypeError { path, expected }.into());
            }
        };
        let amount = Quantity::parse(&text).map_err(|source| PodError::Quantity { path, source })?;
        if let Some(amount) = round_for_scheduler(name, amount) {
            amounts.insert(name.clone(), amount);
        }
    }
    Ok(amounts)
}

/// Rounds a quantity to the unit of the scheduler.
fn round_for_scheduler(name: &str, amount: Quantity) -> Option<Quantity> {
    match name {
        "cpu" => Some(amount.rounded_up(Quantity::MILLI).in_decimal()),
        "memory" | "ephemeral-storage" => Some(amount.rounded_up(Quantity::ONE).in_binary()),
        name if name.starts_with("hugepages-") => Some(amount.rounded_up(Quantity::ONE).in_binary()),
        name if name == "pods" || is_scalar(name) => Some(amount.rounded_up(Quantity::ONE).in_decimal()),
        _ => None,
    }
}

/// Reports whether a resource is an extended resource or an attachable volume, which the scheduler counts as scalars.
fn is_scalar(name: &str) -> bool {
    let is_extended = name.contains('/') && !name.starts_with("requests.");
    is_extended || name.contains("kubernetes.io/") || name.starts_with("attachable-volumes-")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The requests of a pod spec.
    #[track_caller]
    fn requested(spec: &Value) -> Value {
        let requirements = requirements(&json!({"spec": spec})).unwrap();
        json!(requirements.map(|requirements| requirements.resource_request))
    }

    fn container(requests: Value) -> Value {
        json!({"name": "c", "resources": {"requests": requests}})
    }

    #[test]
    fn containers_are_added_and_init_containers_are_not() {
        let spec = json!({
            "containers": [container(json!({"cpu": "500m", "memory": "1Gi"})), container(json!({"cpu": 1, "memory": "1Gi"}))],
            "initContainers": [container(json!({"cpu": "1", "memory": "3Gi"})), container(json!({"memory": "1Gi", "pods": "1"}))],
            "overhead": {"cpu": "250m"},
        });
        assert_eq!(
            requested(&spec),
            json!({"cpu": "1750m", "memory": "3Gi", "pods": "1"})
        );
    }

    #[test]
    fn limits_are_the_default_of_requests() {
        let resources = json!({"limits": {"cpu": "2", "memory": "2Gi"}, "requests": {"cpu": "100m"}});
        for key in ["containers", "initContainers"] {
            let spec = json!({key: [{"name": "c", "resources": resources}]});
            assert_eq!(requested(&spec), json!({"cpu": "100m", "memory": "2Gi"}), "{key}");
        }
    }

    #[test]
    fn quantities_are_rounded_as_by_the_scheduler() {
        for (name, amount, counted) in [
            ("cpu", "0.0001", json!({"cpu": "1m"})),
            ("cpu", "1Ki", json!({"cpu": "1024"})),
            ("memory", "2048k", json!({"memory": "2000Ki"})),
            ("memory", "100500m", json!({"memory": "101"})),
            (
                "ephemeral-storage",
                "1G",
                json!({"ephemeral-storage": "1000000000"}),
            ),
            ("hugepages-2Mi", "4Mi", json!({"hugepages-2Mi": "4Mi"})),
            ("nvidia.com/gpu", "2", json!({"nvidia.com/gpu": "2"})),
            (
                "example.kubernetes.io/fpga",
                "1",
                json!({"example.kubernetes.io/fpga": "1"}),
            ),
            (
                "attachable-volumes-aws-ebs",
                "3",
                json!({"attachable-volumes-aws-ebs": "3"}),
            ),
            ("storage", "1Gi", json!(null)),
            ("requests.nvidia.com/gpu", "2", json!(null)),
            ("cpu", "0", json!(null)),
            ("cpu", "-1", json!(null)),
        ] {
            let spec = json!({"containers": [container(json!({name: amount}))]});
            assert_eq!(requested(&spec), counted, "{name}: {amount}");
        }
    }

    #[test]
    fn the_node_claim_has_required_affinity() {
        let terms =
            json!({"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]});
        let template = json!({"spec": {
            "affinity": {"nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": terms,
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}],
            }},
            "nodeSelector": {"disk": "ssd"},
            "tolerations": [{"operator": "Exists"}],
            "priorityClassName": "high",
        }});
        assert_eq!(
            json!(requirements(&template).unwrap()),
            json!({
                "nodeClaim": {
                    "hardNodeAffinity": terms,
                    "nodeSelector": {"disk": "ssd"},
                    "tolerations": [{"operator": "Exists"}],
                },
                "priorityClassName": "high",
            })
        );
    }

    #[test]
    fn a_pod_without_requirements_has_none() {
        for template in [
            json!(null),
            json!({}),
            json!({"spec": {"containers": [{"name": "c"}], "priorityClassName": "high"}}),
            json!({"spec": {"nodeSelector": {}, "tolerations": [], "affinity": {"nodeAffinity": null}}}),
        ] {
            assert_eq!(requirements(&template).unwrap(), None, "{template}");
        }
    }

    #[test]
    fn invalid_fields_are_reported() {
        for (spec, message) in [
            (json!({"containers": {}}), ".spec.containers is not a list"),
            (
                json!({"nodeSelector": {"a/b": 1}}),
                ".spec.nodeSelector['a/b'] is not a string",
            ),
            (
                json!({"overhead": {"cpu": []}}),
                ".spec.overhead.cpu is not a quantity",
            ),
            (
                json!({"containers": [container(json!({"cpu": "1 core"}))]}),
                ".spec.containers[0].resources.requests.cpu: \"1 core\" is not a quantity: use for example 500m, 2, 1Gi or 1e3",
            ),
        ] {
            assert_eq!(
                requirements(&json!({"spec": spec})).unwrap_err().to_string(),
                message
            );
        }
    }
}
