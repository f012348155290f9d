//! Selects the containers of an override.

use serde_json::Value;
use windlass_object::object;

use crate::{api::OriginOverrider, patch::Pointer};

/// The name that selects all containers.
pub(crate) const ALL: &str = "*";

/// Returns pointers to the containers of an override: those with the given names, which need not exist, or
/// the one with the given index.
///
/// # Errors
///
/// If the index is too large.
pub(super) fn chosen(
    overrider: &OriginOverrider,
    subject: &Value,
    pod_spec: &Pointer,
) -> Result<Vec<Pointer>, String> {
    let list = |name: &str| {
        let place = pod_spec.join(name);
        let containers = place.find(subject).and_then(Value::as_array);
        (place, containers.map(Vec::as_slice).unwrap_or_default())
    };
    if overrider.containers.is_empty() {
        let (place, containers) = list("containers");
        let index = usize::try_from(overrider.container_count).unwrap_or(usize::MAX);
        if index >= containers.len() {
            return Err(format!(
                "containerCount is {}, but the object has {} containers",
                overrider.container_count,
                containers.len()
            ));
        }
        return Ok(vec![place.join(index.to_string())]);
    }
    let is_chosen = |container: &Value| {
        let name = object::text(container, "/name").unwrap_or_default();
        let mut names = overrider.containers.iter();
        names.any(|chosen| chosen == ALL || chosen == name)
    };
    let mut places = Vec::new();
    for field in ["initContainers", "containers"] {
        let (place, containers) = list(field);
        let indexes = (0..containers.len()).filter(|index| is_chosen(&containers[*index]));
        places.extend(indexes.map(|index| place.join(index.to_string())));
    }
    Ok(places)
}
