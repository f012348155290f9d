//! The order in which objects are applied that depend on each other.

use std::collections::{BTreeSet, HashMap, HashSet};

use interpreter::answer::DependentObjectReference;
use serde_json::Value;
use windlass_object::{label_selector, object};

/// Returns the order, as indices, in which each of `objects` follows those that it depends on. Otherwise
/// objects stay in their order, as do those that depend on each other. `dependencies` has the dependencies of
/// each object.
pub(super) fn dependency_order(
    objects: &[&Value],
    dependencies: &[&[DependentObjectReference]],
) -> Vec<usize> {
    let needs = needs(objects, dependencies);
    let mut missing: Vec<usize> = vec![0; objects.len()];
    let mut needed_by: HashMap<usize, Vec<usize>> = HashMap::new();
    for (&place, needed) in &needs {
        missing[place] = needed.len();
        for needed in needed {
            needed_by.entry(*needed).or_default().push(place);
        }
    }
    let mut ready: BTreeSet<usize> = (0..objects.len()).filter(|place| missing[*place] == 0).collect();
    let mut order = Vec::with_capacity(objects.len());
    while let Some(place) = ready.pop_first() {
        order.push(place);
        for other in needed_by.remove(&place).unwrap_or_default() {
            missing[other] -= 1;
            if missing[other] == 0 {
                ready.insert(other);
            }
        }
    }
    order
}

/// The places of what each object needs among the others, without what needs it in turn, however many others are between them. An
/// object that needs nothing has no entry.
fn needs(objects: &[&Value], dependencies: &[&[DependentObjectReference]]) -> HashMap<usize, HashSet<usize>> {
    let direct: HashMap<usize, HashSet<usize>> = dependencies
        .iter()
        .enumerate()
        .filter(|(_, references)| !references.is_empty())
        .map(|(place, references)| {
            let others = objects.iter().enumerate().filter(|(other, _)| *other != place);
            let named =
                others.filter(|(_, other)| references.iter().any(|reference| names(reference, other)));
            (place, named.map(|(other, _)| other).collect())
        })
        .collect();
    let reached: HashMap<usize, HashSet<usize>> = direct
        .keys()
        .map(|place| (*place, reachable(*place, &direct)))
        .collect();
    let is_mutual =
        |one: usize, other: usize| reached.get(&other).is_some_and(|places| places.contains(&one));
    direct
        .iter()
        .map(|(place, needed)| {
            let needed = needed.iter().copied();
            (
                *place,
                needed.filter(|other| !is_mutual(*place, *other)).collect(),
            )
        })
        .collect()
}

fn reachable(from: usize, direct: &HashMap<usize, HashSet<usize>>) -> HashSet<usize> {
    let (mut seen, mut next) = (HashSet::new(), vec![from]);
    while let Some(place) = next.pop() {
        for needed in direct.get(&place).into_iter().flatten() {
            if seen.insert(*needed) {
                next.push(*needed);
            }
        }
    }
    seen
}

