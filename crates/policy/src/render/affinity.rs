//! Renders templates for affinity.

use serde_json::{Value, json};
use windlass_object::label_selector;

use crate::{
    api::{
        Affinity, NodeAffinity, NodeSelectorTerm, OverrideOperation, OverrideRuleTemplate, PodAffinity,
        PodAffinityTerm,
    },
    problem::PolicyProblems,
};

use super::{
    cue_text::{CueText, expression},
    patches::PatchList,
    pods::list_pods,
    quote::literal,
};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// A list of terms in a template.
struct TermList {
    /// nodeAffinity, podAffinity or podAntiAffinity.
    sort: &'static str,
    /// Required or preferred.
    level: &'static str,
    /// The path of the terms below the level.
    terms: &'static str,
}

pub(super) fn render(template: &OverrideRuleTemplate, program: &mut CueText, problems: &mut PolicyProblems) {
    let is_removed = template.operation == OverrideOperation::Remove;
    let Some(affinity) = &template.affinity else {
        problems.note(
            "affinity",
            "is missing: give nodeAffinity, podAffinity or podAntiAffinity",
        );
        return;
    };
    let lists = lists(affinity);
    problems.within("affinity", |problems| {
        if lists.is_empty() {
            problems.note("", "has no terms: give required or preferred ones of nodeAffinity, podAffinity or podAntiAffinity");
        }
        if !is_removed {
            check(affinity, problems);
        }
    });
    list_pods(program);
    let mut patches = PatchList::default();
    if is_removed {
        for list in &lists {
            let known = format!("pod.spec.affinity.{}.{}", list.sort, list.level);
            patches.remove(
                &format!("for pod in pods if {known} != _|_"),
                path(&[list.sort, list.level]),
            );
        }
        patches.declare(program);
        return;
    }
    program.section("", "affinity", literal(&with_terms(affinity, &lists)));
    patches.add(
        "for pod in pods if len(pod.spec.affinity) == _|_",
        path(&[]),
        expression("affinity"),
    );
    let mut sorts: Vec<_> = lists.iter().map(|list| list.sort).collect();
    sorts.dedup();
    for sort in sorts {
        patches.add(
            &format!(
                "for pod in pods if len(pod.spec.affinity) != _|_ if len(pod.spec.affinity.{sort}) == _|_"
            ),
            path(&[sort]),
            expression(format!("affinity.{sort}")),
        );
        for list in lists.iter().filter(|list| list.sort == sort) {
            if template.operation == OverrideOperation::Replace {
                patches.add(
                    &format!("for pod in pods if len(pod.spec.affinity.{sort}) != _|_"),
                    path(&[sort, list.level]),
                    expression(format!("affinity.{sort}.{}", list.level)),
                );
            } else {
                add_terms(list, program, &mut patches);
            }
        }
    }
    patches.declare(program);
}

/// Adds the missing terms to the existing ones.
fn add_terms(list: &TermList, program: &mut CueText, patches: &mut PatchList) {
    program.import("list");
    let TermList { sort, level, terms } = list;
    let dot = if terms.is_empty() { "" } else { "." };
    let terms_of = |affinity: &str| format!("{affinity}.{sort}.{level}{dot}{terms}");
    let known = terms_of("pod.spec.affinity");
    patches.add(
        &format!("for pod in pods if len(pod.spec.affinity.{sort}) != _|_ if len({known}) == _|_"),
        path(&[sort, level]),
        expression(format!("affinity.{sort}.{level}")),
    );
    let end: &[&str] = if terms.is_empty() { &["-"] } else { &[terms, "-"] };
    patches.add(
        &format!(
            "for pod in pods if len({known}) != _|_ for it in {} if !list.Contains({known}, it)",
            terms_of("affinity")
        ),
        path(&[&[*sort, *level], end].concat()),
        expression("it"),
    );
}

/// The path of a field below the affinity of a pod, as an expression.
fn path(names: &[&str]) -> String {
    let names: String = names.iter().map(|name| format!("/{name}")).collect();
    format!("\"\\(pod.path)/affinity{names}\"")
}

fn lists(affinity: &Affinity) -> Vec<TermList> {
    let mut lists = Vec::new();
    if let Some(node) = &affinity.node_affinity {
        let required = &node.required_during_scheduling_ignored_during_execution;
        if required
            .as_ref()
            .is_some_and(|required| !required.node_selector_terms.is_empty())
        {
            lists.push(TermList {
                sort: "nodeAffinity",
                level: REQUIRED,
                terms: "nodeSelectorTerms",
            });
        }
        if !node
            .preferred_during_scheduling_ignored_during_execution
            .is_empty()
        {
            lists.push(TermList {
                sort: "nodeAffinity",
                level: PREFERRED,
                terms: "",
            });
        }
    }
    for (sort, pods) in pod_sorts(affinity) {
        let required = pods
            .required_during_scheduling_ignored_during_execution
            .is_empty();
        let preferred = pods
            .preferred_during_scheduling_ignored_during_execution
            .is_empty();
        for (is_empty, level) in [(required, REQUIRED), (preferred, PREFERRED)] {
            if !is_empty {
                let terms = "";
                lists.push(TermList { sort, level, terms });
            }
        }
    }
    lists
}

