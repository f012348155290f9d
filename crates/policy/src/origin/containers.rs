//! Which containers an override is for.

use serde_json::Value;
use windlass_object::object;

use crate::{api::OriginOverrider, patch::Pointer};

/// For all containers.
pub(crate) const ALL: &str = "*";

/// The places of the containers that an override is for: those with the names that it gives, wherever there are some, or the one that
/// it counts to.
///
/// # Errors
///
/// When there are not so many.
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
