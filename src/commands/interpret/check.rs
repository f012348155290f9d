//! `windlass interpret --check`: validates customizations.

use interpreter::{
    Operation,
    customization::{CustomizationProblem, CustomizationRules, admit},
};
use serde_json::Value;
use windlass_object::{object, text::OneLine};

use super::files::Customization;

/// Prints for each rule of each customization whether it is set and valid, as `karmadactl interpret --check`
/// does. Returns whether all are valid.
pub(super) fn run(customizations: &[Customization]) -> bool {
    let objects: Vec<_> = customizations
        .iter()
        .map(|customization| customization.object.clone())
        .collect();
    let mut is_good = true;
    for (index, customization) in customizations.iter().enumerate() {
        let mut others = objects.clone();
        others.remove(index);
        let problems = admit(&customization.object, None, &others)
            .err()
            .unwrap_or_default();
        is_good &= problems.is_empty();
        print!("{}", shown(customization, &problems));
    }
    is_good
}

fn shown(customization: &Customization, problems: &[CustomizationProblem]) -> String {
    let object = &customization.object;
    let name = object::text(object, "/metadata/name").map(str::to_owned);
    let source = name.unwrap_or_else(|| customization.file.display().to_string());
    let mut text = format!(
        "-----------------------------------\nSOURCE: {}\n",
        OneLine(&source)
    );
    for target in targets(object) {
        text.push_str(&format!("TARGET: {}\n", OneLine(&target)));
    }
    let is_of = |problem: &CustomizationProblem, operation| {
        let field = format!("spec.customizations.{}", CustomizationRules::field(operation));
        problem.path == field || problem.path.starts_with(&format!("{field}."))
    };
    let is_elsewhere =
        |problem: &&CustomizationProblem| !Operation::ALL.iter().any(|operation| is_of(problem, *operation));
    for problem in problems.iter().filter(is_elsewhere) {
        let problem = customization.problem(problem).to_string();
        text.push_str(&format!("ERROR: {}\n", OneLine(&problem)));
    }
    text.push_str("RULERS:\n");
    for operation in Operation::ALL {
        let field = CustomizationRules::field(operation);
        let is_set = object
            .pointer(&format!("/spec/customizations/{field}"))
            .is_some_and(is_something);
        let wrong: Vec<_> = problems
            .iter()
            .filter(|problem| is_of(problem, operation))
            .map(|problem| format!("ERROR: {}", OneLine(&problem.message)))
            .collect();
        let state = match (wrong.is_empty(), is_set) {
            (false, _) => wrong.join("\n                         "),
            (true, true) => "PASS".to_owned(),
            (true, false) => "UNSET".to_owned(),
        };
        text.push_str(&format!("    {:<21}{state}\n", format!("{operation}:")));
    }
    text
}

fn is_something(rule: &Value) -> bool {
    let is_empty = |value: &Value| value.is_null() || value.as_str().is_some_and(str::is_empty);
    rule.as_object()
        .is_some_and(|fields| fields.values().any(|value| !is_empty(value)))
}

/// Returns the kinds that a customization or configuration applies to.
fn targets(object: &Value) -> Vec<String> {
    let shown = |target: &Value| {
        let api_version = object::text(target, "/apiVersion").unwrap_or("?");
        let kinds = object::items(target, "/kinds").iter().filter_map(Value::as_str);
        let kinds: Vec<_> = kinds.chain(object::text(target, "/kind")).collect();
        format!("{api_version} {}", kinds.join(", "))
    };
    let one = object.pointer("/spec/target").into_iter();
    one.chain(object::items(object, "/spec/targets"))
        .map(shown)
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn checked(customizations: Value) -> String {
        let object = json!({
            "apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterCustomization",
            "metadata": {"name": "c"},
            "spec": {"target": {"apiVersion": "example.com/v1", "kind": "Thing"}, "customizations": customizations},
        });
        let problems = admit(&object, None, &[]).err().unwrap_or_default();
        let customization = Customization::new("c.yaml".as_ref(), object);
        shown(&customization, &problems)
    }

    #[test]
    fn each_rule_passes_is_wrong_or_is_not_set() {
        let script = |text: &str| json!({ "luaScript": text });
        insta::assert_snapshot!(checked(json!({
            "healthInterpretation": script("function InterpretHealth(obj) return true end"),
            "retention": script("function Retain(a, b) return a"),
            "statusReflection": script("function Other() end"),
            "replicaRevision": script(""),
        })), @r"
        -----------------------------------
        SOURCE: c
        TARGET: example.com/v1 Thing
        RULERS:
            InterpretReplica:    UNSET
            InterpretComponent:  UNSET
            ReviseReplica:       UNSET
            Retain:              ERROR: ResourceInterpreterCustomization c:1: 'end' expected near '<eof>'
            AggregateStatus:     UNSET
            InterpretStatus:     ERROR: not found function ReflectStatus
            InterpretHealth:     PASS
            InterpretDependency: UNSET
        ");
    }
}
