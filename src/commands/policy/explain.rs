//! `windlass policy explain`: which policies and rules match an object, and why others do not.

use std::path::PathBuf;

use policy::{Engines, EvaluationBudget, ExplainedPart, PolicyExplanation};
use serde_json::{Value, json};

use super::{
    policy_files::{PolicyFiles, object_name},
    request::RequestArgs,
};
use crate::terminal::{Format, Table, print};

const AFTER_HELP: &str =
    "One matching resourceSelector is enough. Rules are not run: windlass policy apply does that.

Examples:
  windlass policy explain --policy policies/ --object pod.yaml
  windlass policy explain --policy policy.yaml --object pod.yaml --operation DELETE -o json";

/// Shows which policies and rules match an object, and the first failed selector or condition of others.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    /// File or folder with policies, repeatable.
    #[arg(long, value_name = "FILE", required = true)]
    policy: Vec<PathBuf>,

    #[command(flatten)]
    request: RequestArgs,

    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

impl Args {
    /// Explains the policies. Returns true.
    ///
    /// # Errors
    ///
    /// When a file or an argument is invalid.
    pub(super) fn run(self) -> anyhow::Result<bool> {
        let engines = Engines::built_in();
        let policies = PolicyFiles::read(&self.policy, &engines)?.into_valid()?;
        let requests = self.request.read()?;
        let mut table = Table::new(&["OBJECT", "POLICY", "FIELD", "MATCHES", "REASON"]);
        let mut found = Vec::new();
        for object in &requests.objects {
            let attributes = requests.attributes(object);
            let mut explanations: Vec<_> = policies
                .policies
                .iter()
                .map(|policy| {
                    let budget = EvaluationBudget::default();
                    PolicyExplanation::new(&policy.object, &engines, &attributes, &budget)
                })
                .collect();
            // In order of evaluation.
            explanations.sort_by(|one, other| one.policy.cmp(&other.policy));
            for explanation in &explanations {
                add(&mut table, &object_name(object), explanation);
            }
            let explanations = explanations.iter().map(as_json).collect::<Vec<_>>();
            found.push(json!({"object": object_name(object), "policies": explanations}));
        }
        print(self.output, &found, || table.to_string())?;
        Ok(true)
    }
}

/// Adds rows for the policy and its rules.
fn add(table: &mut Table, object: &str, explanation: &PolicyExplanation) {
    let answer = |matches| if matches { "yes" } else { "no" };
    let matches = answer(explanation.is_asked);
    table.add([&object, &explanation.policy, &"", &matches, &""]);
    for part in explanation.parts.iter().chain(&explanation.rules) {
        let matches = answer(part.mismatch.is_none());
        let mismatch = part.mismatch.as_deref().unwrap_or_default();
        table.add([&"", &"", &part.field, &matches, &mismatch]);
    }
}

fn as_json(explanation: &PolicyExplanation) -> Value {
    let part = |part: &ExplainedPart| {
        let mut shown = json!({"field": part.field, "holds": part.mismatch.is_none()});
        if let Some(mismatch) = &part.mismatch {
            shown["whyNot"] = json!(mismatch);
        }
        shown
    };
    json!({
        "policy": explanation.policy.to_string(),
        "asked": explanation.is_asked,
        "parts": explanation.parts.iter().map(part).collect::<Vec<_>>(),
        "rules": explanation.rules.iter().map(part).collect::<Vec<_>>(),
    })
}
