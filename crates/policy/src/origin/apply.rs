//! Converts typed overrides into operations.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value, json};
use windlass_object::Quantity;

use super::{containers, lists, pod_spec::pod_spec};
use crate::{
    api::{IntOrString, OriginOverrider, OriginType, OverrideOperation, ResourceRequirements},
    patch::{JsonPatch, JsonPatchOperation, Pointer},
};

/// Returns the operations of a typed override for an object.
///
/// # Errors
///
/// If the object lacks the container, or has an invalid quantity.
pub(crate) fn apply(overrider: &OriginOverrider, subject: &Value) -> Result<JsonPatch, String> {
    let metadata = |name: &str| Pointer::from_tokens(["metadata", name]);
    match overrider.origin_type {
        OriginType::Annotations => {
            return Ok(entries(
                overrider,
                &overrider.annotations,
                metadata("annotations"),
                subject,
            ));
        }
        OriginType::Labels => return Ok(entries(overrider, &overrider.labels, metadata("labels"), subject)),
        _ => {}
    }
    let Some(pod_spec) = pod_spec(subject) else {
        return Ok(JsonPatch::new());
    };
    let place = |name: &str| pod_spec.join(name);
    Ok(match overrider.origin_type {
        OriginType::NodeSelector => entries(
            overrider,
            &overrider.node_selector,
            place("nodeSelector"),
            subject,
        ),
        OriginType::HostNetwork => value(overrider, place("hostNetwork"), overrider.host_network.into()),
        OriginType::SchedulerName => value(
            overrider,
            place("schedulerName"),
            overrider.scheduler_name.clone().into(),
        ),
        OriginType::Affinity => affinity(overrider, &place("affinity"), subject),
        OriginType::Tolerations => {
            let given = json_list(&overrider.tolerations);
            let merges = overrider.operation != OverrideOperation::Remove;
            list(
                overrider,
                place("tolerations"),
                subject,
                given,
                merges,
                lists::toleration,
            )
        }
        OriginType::TopologySpreadConstraints => {
            let given = json_list(&overrider.topology_spread_constraints);
            let merges = overrider.operation == OverrideOperation::Add;
            let place = place("topologySpreadConstraints");
            list(overrider, place, subject, given, merges, lists::spread_constraint)
        }
        OriginType::ResourceRequirements => {
            let empty = ResourceRequirements::default();
            let given = overrider.resource_requirements.as_ref().unwrap_or(&empty);
            let containers = containers::chosen(overrider, subject, &pod_spec)?;
            containers
                .iter()
                .flat_map(|container| resources(overrider, given, &container.join("resources"), subject))
                .collect()
        }
        OriginType::ResourceOversell => {
            let mut patch = JsonPatch::new();
            for container in containers::chosen(overrider, subject, &pod_spec)? {
                oversell(overrider, &container.join("resources"), subject, &mut patch)?;
            }
            patch
        }
        OriginType::Annotations | OriginType::Labels => JsonPatch::new(),
    })
}

