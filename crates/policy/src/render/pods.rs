//! Renders the lists of pods and containers in an object of any kind.

use super::{
    cue_text::{CueElement, CueInput, CueText, ValueText, comprehension, expression, field},
    quote::quote,
};

/// The paths of pod templates: in CronJobs, and in workloads like Deployments.
const TEMPLATES: [&str; 2] = ["spec.template.spec", "spec.jobTemplate.spec.template.spec"];

/// Adds the list of the object's pods to the program: itself, or its pod template. An object without
/// containers has no pods.
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
        "The pod, or the pod template of the object.",
        "pods",
        ValueText::List(pods),
    );
}

/// Adds the list of containers with one of the names to the program. `*` means all, and no name means the
/// first container.
pub(super) fn list_containers(program: &mut CueText, names: &[String]) {
    list_pods(program);
    let containers = |list: &str, clauses: &str| -> CueElement {
        // A listed pod has containers, but may lack init containers.
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
                    "Their containers and init containers with these names.",
                    by_name.as_str(),
                )
            };
            let both = ["containers", "initContainers"].map(|list| containers(list, clauses));
            (comment, both.into())
        }
    };
    program.section(comment, "containers", ValueText::List(selected));
}