/// Whether a reference names an object. Another version of its group shows the same one.
fn names(reference: &DependentObjectReference, object: &Value) -> bool {
    let text = |pointer| object::text(object, pointer);
    let group = |api_version| object::group_and_version(api_version).0;
    let labels = || object.pointer("/metadata/labels").unwrap_or(&Value::Null);
    let is_named = match (&reference.name, &reference.label_selector) {
        (Some(name), _) => text("/metadata/name") == Some(name),
        (None, Some(selector)) => label_selector::matches(selector, labels()),
        (None, None) => false,
    };
    is_named
        && text("/kind") == Some(&reference.kind)
        && group(text("/apiVersion").unwrap_or_default()) == group(&reference.api_version)
        && text("/metadata/namespace") == reference.namespace.as_deref()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn object(name: &str) -> Value {
        json!({
            "apiVersion": "example.com/v1", "kind": "Widget",
            "metadata": {"namespace": "n", "name": name, "labels": {"name": name}},
        })
    }

    fn on(name: &str) -> DependentObjectReference {
        DependentObjectReference {
            api_version: "example.com/v1beta1".to_owned(),
            kind: "Widget".to_owned(),
            namespace: Some("n".to_owned()),
            name: Some(name.to_owned()),
            label_selector: None,
        }
    }

    /// The order of objects that are named by letters; `needs` has what each of some needs.
    fn order(names: &str, needs: &[(&str, &str)]) -> String {
        let names: Vec<String> = names.chars().map(String::from).collect();
        let objects: Vec<_> = names.iter().map(|name| object(name)).collect();
        let dependencies: Vec<Vec<_>> = names
            .iter()
            .map(|name| {
                let of = needs.iter().filter(|(of, _)| of == name);
                of.flat_map(|(_, needed)| needed.chars().map(|needed| on(&needed.to_string())))
                    .collect()
            })
            .collect();
        let objects: Vec<_> = objects.iter().collect();
        let dependencies: Vec<_> = dependencies.iter().map(Vec::as_slice).collect();
        let order = dependency_order(&objects, &dependencies);
        order.into_iter().map(|place| names[place].as_str()).collect()
    }

    #[test]
    fn what_is_needed_comes_first_and_the_rest_stays_as_it_is() {
        for (needs, expected) in [
            (vec![], "abcde"),
            (vec![("a", "e")], "bcdea"),
            (vec![("b", "a")], "abcde"),
            (vec![("a", "c"), ("c", "d")], "bdcae"),
            (vec![("a", "a")], "abcde"),
            (vec![("a", "x")], "abcde"),
            // Two that need each other stay in their order, and what needs them comes after both.
            (vec![("b", "c"), ("c", "b"), ("a", "c")], "bcade"),
            (vec![("b", "d"), ("d", "c"), ("c", "b")], "abcde"),
        ] {
            assert_eq!(order("abcde", &needs), expected, "{needs:?}");
        }
    }

    #[test]
    fn a_reference_names_objects_of_its_group_kind_and_namespace() {
        let widget = object("a");
        let by_label = |value: &str| DependentObjectReference {
            name: None,
            label_selector: Some(json!({"matchLabels": {"name": value}})),
            ..on("a")
        };
        for (reference, expected) in [
            (on("a"), true),
            (on("b"), false),
            (by_label("a"), true),
            (by_label("b"), false),
            (
                DependentObjectReference {
                    kind: "Gadget".to_owned(),
                    ..on("a")
                },
                false,
            ),
            (
                DependentObjectReference {
                    api_version: "v1".to_owned(),
                    ..on("a")
                },
                false,
            ),
            (
                DependentObjectReference {
                    namespace: None,
                    ..on("a")
                },
                false,
            ),
        ] {
            assert_eq!(names(&reference, &widget), expected, "{reference:?}");
        }
    }

    proptest! {
        #[test]
        fn each_object_has_one_place_and_comes_after_what_it_needs(edges in prop::collection::vec((0..8_usize, 0..8_usize), 0..20)) {
            let names = "abcdefgh";
            let letter = |place: usize| &names[place..=place];
            let needs: Vec<_> = edges.iter().map(|(of, on)| (letter(*of), letter(*on))).collect();
            let order = order(names, &needs);
            let mut letters: Vec<_> = order.chars().collect();
            letters.sort_unstable();
            prop_assert_eq!(letters.into_iter().collect::<String>(), names);
            let mut direct: HashMap<usize, HashSet<usize>> = HashMap::new();
            for (of, on) in &edges {
                direct.entry(*of).or_default().insert(*on);
            }
            let place = |of: usize| order.find(letter(of));
            for (of, on) in &edges {
                let is_mutual = of == on || reachable(*on, &direct).contains(of);
                prop_assert!(is_mutual || place(*on) < place(*of), "{order}");
            }
        }
    }
}
