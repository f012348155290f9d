//! What an API server takes as a toleration (`validateTolerations` of Kubernetes' core validation).

use windlass_object::rfc1123;

use crate::{
    api::{Toleration, TolerationOperator},
    problem::PolicyProblems,
};

/// The most characters of a label's value, and of the name in a label's key.
const LABEL_LENGTH: usize = rfc1123::LABEL_LENGTH;

/// Notes what is wrong with tolerations.
pub(crate) fn check(tolerations: &[Toleration], problems: &mut PolicyProblems) {
    for (index, toleration) in tolerations.iter().enumerate() {
        problems.within(format!("tolerations[{index}]"), |problems| {
            check_one(toleration, problems);
        });
    }
}

fn check_one(toleration: &Toleration, problems: &mut PolicyProblems) {
    let Toleration {
        key,
        operator,
        value,
        effect,
        toleration_seconds,
    } = toleration;
    let operator = operator.unwrap_or_default();
    if key.is_empty() && operator != TolerationOperator::Exists {
        problems.note(
            "operator",
            "must be Exists where key is empty, which means all keys",
        );
    } else if !key.is_empty() && !is_label_key(key) {
        problems.note("key", format!("{key:?} is not the key of a label"));
    }
    match operator {
        TolerationOperator::Exists if !value.is_empty() => {
            problems.note("value", "must be empty where operator is Exists");
        }
        TolerationOperator::Equal if !value.is_empty() && !is_label_name(value) => {
            problems.note("value", format!("{value:?} is not the value of a label"));
        }
        _ => {}
    }
    if !["", "NoSchedule", "PreferNoSchedule", "NoExecute"].contains(&effect.as_str()) {
        problems.note("effect", "must be NoSchedule, PreferNoSchedule or NoExecute");
    } else if toleration_seconds.is_some() && effect != "NoExecute" {
        problems.note("effect", "must be NoExecute where tolerationSeconds is given");
    }
}

/// A name with a domain before it, if there is a slash (`IsQualifiedName`).
pub(crate) fn is_label_key(key: &str) -> bool {
    match key.split_once('/') {
        Some((domain, name)) => rfc1123::is_subdomain(domain) && is_label_name(name),
        None => is_label_name(key),
    }
}

/// Letters, digits, and inner dots, hyphens and underscores.
pub(crate) fn is_label_name(name: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let ends = [name.bytes().next(), name.bytes().last()];
    name.len() <= LABEL_LENGTH
        && ends
            .iter()
            .all(|byte| byte.is_some_and(|byte| byte.is_ascii_alphanumeric()))
        && name.bytes().all(is_inner)
}
