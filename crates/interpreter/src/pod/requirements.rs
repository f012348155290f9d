//! What a pod needs: Karmada's `accuratePodRequirements` (`GenerateReplicaRequirements` of `pkg/util/helper/binding.go`).

use std::collections::BTreeMap;

use serde_json::Value;
use windlass_object::object::{items, text};

use crate::{
    answer::{NodeClaim, ReplicaRequirements},
    quantity::{Quantity, QuantityError},
};

/// Why it cannot be said what a pod needs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PodError {
    /// An amount is not a quantity.
    #[error("{field}: {source}")]
    Quantity {
        /// Where it stands.
        field: String,
        /// In which way.
        source: QuantityError,
    },
    /// A field is of another type.
    #[error("{field}: must be {expected}")]
    Type {
        /// Which.
        field: String,
        /// What it must be.
        expected: &'static str,
    },
}

type Amounts = BTreeMap<String, Quantity>;

/// What each pod of a template needs; [`None`] where that is nothing.
///
/// Of each container its requests count, for which limits stand in; together they need as much as all containers at a time, or as the
/// neediest of the init containers, and what the pod itself takes on top.
///
/// # Errors
///
/// When an amount is not a quantity.
pub fn requirements(template: &Value) -> Result<Option<ReplicaRequirements>, PodError> {
    let spec = template.get("spec").unwrap_or(&Value::Null);
    let resource_request = requests(spec)?;
    let node_claim = node_claim(spec)?;
    let priority_class_name = text(spec, "/priorityClassName").filter(|name| !name.is_empty());
    if resource_request.is_empty() && node_claim.is_none() && priority_class_name.is_none() {
        return Ok(None);
    }
    Ok(Some(ReplicaRequirements {
        node_claim,
        resource_request,
        namespace: None,
        priority_class_name: priority_class_name.map(str::to_owned),
    }))
}

fn requests(spec: &Value) -> Result<BTreeMap<String, String>, PodError> {
    let mut all = Amounts::new();
    for (index, container) in items(spec, "/containers").iter().enumerate() {
        let own = of_container(container, &format!("spec.containers[{index}]"))?;
        add(&mut all, own);
    }
    for (index, container) in items(spec, "/initContainers").iter().enumerate() {
        for (name, amount) in of_container(container, &format!("spec.initContainers[{index}]"))? {
            let most = all.entry(name).or_default();
            if amount > *most {
                *most = amount;
            }
        }
    }
    add(&mut all, amounts(spec.get("overhead"), "spec.overhead")?);
    let is_needed = |(name, amount): &(String, Quantity)| *amount > Quantity::default() && is_scheduled(name);
    let needed = all.into_iter().filter(is_needed);
    Ok(needed.map(|(name, amount)| (name, amount.to_string())).collect())
}

fn of_container(container: &Value, path: &str) -> Result<Amounts, PodError> {
    let resources = container.get("resources");
    let part = |name: &str| {
        let amounts_of = resources.and_then(|resources| resources.get(name));
        amounts(amounts_of, &format!("{path}.resources.{name}"))
    };
    let mut requests = part("requests")?;
    for (name, limit) in part("limits")? {
        requests.entry(name).or_insert(limit);
    }
    Ok(requests)
}

fn amounts(list: Option<&Value>, path: &str) -> Result<Amounts, PodError> {
    let list = match list {
        None | Some(Value::Null) => return Ok(Amounts::new()),
        // A script cannot tell an empty object from an empty list.
        Some(Value::Array(items)) if items.is_empty() => return Ok(Amounts::new()),
        Some(Value::Object(list)) => list,
        Some(_) => {
            return Err(PodError::Type {
                field: path.to_owned(),
                expected: "an object",
            });
        }
    };
    let read = |(name, amount): (&String, &Value)| {
        let field = || format!("{path}.{name}");
        let written = match amount {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => {
                return Err(PodError::Type {
                    field: field(),
                    expected: "a quantity",
                });
            }
        };
        let amount = Quantity::parse(&written);
        let amount = amount.map_err(|source| PodError::Quantity {
            field: field(),
            source,
        })?;
        Ok((name.clone(), amount))
    };
    list.iter().map(read).collect()
}

fn add(all: &mut Amounts, more: Amounts) {
    for (name, amount) in more {
        let known = all.entry(name).or_default();
        *known = *known + amount;
    }
}

