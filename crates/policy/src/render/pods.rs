//! Where pods and their containers are in objects of any kind.

use super::{
    cue_text::{CueElement, CueInput, CueText, ValueText, comprehension, expression, field},
    quote::quote,
};

/// The places of pods: of CronJobs, and of whatever makes pods as Deployments do.
const TEMPLATES: [&str; 2] = ["spec.template.spec", "spec.jobTemplate.spec.template.spec"];

/// Has the program list the pods of the object: itself, or those that it makes. What has no containers has no pods.
pub(super) fn list_pods(program: &mut CueText) {
    let object = program.input(CueInput::Object);
    let pod = |clauses: String, place: &str| {
        let path = format!("/{}", place.replace('.', "/"));
        comprehension(
            format!("if len({object}.{place}.containers) != _|_{clauses}"),
            ValueText::Struct(vec![
                field("path", expression(quote(&path))),
                field("spec", expression(format!("{object}.{place}"))),
            ]),
        )
    };
    let mut pods = vec![pod(format!(" if {object}.kind == \"Pod\""), "spec")];
    pods.extend(TEMPLATES.map(|place| pod(String::new(), place)));
    program.section(
        "The pod, or the pods that the object makes.",
        "pods",
        ValueText::List(pods),
    );
}

/// Has the program list the containers of the pods that have one of the names. `*` is all, and no name is the first container.
pub(super) fn list_containers(program: &mut CueText, names: &[String]) {
    list_pods(program);
    let containers = |list: &str, clauses: &str| -> CueElement {
        // A pod that is listed has containers, but need not have others.
        let guard = match list {
            "containers" => String::new(),
            _ => format!("if len(pod.spec.{list}) != _|_ "),
        };
        comprehension(
            format!("for pod in pods {guard}for i, it in pod.spec.{list}{clauses}"),
            ValueText::Struct(vec![
                field("path", expression(format!("\"\\(pod.path)/{list}/\\(i)\""))),
                field("container", expression("it")),
            ]),
        )
    };
    let (comment, selected) = match names {
        [] => (
            "Their first containers.",
            vec![containers("containers", " if i == 0")],
        ),
        names => {
            let mut known = Vec::new();
            for name in names.iter().map(|name| quote(name)) {
                if !known.contains(&name) {
                    known.push(name);
                }
            }
            let by_name = format!(
                " if it.name != _|_ for name in [{}] if it.name == name",
                known.join(", ")
            );
            let (comment, clauses) = if names.iter().any(|name| name == "*") {
                ("Their containers and init containers.", "")
            } else {
                (
                    "Those of their containers and init containers that are named.",
                    by_name.as_str(),
                )
            };
            let both = ["containers", "initContainers"].map(|list| containers(list, clauses));
            (comment, both.into())
        }
    };
    program.section(comment, "containers", ValueText::List(selected));
}