fn pod_sorts(affinity: &Affinity) -> impl Iterator<Item = (&'static str, &PodAffinity)> {
    let sorts = [
        ("podAffinity", &affinity.pod_affinity),
        ("podAntiAffinity", &affinity.pod_anti_affinity),
    ];
    sorts
        .into_iter()
        .filter_map(|(sort, pods)| Some((sort, pods.as_ref()?)))
}

/// Removes empty parts and duplicate terms from the affinity.
fn with_terms(affinity: &Affinity, lists: &[TermList]) -> Value {
    let given = json!(affinity);
    let mut affinity = json!({});
    for list in lists {
        let mut level = given[list.sort][list.level].clone();
        let terms = if list.terms.is_empty() {
            &mut level
        } else {
            &mut level[list.terms]
        };
        if let Value::Array(terms) = terms {
            let mut known: Vec<Value> = Vec::new();
            terms.retain(|term| {
                let is_new = !known.contains(term);
                known.extend(is_new.then(|| term.clone()));
                is_new
            });
        }
        affinity[list.sort][list.level] = level;
    }
    affinity
}

/// Adds problems of terms that API servers reject.
fn check(affinity: &Affinity, problems: &mut PolicyProblems) {
    if let Some(node) = &affinity.node_affinity {
        problems.within("nodeAffinity", |problems| check_nodes(node, problems));
    }
    for (sort, pods) in pod_sorts(affinity) {
        problems.within(sort, |problems| {
            for (place, term) in pods
                .required_during_scheduling_ignored_during_execution
                .iter()
                .enumerate()
            {
                problems.within(format!("{REQUIRED}[{place}]"), |problems| {
                    check_pods(term, problems);
                });
            }
            for (place, term) in pods
                .preferred_during_scheduling_ignored_during_execution
                .iter()
                .enumerate()
            {
                problems.within(format!("{PREFERRED}[{place}]"), |problems| {
                    check_weight(term.weight, problems);
                    problems.within("podAffinityTerm", |problems| {
                        check_pods(&term.pod_affinity_term, problems);
                    });
                });
            }
        });
    }
}

fn check_nodes(node: &NodeAffinity, problems: &mut PolicyProblems) {
    let required = &node.required_during_scheduling_ignored_during_execution;
    let terms = required.iter().flat_map(|required| &required.node_selector_terms);
    for (place, term) in terms.enumerate() {
        problems.within(format!("{REQUIRED}.nodeSelectorTerms[{place}]"), |problems| {
            check_expressions(term, problems);
        });
    }
    let preferred = &node.preferred_during_scheduling_ignored_during_execution;
    for (place, term) in preferred.iter().enumerate() {
        problems.within(format!("{PREFERRED}[{place}]"), |problems| {
            check_weight(term.weight, problems);
            problems.within("preference", |problems| {
                check_expressions(&term.preference, problems);
            });
        });
    }
}

fn check_weight(weight: i32, problems: &mut PolicyProblems) {
    if !(1..=100).contains(&weight) {
        problems.note("weight", format!("is {weight}: it must be from 1 to 100"));
    }
}

fn check_expressions(term: &NodeSelectorTerm, problems: &mut PolicyProblems) {
    if term.match_expressions.is_empty() && term.match_fields.is_empty() {
        problems.note("", "is empty: give matchExpressions or matchFields");
    }
    for (name, requirements) in [
        ("matchExpressions", &term.match_expressions),
        ("matchFields", &term.match_fields),
    ] {
        for (place, requirement) in requirements.iter().enumerate() {
            problems.within(format!("{name}[{place}]"), |problems| {
                if requirement.key.is_empty() {
                    problems.note("key", "is missing: name a label or a field of nodes");
                }
                let values = requirement.values.len();
                match requirement.operator.as_str() {
                    "In" | "NotIn" if values == 0 => {
                        problems.note("values", "is missing: In and NotIn need it");
                    }
                    "Gt" | "Lt" if values != 1 => problems.note("values", "must have one number"),
                    "Exists" | "DoesNotExist" if values > 0 => {
                        problems.note("values", "must not be combined with Exists and DoesNotExist");
                    }
                    "In" | "NotIn" | "Gt" | "Lt" | "Exists" | "DoesNotExist" => {}
                    _ => problems.note("operator", "must be In, NotIn, Exists, DoesNotExist, Gt or Lt"),
                }
            });
        }
    }
}

fn check_pods(term: &PodAffinityTerm, problems: &mut PolicyProblems) {
    if term.topology_key.is_empty() {
        problems.note(
            "topologyKey",
            "is missing: name a label of nodes, for example kubernetes.io/hostname",
        );
    }
    let selectors = [
        ("labelSelector", &term.label_selector),
        ("namespaceSelector", &term.namespace_selector),
    ];
    for (name, selector) in selectors {
        if let Some(Err(error)) = selector.as_ref().map(label_selector::check) {
            problems.note(name, error);
        }
    }
}
