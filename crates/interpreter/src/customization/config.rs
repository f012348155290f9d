//! `Config` of Karmada's proposal for retention: the retention of several kinds in one object.

use serde::Deserialize;
use serde_json::{Value, json};
use windlass_object::{json::drop_nulls, object};

use super::{
    CustomizationProblem, CustomizationTarget, FieldProblems, KARMADA_API_VERSION, LocalValueRetention,
    customization_object::decode,
};

/// One retention of a `Config`, as an equivalent customization.
///
/// Karmada never implemented the kind, and no API server serves it; it can only be in files.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfiguredRetention {
    /// A ResourceInterpreterCustomization.
    pub customization: Value,
    /// The path of the field in the `Config`.
    field: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ConfigSpec {
    retentions: Vec<KindRetention>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct KindRetention {
    api_version: String,
    kind: String,
    fields: Vec<String>,
    retention_lua: String,
}

impl ConfiguredRetention {
    /// Returns the retentions of an object in their order; `None` if it is not a `Config`.
    ///
    /// # Errors
    ///
    /// When it has no name, a field has the wrong type, or two retentions are for the same kind.
    pub fn from_config(config: &Value) -> Option<Result<Vec<Self>, Vec<CustomizationProblem>>> {
        let text = |pointer| object::text(config, pointer).unwrap_or_default();
        let is_config = text("/apiVersion") == KARMADA_API_VERSION && text("/kind") == "Config";
        is_config.then(|| Self::read(text("/metadata/name"), config.get("spec").cloned()))
    }

    fn read(name: &str, spec: Option<Value>) -> Result<Vec<Self>, Vec<CustomizationProblem>> {
        let mut problems = FieldProblems::default();
        if name.is_empty() {
            problems.add("metadata.name", "must not be empty");
        }
        let mut spec = spec.unwrap_or_else(|| json!({}));
        drop_nulls(&mut spec);
        let spec: ConfigSpec = decode(spec)?;
        let mut retentions = Vec::new();
        let mut targets: Vec<CustomizationTarget> = Vec::new();
        for (index, retention) in spec.retentions.into_iter().enumerate() {
            let field = format!("spec.retentions[{index}]");
            let target = CustomizationTarget {
                api_version: retention.api_version,
                kind: retention.kind,
            };
            if let Some(earlier) = targets.iter().position(|earlier| *earlier == target) {
                problems.add(&field, format!("has the same kind as retentions[{earlier}]"));
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
        problems.into_result(|| Some(retentions))
    }

    /// Converts a problem of the customization to one of the `Config`.
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
