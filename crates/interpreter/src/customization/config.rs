//! `Config`, as Karmada's proposal of retention has it: the retention of several kinds in one object.

use serde::Deserialize;
use serde_json::{Value, json};
use windlass_object::{json::drop_nulls, object};

use super::{
    CustomizationProblem, CustomizationTarget, FieldProblems, KARMADA_API_VERSION, LocalValueRetention,
    read::typed,
};

/// One retention of a `Config`, as the customization that says the same.
///
/// Karmada never built the kind, and no API server has it: who reads files may have them.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfiguredRetention {
    /// A ResourceInterpreterCustomization.
    pub customization: Value,
    /// The field of the `Config`.
    field: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ConfigSpec {
    retentions: Vec<KindRetention>,
}

/// What is kept of the objects of a kind.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct KindRetention {
    api_version: String,
    kind: String,
    fields: Vec<String>,
    retention_lua: String,
}

// === impl ConfiguredRetention ===

impl ConfiguredRetention {
    /// The retentions of an object, in their order; `None` where it is not a `Config`.
    ///
    /// # Errors
    ///
    /// When it has no name, a field is of another type, or two retentions are for one kind.
    pub fn of(config: &Value) -> Option<Result<Vec<Self>, Vec<CustomizationProblem>>> {
        let text = |pointer| object::text(config, pointer).unwrap_or_default();
        let is_config = text("/apiVersion") == KARMADA_API_VERSION && text("/kind") == "Config";
        is_config.then(|| Self::read(text("/metadata/name"), config.get("spec").cloned()))
    }

    fn read(name: &str, spec: Option<Value>) -> Result<Vec<Self>, Vec<CustomizationProblem>> {
        let mut problems = FieldProblems::default();
        if name.is_empty() {
            problems.note("metadata.name", "must not be empty");
        }
        let mut spec = spec.unwrap_or_else(|| json!({}));
        drop_nulls(&mut spec);
        let spec: ConfigSpec = typed(spec)?;
        let mut retentions = Vec::new();
        let mut targets: Vec<CustomizationTarget> = Vec::new();
        for (index, retention) in spec.retentions.into_iter().enumerate() {
            let field = format!("spec.retentions[{index}]");
            let target = CustomizationTarget {
                api_version: retention.api_version,
                kind: retention.kind,
            };
            if let Some(earlier) = targets.iter().position(|earlier| *earlier == target) {
                problems.note(
                    &field,
                    format!("is for the kind that retentions[{earlier}] is for"),
                );
            }
            let rule = LocalValueRetention {
                fields: retention.fields,
                lua_script: retention.retention_lua,
            };
            retentions.push(Self {
                customization: json!({
                    "apiVersion": KARMADA_API_VERSION, "kind": "ResourceInterpreterCustomization",
                    "metadata": {"name": format!("{name}/retentions[{index}]")},
                    "spec": {"target": target, "customizations": {"retention": rule}},
                }),
                field,
            });
            targets.push(target);
        }
        problems.or(|| Some(retentions))
    }

    /// What is wrong with the customization, as what is wrong with the `Config`.
    pub fn problem(&self, problem: &CustomizationProblem) -> CustomizationProblem {
        let places = [
            ("spec.target", ""),
            ("spec.customizations.retention.luaScript", ".retentionLua"),
            ("spec.customizations.retention", ""),
        ];
        let found = places
            .iter()
            .find_map(|(from, to)| Some((problem.path.strip_prefix(from)?, to)));
        let path = found.map_or_else(
            || self.field.clone(),
            |(rest, to)| format!("{}{to}{rest}", self.field),
        );
        CustomizationProblem {
            path,
            message: problem.message.clone(),
        }
    }
}
