//! What one rule allows of another, as kube-apiserver sees it when somebody writes a role (`Covers` of
//! k8s.io/component-helpers/auth/rbac/validation).

use std::collections::{BTreeMap, BTreeSet};

use windlass_api::PermissionRule;

/// One verb on one thing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RightAtom {
    /// On a resource, or on one object of it.
    Resource {
        /// API group.
        group: String,
        /// The resource, or `resource/subresource`.
        resource: String,
        /// The name of an object; all of them, without.
        name: Option<String>,
        /// Verb.
        verb: String,
    },
    /// On a path that is no resource.
    Path {
        /// The path.
        path: String,
        /// Verb.
        verb: String,
    },
}

/// Any verb, group, resource or path.
const ANY: &str = "*";

/// What rules give, one by one.
pub fn atoms<'a>(rules: impl IntoIterator<Item = &'a PermissionRule>) -> BTreeSet<RightAtom> {
    let mut atoms = BTreeSet::new();
    for rule in rules {
        for verb in &rule.verbs {
            atoms.extend(rule.non_resource_urls.iter().map(|path| RightAtom::Path {
                path: path.clone(),
                verb: verb.clone(),
            }));
            for group in &rule.api_groups {
                for resource in &rule.resources {
                    let of = |name: Option<&String>| RightAtom::Resource {
                        group: group.clone(),
                        resource: resource.clone(),
                        name: name.cloned(),
                        verb: verb.clone(),
                    };
                    match rule.resource_names.as_slice() {
                        [] => _ = atoms.insert(of(None)),
                        names => atoms.extend(names.iter().map(|name| of(Some(name)))),
                    }
                }
            }
        }
    }
    atoms
}

/// Whether one of the `held` rules gives it. A `*` that is asked for is given by a `*` only.
pub fn covers(held: &[PermissionRule], atom: &RightAtom) -> bool {
    held.iter().any(|rule| gives(rule, atom))
}

fn gives(rule: &PermissionRule, atom: &RightAtom) -> bool {
    match atom {
        RightAtom::Resource {
            group,
            resource,
            name,
            verb,
        } => {
            let names_it = match name {
                None => rule.resource_names.is_empty(),
                Some(name) => rule.resource_names.is_empty() || rule.resource_names.contains(name),
            };
            has(&rule.verbs, verb)
                && has(&rule.api_groups, group)
                && rule.resources.iter().any(|held| gives_resource(held, resource))
                && names_it
        }
        RightAtom::Path { path, verb } => {
            has(&rule.verbs, verb) && rule.non_resource_urls.iter().any(|held| gives_path(held, path))
        }
    }
}

fn has(held: &[String], wanted: &str) -> bool {
    held.iter().any(|held| held == ANY || held == wanted)
}

/// `*/scale` is that subresource of all resources.
fn gives_resource(held: &str, wanted: &str) -> bool {
    let subresource = wanted.split_once('/').map(|(_, of)| of);
    held == ANY
        || held == wanted
        || held
            .strip_prefix("*/")
            .is_some_and(|held| subresource == Some(held))
}

fn gives_path(held: &str, wanted: &str) -> bool {
    match held.strip_suffix('*') {
        Some(beginning) => wanted.starts_with(beginning),
        None => held == wanted,
    }
}

