//! Customizations that others overrule.

use serde_json::{Value, json};

use super::{customization, interpretation};
use crate::{
    Operation,
    customization::{Customizations, OverruledCustomization},
};

fn overruled(objects: &[Value]) -> Vec<OverruledCustomization> {
    let customizations = Customizations::default();
    customizations.replace(objects);
    customizations.overruled()
}

#[test]
fn an_equally_specific_later_customization_is_overruled() {
    let health = || json!({"healthInterpretation": {"condition": {"type": "Ready"}}});
    let both = || {
        let mut both = health();
        both["retention"] = json!({"fields": [".spec.a"]});
        both
    };
    let deployments = || json!([{"apiVersion": "apps/v1", "kinds": ["Deployment", "StatefulSet"]}]);
    let first = customization("0", "apps/v1", "Deployment", health());
    let second = interpretation("a", deployments(), "Replace", both());
    let third = interpretation("b", deployments(), "Replace", both());
    let said = |customization: &str, by: &str, operations: &[Operation]| OverruledCustomization {
        customization: customization.to_owned(),
        by: by.to_owned(),
        operations: operations.to_vec(),
    };
    let karmadas = "ResourceInterpreterCustomization 0";
    let expected = [
        said(
            "ResourceInterpretation a",
            karmadas,
            &[Operation::InterpretHealth],
        ),
        said(
            "ResourceInterpretation b",
            "ResourceInterpretation a",
            &[Operation::Retain],
        ),
        said(
            "ResourceInterpretation b",
            karmadas,
            &[Operation::InterpretHealth],
        ),
    ];
    let found = overruled(&[third.clone(), second, first.clone()]);
    assert_eq!(found.len(), expected.len(), "{found:?}");
    assert!(expected.iter().all(|said| found.contains(said)), "{found:?}");
    assert_eq!(
        expected[0].to_string(),
        "is not used for InterpretHealth of objects that ResourceInterpreterCustomization 0 also selects: both targets are equally specific, and ResourceInterpreterCustomization 0 has precedence by name"
    );
    let chained = interpretation("c", deployments(), "Chain", health());
    assert_eq!(overruled(&[first.clone(), chained]), [], "it chains");
    let named = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}]);
    let named = interpretation("d", named, "Replace", health());
    assert_eq!(overruled(&[first, named]), [], "it is more specific");
}

#[test]
fn dependency_rules_are_never_overruled() {
    let needs =
        || json!({"dependencyInterpretation": {"luaScript": "function GetDependencies(o) return {} end"}});
    let found = overruled(&[
        customization("a", "apps/v1", "Deployment", needs()),
        customization("b", "apps/v1", "Deployment", needs()),
    ]);
    assert_eq!(found, []);
}
