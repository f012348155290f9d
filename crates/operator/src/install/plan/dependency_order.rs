//! The order in which objects of one phase are applied.

use interpreter::answer::DependentObjectReference;
use serde_json::Value;
use windlass_object::{label_selector, object};

/// Objects with what each needs, so that each comes after those of them that it needs. What needs each other, or nothing, stays as it
/// is.
pub fn in_dependency_order<'a>(objects: Vec<(&'a Value, Vec<DependentObjectReference>)>) -> Vec<&'a Value> {
    let mut states = vec![State::Ahead; objects.len()];
    let mut ordered = Vec::with_capacity(objects.len());
    for index in 0..objects.len() {
        visit(index, &objects, &mut states, &mut ordered);
    }
    ordered
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Ahead,
    /// Under way, or done: whoever needs it and is needed by it need not wait.
    Visited,
}

fn visit<'a>(
    index: usize,
    objects: &[(&'a Value, Vec<DependentObjectReference>)],
    states: &mut [State],
    ordered: &mut Vec<&'a Value>,
) {
    // Not by recursion: bundles are of strangers, and a chain may be as long as they like.
    let mut path = vec![(index, 0)];
    if states[index] == State::Visited {
        return;
    }
    states[index] = State::Visited;
    while let Some((index, next)) = path.pop() {
        let (dependent, needs) = &objects[index];
        let needed = (next..objects.len())
            .find(|other| states[*other] == State::Ahead && is_needed(objects[*other].0, dependent, needs));
        match needed {
            Some(other) => {
                states[other] = State::Visited;
                path.push((index, other + 1));
                path.push((other, 0));
            }
            None => ordered.push(dependent),
        }
    }
}

fn is_needed(object: &Value, dependent: &Value, needs: &[DependentObjectReference]) -> bool {
    needs.iter().any(|reference| {
        let text = |pointer| object::text(object, pointer);
        let is_of_kind = text("/apiVersion") == Some(&*reference.api_version)
            && text("/kind") == Some(&*reference.kind);
        let namespace = reference.namespace.as_deref();
        let own = object::text(dependent, "/metadata/namespace");
        let is_there = text("/metadata/namespace") == namespace.or(own) || text("/metadata/namespace").is_none();
        let labels = object.pointer("/metadata/labels").unwrap_or(&Value::Null);
        let is_named = match (&reference.name, &reference.label_selector) {
            (Some(name), _) => text("/metadata/name") == Some(name),
            (None, Some(selector)) => label_selector::matches(selector, labels),
            (None, None) => false,
        };
        is_of_kind && is_there && is_named
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn object(name: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "n", "name": name, "labels": {"is": name}}})
    }

    fn on(name: &str) -> DependentObjectReference {
        DependentObjectReference {
            api_version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            name: Some(name.to_owned()),
            ..DependentObjectReference::default()
        }
    }

    fn ordered(objects: &[(&str, &[&str])]) -> Vec<String> {
        let made: Vec<_> = objects.iter().map(|(name, _)| object(name)).collect();
        let needs = objects
            .iter()
            .map(|(_, needs)| needs.iter().map(|name| on(name)).collect());
        in_dependency_order(made.iter().zip(needs).collect())
            .into_iter()
            .filter_map(|object| object::text(object, "/metadata/name").map(str::to_owned))
            .collect()
    }

    #[test]
    fn what_is_needed_comes_first_and_everything_else_stays() {
        for (objects, expected) in [
            (&[("a", &[][..]), ("b", &[])][..], vec!["a", "b"]),
            (&[("a", &["b"]), ("b", &[])], vec!["b", "a"]),
            (&[("a", &["c"]), ("b", &[]), ("c", &["b"])], vec!["b", "c", "a"]),
            (&[("a", &["b"]), ("b", &["a"]), ("c", &[])], vec!["b", "a", "c"]),
            (&[("a", &["a", "elsewhere"])], vec!["a"]),
        ] {
            assert_eq!(ordered(objects), expected);
        }
    }

    #[test]
    fn a_selector_names_what_it_matches() {
        let (a, b) = (object("a"), object("b"));
        let needs = DependentObjectReference {
            name: None,
            label_selector: Some(json!({"matchLabels": {"is": "b"}})),
            ..on("")
        };
        assert_eq!(in_dependency_order(vec![(&a, vec![needs]), (&b, vec![])]), [&b, &a]);
    }

    #[test]
    fn a_long_chain_is_no_deep_recursion() {
        let names: Vec<_> = (0..2000).map(|number| number.to_string()).collect();
        let made: Vec<_> = names.iter().map(|name| object(name)).collect();
        let needs = (0..2000).map(|number| vec![on(&(number + 1).to_string())]);
        let ordered = in_dependency_order(made.iter().zip(needs).collect());
        assert!(ordered.into_iter().eq(made.iter().rev()));
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_nothing_comes_before_what_it_needs(
            edges in prop::collection::vec((0_usize..8, 0_usize..8), 0..16),
        ) {
            // Towards higher numbers only: no circle.
            let needs = |index: usize| edges.iter()
                .filter(move |(from, to)| *from == index && from < to)
                .map(|(_, to)| on(&to.to_string()))
                .collect::<Vec<_>>();
            let made: Vec<_> = (0..8).map(|number| object(&number.to_string())).collect();
            let ordered = in_dependency_order(made.iter().enumerate().map(|(index, object)| (object, needs(index))).collect());
            prop_assert_eq!(ordered.len(), made.len());
            let place = |number: usize| ordered.iter().position(|object| *object == &made[number]).unwrap();
            for (from, to) in edges.iter().filter(|(from, to)| from < to) {
                prop_assert!(place(*to) < place(*from));
            }
        }
    }
}