/// Whether a scheduler looks at a resource: those of nodes, and extended ones, which have a prefix.
fn is_scheduled(name: &str) -> bool {
    ["cpu", "memory", "ephemeral-storage", "pods"].contains(&name)
        || name.starts_with("hugepages-")
        || name.contains('/')
        || name.starts_with("attachable-volumes-")
}

fn node_claim(spec: &Value) -> Result<Option<NodeClaim>, PodError> {
    let required = "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution";
    let is_something = |value: &&Value| value.as_object().is_some_and(|fields| !fields.is_empty());
    let hard_node_affinity = spec.pointer(required).filter(is_something).cloned();
    let mut node_selector = BTreeMap::new();
    for (name, value) in spec
        .get("nodeSelector")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let value = value.as_str().ok_or_else(|| PodError::Type {
            field: format!("spec.nodeSelector.{name}"),
            expected: "a string",
        })?;
        node_selector.insert(name.clone(), value.to_owned());
    }
    let tolerations = items(spec, "/tolerations").to_vec();
    if hard_node_affinity.is_none() && node_selector.is_empty() && tolerations.is_empty() {
        return Ok(None);
    }
    Ok(Some(NodeClaim {
        hard_node_affinity,
        node_selector,
        tolerations,
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn requests_of(spec: Value) -> Value {
        let needed = requirements(&json!({"spec": spec})).unwrap();
        needed.map_or(Value::Null, |needed| json!(needed.resource_request))
    }

    #[test]
    fn containers_are_added_and_init_containers_are_not() {
        let container =
            |requests: Value, limits: Value| json!({"resources": {"requests": requests, "limits": limits}});
        for (spec, expected) in [
            (json!({}), Value::Null),
            (json!({"containers": [{"name": "a"}]}), Value::Null),
            (
                json!({"containers": [container(json!({"cpu": "100m"}), json!({"cpu": "1", "memory": "1Gi"})), container(json!({"cpu": 1}), json!({}))]}),
                json!({"cpu": "1100m", "memory": "1Gi"}),
            ),
            (
                json!({"containers": [container(json!({"cpu": "100m", "memory": "2Gi"}), json!({}))], "initContainers": [container(json!({"cpu": "2"}), json!({})), container(json!({"memory": "1Gi"}), json!({}))]}),
                json!({"cpu": "2", "memory": "2Gi"}),
            ),
            (
                json!({"containers": [container(json!({"cpu": "1"}), json!({}))], "overhead": {"cpu": "250m"}}),
                json!({"cpu": "1250m"}),
            ),
            (
                json!({"containers": [container(json!({"cpu": "0", "nvidia.com/gpu": "1", "hugepages-2Mi": "4Mi", "strange": "1"}), json!([]))]}),
                json!({"nvidia.com/gpu": "1", "hugepages-2Mi": "4Mi"}),
            ),
        ] {
            assert_eq!(requests_of(spec.clone()), expected, "{spec}");
        }
    }

    #[test]
    fn nodes_and_priority_are_claimed() {
        let terms = json!({"nodeSelectorTerms": [{"matchExpressions": []}]});
        let template = json!({"spec": {
            "nodeSelector": {"a": "b"}, "tolerations": [{"key": "k"}], "priorityClassName": "high",
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}},
        }});
        assert_eq!(
            json!(requirements(&template).unwrap()),
            json!({
                "nodeClaim": {"hardNodeAffinity": terms, "nodeSelector": {"a": "b"}, "tolerations": [{"key": "k"}]},
                "priorityClassName": "high",
            })
        );
    }

    #[test]
    fn what_is_wrong_is_said_with_its_field() {
        for (spec, expected) in [
            (
                json!({"containers": [{"resources": {"requests": {"cpu": "much"}}}]}),
                "spec.containers[0].resources.requests.cpu: \"much\" is not a quantity",
            ),
            (
                json!({"containers": [{"resources": {"limits": {"cpu": true}}}]}),
                "spec.containers[0].resources.limits.cpu: must be a quantity",
            ),
            (json!({"overhead": "1"}), "spec.overhead: must be an object"),
            (
                json!({"nodeSelector": {"a": 1}}),
                "spec.nodeSelector.a: must be a string",
            ),
        ] {
            let error = requirements(&json!({"spec": spec})).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