/// As few rules as can be read that give `atoms`: first verbs, then names, then resources of one group are put together.
pub fn rules_of(atoms: impl IntoIterator<Item = RightAtom>) -> Vec<PermissionRule> {
    type Names = BTreeSet<String>;
    let mut paths: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    // By verb, so that names of one verb are one rule.
    let mut named: BTreeMap<(String, String, String), Option<Names>> = BTreeMap::new();
    for atom in atoms {
        match atom {
            RightAtom::Path { path, verb } => _ = paths.entry(path).or_default().insert(verb),
            RightAtom::Resource {
                group,
                resource,
                name,
                verb,
            } => {
                let names = named
                    .entry((group, resource, verb))
                    .or_insert_with(|| Some(Names::new()));
                match name {
                    Some(name) => _ = names.as_mut().map(|names| names.insert(name)),
                    // All of them.
                    None => *names = None,
                }
            }
        }
    }
    let mut verbs: BTreeMap<(String, String, Option<Names>), BTreeSet<String>> = BTreeMap::new();
    for ((group, resource, verb), names) in named {
        verbs.entry((group, resource, names)).or_default().insert(verb);
    }
    let mut resources: BTreeMap<(String, Option<Names>, BTreeSet<String>), BTreeSet<String>> =
        BTreeMap::new();
    for ((group, resource, names), verbs) in verbs {
        resources
            .entry((group, names, verbs))
            .or_default()
            .insert(resource);
    }
    let of_resources = resources
        .into_iter()
        .map(|((group, names, verbs), resources)| PermissionRule {
            api_groups: vec![group],
            resources: resources.into_iter().collect(),
            resource_names: names.into_iter().flatten().collect(),
            verbs: verbs.into_iter().collect(),
            ..PermissionRule::default()
        });
    let mut alike: BTreeMap<BTreeSet<String>, BTreeSet<String>> = BTreeMap::new();
    for (path, verbs) in paths {
        alike.entry(verbs).or_default().insert(path);
    }
    let of_paths = alike.into_iter().map(|(verbs, paths)| PermissionRule {
        non_resource_urls: paths.into_iter().collect(),
        verbs: verbs.into_iter().collect(),
        ..PermissionRule::default()
    });
    of_resources.chain(of_paths).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn rule(rule: Value) -> PermissionRule {
        serde_json::from_value(rule).unwrap()
    }

    fn is_covered(held: Value, wanted: Value) -> bool {
        let held = [rule(held)];
        atoms(&[rule(wanted)]).iter().all(|atom| covers(&held, atom))
    }

    #[test]
    fn a_rule_gives_what_kube_apiserver_says_that_it_gives() {
        let on = |groups: &[&str], resources: &[&str], names: &[&str], verbs: &[&str]| json!({"apiGroups": groups, "resources": resources, "resourceNames": names, "verbs": verbs});
        let path = |path: &str| json!({"nonResourceURLs": [path], "verbs": ["get"]});
        let pods = on(&[""], &["pods"], &[], &["get"]);
        let named = on(&[""], &["pods"], &["a"], &["get"]);
        let all = on(&["*"], &["*"], &[], &["*"]);
        for (held, wanted, expected) in [
            (pods.clone(), pods.clone(), true),
            (pods.clone(), named.clone(), true),
            (named.clone(), named.clone(), true),
            (named.clone(), pods.clone(), false),
            (named, on(&[""], &["pods"], &["a", "b"], &["get"]), false),
            (pods.clone(), on(&[""], &["pods"], &[], &["get", "list"]), false),
            (pods.clone(), on(&["", "apps"], &["pods"], &[], &["get"]), false),
            (pods.clone(), on(&[""], &["pods/log"], &[], &["get"]), false),
            (all.clone(), on(&[""], &["pods/log"], &["a"], &["get"]), true),
            (all.clone(), all.clone(), true),
            (on(&["*"], &["*"], &[], &["get"]), all.clone(), false),
            (pods.clone(), all.clone(), false),
            (all, path("/metrics"), false),
            (
                on(&[""], &["*/scale"], &[], &["get"]),
                on(&[""], &["a/scale"], &[], &["get"]),
                true,
            ),
            (
                on(&[""], &["*/scale"], &[], &["get"]),
                on(&[""], &["a/status"], &[], &["get"]),
                false,
            ),
            (on(&[""], &["*/scale"], &[], &["get"]), pods, false),
            (path("/metrics"), path("/metrics"), true),
            (path("/metrics/*"), path("/metrics/a"), true),
            (path("/metrics/*"), path("/metrics"), false),
            (path("*"), path("/metrics"), true),
        ] {
            assert_eq!(
                is_covered(held.clone(), wanted.clone()),
                expected,
                "{held} {wanted}"
            );
        }
    }

    #[test]
    fn atoms_are_put_together_again_to_be_read() {
        let rules = [
            rule(json!({"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["patch"]})),
            rule(json!({"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["create"]})),
            rule(json!({"apiGroups": ["apps"], "resources": ["daemonsets"], "verbs": ["create", "patch"]})),
            rule(
                json!({"apiGroups": ["apps"], "resources": ["daemonsets"], "resourceNames": ["a"], "verbs": ["patch"]}),
            ),
            rule(json!({"nonResourceURLs": ["/b", "/a"], "verbs": ["get"]})),
        ];
        let expected = [
            rule(
                json!({"apiGroups": ["apps"], "resources": ["daemonsets", "deployments"], "verbs": ["create", "patch"]}),
            ),
            rule(json!({"nonResourceURLs": ["/a", "/b"], "verbs": ["get"]})),
        ];
        assert_eq!(rules_of(atoms(&rules)), expected);
    }

    fn any_rule() -> impl Strategy<Value = PermissionRule> {
        let words = |of: &'static [&'static str], least| {
            proptest::sample::subsequence(of, least..=of.len())
                .prop_map(|words| words.into_iter().map(str::to_owned).collect::<Vec<_>>())
        };
        let resource = (
            words(&["", "apps", "*"], 1),
            words(&["pods", "pods/log", "*", "*/log"], 1),
            words(&["a", "b"], 0),
            words(&["get", "patch", "*"], 1),
        );
        let path = (words(&["/a", "/a/*", "*"], 1), words(&["get", "*"], 1));
        prop_oneof![
            resource.prop_map(|(api_groups, resources, resource_names, verbs)| PermissionRule {
                api_groups,
                resources,
                resource_names,
                verbs,
                ..PermissionRule::default()
            }),
            path.prop_map(|(non_resource_urls, verbs)| PermissionRule {
                non_resource_urls,
                verbs,
                ..PermissionRule::default()
            }),
        ]
    }

    proptest! {
        #[test]
        fn rules_that_were_put_together_give_all_that_went_in_and_nothing_else(
            rules in proptest::collection::vec(any_rule(), 0..5),
        ) {
            let before = atoms(&rules);
            let together = rules_of(before.clone());
            for atom in &before {
                prop_assert!(covers(&together, atom), "{atom:?}");
            }
            for atom in atoms(&together) {
                prop_assert!(covers(&rules, &atom), "{atom:?}");
            }
        }
    }
}