/// Serializes a value without non-text keys, which cannot fail.
fn json_of(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

fn json_list<T: Serialize>(items: &[T]) -> Vec<Value> {
    items.iter().map(json_of).collect()
}

fn value(overrider: &OriginOverrider, place: Pointer, value: Value) -> JsonPatch {
    vec![match overrider.operation {
        OverrideOperation::Remove => JsonPatchOperation::Remove(place),
        OverrideOperation::Add | OverrideOperation::Replace => JsonPatchOperation::Replace(place, value),
    }]
}

fn entries(
    overrider: &OriginOverrider,
    given: &BTreeMap<String, impl Serialize>,
    place: Pointer,
    subject: &Value,
) -> JsonPatch {
    let is_removal = overrider.operation == OverrideOperation::Remove;
    if overrider.replace && !is_removal {
        return vec![JsonPatchOperation::Replace(place, json_of(given))];
    }
    if is_removal {
        let there = |name: &&String| place.join(*name).find(subject).is_some();
        let names = given.keys().filter(there);
        return names
            .map(|name| JsonPatchOperation::Remove(place.join(name)))
            .collect();
    }
    let set = |(name, value): (&String, _)| JsonPatchOperation::Replace(place.join(name), json_of(value));
    // Otherwise a numeric name would look like an index.
    let missing = place.find(subject).is_none_or(Value::is_null) && !given.is_empty();
    let parent = missing.then(|| JsonPatchOperation::Replace(place.clone(), json!({})));
    parent.into_iter().chain(given.iter().map(set)).collect()
}

fn list(
    overrider: &OriginOverrider,
    place: Pointer,
    subject: &Value,
    given: Vec<Value>,
    merges: bool,
    identity: fn(&Value) -> Value,
) -> JsonPatch {
    let current = place.find(subject).and_then(Value::as_array).map(Vec::as_slice);
    let is_removal = overrider.operation == OverrideOperation::Remove;
    let list = match current {
        None if is_removal => return JsonPatch::new(),
        Some(current) if is_removal && !given.is_empty() && !overrider.replace => {
            lists::without(current, &given, identity)
        }
        Some(_) if is_removal => Vec::new(),
        Some(current) if merges && !overrider.replace => lists::merged(current, given, identity),
        _ => given,
    };
    if list.is_empty() {
        return vec![JsonPatchOperation::Remove(place)];
    }
    vec![JsonPatchOperation::Replace(place, list.into())]
}

fn affinity(overrider: &OriginOverrider, place: &Pointer, subject: &Value) -> JsonPatch {
    let given = overrider.affinity.as_ref().map(json_of).unwrap_or_default();
    let given = given.as_object().cloned().unwrap_or_default();
    if overrider.operation == OverrideOperation::Remove {
        if given.is_empty() || overrider.replace {
            return vec![JsonPatchOperation::Remove(place.clone())];
        }
        let rest: Map<_, _> = place
            .find(subject)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .filter(|(name, _)| !given.contains_key(*name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        return vec![match rest.is_empty() {
            true => JsonPatchOperation::Remove(place.clone()),
            false => JsonPatchOperation::Replace(place.clone(), rest.into()),
        }];
    }
    if overrider.replace || overrider.operation == OverrideOperation::Replace {
        return vec![JsonPatchOperation::Replace(place.clone(), given.into())];
    }
    given
        .into_iter()
        .map(|(name, value)| (place.join(name), value))
        .filter(|(place, _)| place.find(subject).is_none_or(Value::is_null))
        .map(|(place, value)| JsonPatchOperation::Replace(place, value))
        .collect()
}

fn resources(
    overrider: &OriginOverrider,
    given: &ResourceRequirements,
    place: &Pointer,
    subject: &Value,
) -> JsonPatch {
    if overrider.operation == OverrideOperation::Replace || overrider.replace {
        return vec![JsonPatchOperation::Replace(place.clone(), json_of(given))];
    }
    let sections: [(&str, &BTreeMap<String, IntOrString>); 2] =
        [("limits", &given.limits), ("requests", &given.requests)];
    sections
        .into_iter()
        .flat_map(|(name, given)| entries(overrider, given, place.join(name), subject))
        .collect()
}

fn oversell(
    overrider: &OriginOverrider,
    place: &Pointer,
    subject: &Value,
    patch: &mut JsonPatch,
) -> Result<(), String> {
    for (section, factors) in &overrider.resources_oversell {
        for (resource, factor) in factors {
            let place = place.join(section).join(resource);
            let Some(amount) = place.find(subject) else {
                continue;
            };
            let amount = quantity(amount).map_err(|error| format!("{place}: {error}"))?;
            let factor = Quantity::parse(factor).map_err(|error| error.to_string())?;
            let unit = if resource == "cpu" {
                Quantity::MILLI
            } else {
                Quantity::ONE
            };
            let amount = amount.times(factor).rounded_up(unit).to_string();
            patch.push(JsonPatchOperation::Replace(place, amount.into()));
        }
    }
    Ok(())
}

fn quantity(amount: &Value) -> Result<Quantity, String> {
    let text = match amount {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return Err("is not a quantity".into()),
    };
    Quantity::parse(&text).map_err(|error| error.to_string())
}
