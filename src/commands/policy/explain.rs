//! `windlass policy explain`: which policies and rules are for an object, and why others are not.

use std::path::PathBuf;

use policy::{Engines, EvaluationBudget, ExplainedPart, PolicyExplanation};
use serde_json::{Value, json};

use super::{
    policy_files::{PolicyFiles, object_name},
    request::RequestArgs,
};
use crate::terminal::{Format, Table, print};

/// Shows which policies and rules are for an object, and of each selector and condition what does not hold first.
///
/// Of several resourceSelectors one is enough. Rules are not run: apply says what they do.
///
///   windlass policy explain --policy policies/ --object pod.yaml
///   windlass policy explain --policy policy.yaml --object pod.yaml --operation DELETE -o json
///
/// Exits 0, and 2 where a file or an argument is wrong.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// File, or folder of files, with policies; can be repeated.
    #[arg(long, value_name = "FILE", required = true)]
    policy: Vec<PathBuf>,

    #[command(flatten)]
    request: RequestArgs,

    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

// === impl Args ===

impl Args {
    /// Explains. Returns that it did.
    ///
    /// # Errors
    ///
    /// When a file or an argument is wrong.
    pub(super) fn run(self) -> anyhow::Result<bool> {
        let engines = Engines::built_in();
        let policies = PolicyFiles::read(&self.policy, &engines)?.into_valid()?;
        let requests = self.request.read()?;
        let mut table = Table::new(&["OBJECT", "POLICY", "FIELD", "HOLDS", "WHY NOT"]);
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
            // In the order in which they are asked.
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

/// The policy as a whole, then its parts.
fn add(table: &mut Table, object: &str, explanation: &PolicyExplanation) {
    let asked = if explanation.is_asked {
        "asked"
    } else {
        "not asked"
    };
    table.add([&object, &explanation.policy, &"", &asked, &""]);
    for part in explanation.parts.iter().chain(&explanation.rules) {
        let holds = if part.mismatch.is_none() { "yes" } else { "no" };
        let mismatch = part.mismatch.as_deref().unwrap_or_default();
        table.add([&"", &"", &part.field, &holds, &mismatch]);
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
