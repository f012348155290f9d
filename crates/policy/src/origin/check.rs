//! Validates typed overrides.

use std::collections::BTreeMap;

use windlass_object::{
    Quantity,
    label_selector::{is_label_key, is_label_name},
};

use super::{containers::ALL, tolerations};
use crate::{
    api::{IntOrString, OriginOverrider, OriginType, OverrideOperation},
    problem::PolicyProblems,
};

/// Adds the problems of a rule's typed overrides.
pub(crate) fn check(overriders: &[OriginOverrider], problems: &mut PolicyProblems) {
    for (index, overrider) in overriders.iter().enumerate() {
        problems.within(format!("origin[{index}]"), |problems| {
            check_one(overrider, problems);
        });
        let conflicts = |other: &&OriginOverrider| {
            let types = [overrider.origin_type, other.origin_type];
            types.contains(&OriginType::ResourceRequirements)
                && types.contains(&OriginType::ResourceOversell)
                && is_for_same_container(overrider, other)
        };
        if let Some(earlier) = overriders[..index].iter().position(|other| conflicts(&other)) {
            let message = format!(
                "resourceRequirements and resourceOversell are for the same container as in origin[{earlier}]: use one of them"
            );
            problems.note(format!("origin[{index}]"), message);
        }
    }
}

fn is_for_same_container(one: &OriginOverrider, other: &OriginOverrider) -> bool {
    match (one.containers.as_slice(), other.containers.as_slice()) {
        ([], []) => one.container_count == other.container_count,
        // A container selected by index may have any name.
        ([], _) | (_, []) => false,
        (names, others) => names
            .iter()
            .any(|name| name == ALL || others.contains(name) || others.iter().any(|other| other == ALL)),
    }
}

fn check_one(overrider: &OriginOverrider, problems: &mut PolicyProblems) {
    let is_removal = overrider.operation == OverrideOperation::Remove;
    match overrider.origin_type {
        OriginType::Annotations => check_keys("annotations", &overrider.annotations, problems),
        OriginType::Labels => check_labels("labels", &overrider.labels, is_removal, problems),
        OriginType::NodeSelector => {
            check_labels("nodeSelector", &overrider.node_selector, is_removal, problems);
        }
        OriginType::Tolerations => tolerations::check(&overrider.tolerations, problems),
        OriginType::ResourceRequirements => {
            if let Some(given) = &overrider.resource_requirements {
                problems.within("resourceRequirements", |problems| {
                    check_quantities("limits", &given.limits, problems);
                    check_quantities("requests", &given.requests, problems);
                });
            }
        }
        OriginType::ResourceOversell => {
            if is_removal {
                problems.note(
                    "operation",
                    "must be replace: resourceOversell multiplies the existing value",
                );
            }
            check_factors(&overrider.resources_oversell, problems);
        }
        OriginType::TopologySpreadConstraints => check_spread(overrider, problems),
        OriginType::HostNetwork | OriginType::SchedulerName | OriginType::Affinity => {}
    }
}

fn check_keys<T>(name: &str, entries: &BTreeMap<String, T>, problems: &mut PolicyProblems) {
    for key in entries.keys().filter(|key| !is_label_key(key)) {
        problems.note(name, format!("{key:?} is not a key of {name}"));
    }
}

fn check_labels(
    name: &str,
    labels: &BTreeMap<String, String>,
    is_removal: bool,
    problems: &mut PolicyProblems,
) {
    check_keys(name, labels, problems);
    let is_wrong = |value: &&String| !is_removal && !value.is_empty() && !is_label_name(value);
    for value in labels.values().filter(is_wrong) {
        problems.note(name, format!("{value:?} is not the value of a label"));
    }
}

fn check_quantities(name: &str, amounts: &BTreeMap<String, IntOrString>, problems: &mut PolicyProblems) {
    for (resource, amount) in amounts {
        if let IntOrString::String(text) = amount
            && let Err(error) = Quantity::parse(text)
        {
            problems.note(format!("{name}.{resource}"), error);
        }
    }
}

fn check_factors(sections: &BTreeMap<String, BTreeMap<String, String>>, problems: &mut PolicyProblems) {
    for (section, factors) in sections {
        if !["requests", "limits"].contains(&section.as_str()) {
            problems.note(
                "resourcesOversell",
                format!("{section:?} must be requests or limits"),
            );
        }
        for (resource, factor) in factors {
            let is_number = factor.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
            let number = Quantity::parse(factor).ok().filter(|_| is_number);
            if number.is_none_or(|number| number.is_zero() || number > Quantity::from(1000_i64)) {
                let message = format!("{factor:?} must be a number above 0 and up to 1000");
                problems.note(format!("resourcesOversell.{section}.{resource}"), message);
            }
        }
    }
}

fn check_spread(overrider: &OriginOverrider, problems: &mut PolicyProblems) {
    for (index, constraint) in overrider.topology_spread_constraints.iter().enumerate() {
        problems.within(format!("topologySpreadConstraints[{index}]"), |problems| {
            if constraint.max_skew <= 0 {
                problems.note("maxSkew", "must be greater than 0");
            }
            if !["DoNotSchedule", "ScheduleAnyway"].contains(&constraint.when_unsatisfiable.as_str()) {
                problems.note("whenUnsatisfiable", "must be DoNotSchedule or ScheduleAnyway");
            }
        });
    }
}
