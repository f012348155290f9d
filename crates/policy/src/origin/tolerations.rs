//! Validates tolerations like an API server (`validateTolerations` of Kubernetes' core validation).

use windlass_object::label_selector::{is_label_key, is_label_name};

use crate::{
    api::{Toleration, TolerationOperator},
    problem::PolicyProblems,
};

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
        problems.note("operator", "must be Exists if key is empty, which means all keys");
    } else if !key.is_empty() && !is_label_key(key) {
        problems.note("key", format!("{key:?} is not the key of a label"));
    }
    match operator {
        TolerationOperator::Exists if !value.is_empty() => {
            problems.note("value", "must be empty if operator is Exists");
        }
        TolerationOperator::Equal if !value.is_empty() && !is_label_name(value) => {
            problems.note("value", format!("{value:?} is not the value of a label"));
        }
        _ => {}
    }
    if !["", "NoSchedule", "PreferNoSchedule", "NoExecute"].contains(&effect.as_str()) {
        problems.note("effect", "must be NoSchedule, PreferNoSchedule or NoExecute");
    } else if toleration_seconds.is_some() && effect != "NoExecute" {
        problems.note("effect", "must be NoExecute if tolerationSeconds is set");
    }
}
