//! `windlass policy apply`: the effect of policies on an object.

use std::{collections::HashSet, path::PathBuf};

use clap::ValueEnum;
use policy::{
    Engines, EvaluationBudget, FetchedAnswer, PolicyFinding, Rehearsal, ValidationOutcome,
    api::ValidationAction,
    patch::{JsonPatch, JsonPatchOperation},
};
use serde_json::Value;
use windlass_object::text::OneLine;

use super::{
    diff,
    policy_files::{PolicyFiles, object_name},
    request::RequestArgs,
};
use crate::terminal::{Format, print};

const AFTER_HELP: &str =
    "Override policies are applied first, cluster-wide ones before those of the namespace, by name; then
validate policies. Exits 0 if the object is allowed, 1 if it is denied, 2 if a file or an argument
is invalid.

Examples:
  windlass policy apply --policy mirror.yaml --object pod.yaml
  windlass policy apply --policy policies/ --object new.yaml --old-object old.yaml -o yaml
  windlass policy apply --policy quota.yaml --object pod.yaml --data cluster.yaml -o patch";

/// Shows how policies change an object, and which rule did what.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    /// File or folder with policies, repeatable.
    #[arg(long, value_name = "FILE", required = true)]
    policy: Vec<PathBuf>,

    #[command(flatten)]
    request: RequestArgs,

    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Output::Diff)]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Diff,
    Yaml,
    Json,
    Patch,
}

impl Args {
    /// Evaluates the policies for each object. Returns whether all are allowed.
    ///
    /// # Errors
    ///
    /// When a file or an argument is invalid.
    pub(super) fn run(self) -> anyhow::Result<bool> {
        let policies = PolicyFiles::read(&self.policy, &Engines::built_in())?.into_valid()?;
        let requests = self.request.read()?;
        let set = policies.set();
        let mut are_allowed = true;
        for (index, object) in requests.objects.iter().enumerate() {
            let attributes = requests.attributes(object);
            let rehearsal = Rehearsal::run(
                &set,
                &attributes,
                &[&requests.known],
                &EvaluationBudget::default(),
            );
            let is_allowed = rehearsal.is_allowed();
            are_allowed &= is_allowed;
            let heading = format!("{} {}", attributes.operation.name(), object_name(object));
            let report = report(&heading, &rehearsal);
            if self.output == Output::Diff {
                let after = (
                    &*format!("{}, after policies", object_name(object)),
                    after(&rehearsal),
                );
                let diff = diff::unified((&object_name(object), object), after)?;
                print(Format::Table, &(), || format!("{report}{diff}"))?;
                continue;
            }
            eprint!("{report}");
            if is_allowed {
                self.print_result(index, &rehearsal)?;
            }
        }
        Ok(are_allowed)
    }

    fn print_result(&self, index: usize, rehearsal: &Rehearsal) -> anyhow::Result<()> {
        let after = after(rehearsal);
        match self.output {
            Output::Diff => Ok(()),
            Output::Json => print(Format::Json, after, String::new),
            Output::Patch => {
                let patch = rehearsal.overriding.patch.iter();
                let patch: Value = patch.map(JsonPatchOperation::to_json).collect();
                print(Format::Json, &patch, String::new)
            }
            Output::Yaml => {
                if index > 0 {
                    print(Format::Table, &(), || "---\n".to_owned())?;
                }
                print(Format::Yaml, after, String::new)
            }
        }
    }
}

fn after(rehearsal: &Rehearsal) -> &Value {
    &rehearsal.overriding.object
}

/// Lists the effects of the rules, and the result.
fn report(heading: &str, rehearsal: &Rehearsal) -> String {
    let fetched = rehearsal.fetched.iter().map(|(reference, answer)| match answer {
        FetchedAnswer::Found(_) => format!("fetched {reference}"),
        FetchedAnswer::NotFound => format!("fetched {reference}: not found; specify it with --data"),
        FetchedAnswer::Failed(error) => format!("fetched {reference}: {error}; specify it with --data"),
    });
    let steps = rehearsal.overriding.steps.iter().map(|step| {
        let operations = operations(&step.patch);
        format!("{}: rule {}: {}: {operations}", step.policy, step.rule, step.step)
    });
    let findings = rehearsal.validation.iter().flat_map(|outcome| &outcome.findings);
    let failures = rehearsal
        .ignored()
        .map(|failure| format!("{failure} (failed, and is ignored)"))
        .chain(rehearsal.refusals().map(|failure| format!("{failure} (failed)")));
    let lines = fetched
        .chain(steps)
        .chain(findings.flat_map(finding_lines))
        .chain(failures)
        .chain(unaffected_policies(rehearsal))
        .chain([verdict(rehearsal)]);
    let lines = lines.map(|line| format!("  {}\n", OneLine(&line)));
    format!("{}\n{}", OneLine(heading), lines.collect::<String>())
}

/// Returns the violations of a rule, a line for each.
fn finding_lines(finding: &PolicyFinding) -> impl Iterator<Item = String> {
    let PolicyFinding {
        policy,
        rule,
        step,
        reason,
        actions,
    } = finding;
    let shown = move |action: &ValidationAction| {
        let what = match action {
            ValidationAction::Deny => "denied",
            ValidationAction::Warn => "warned",
            ValidationAction::Audit => "reported",
        };
        format!("{policy}: rule {rule}: {step}: {what}: {reason}")
    };
    actions.iter().map(shown)
}

/// Lists the evaluated policies without effect.
fn unaffected_policies(rehearsal: &Rehearsal) -> impl Iterator<Item = String> {
    let findings = rehearsal.validation.iter().flat_map(|outcome| &outcome.findings);
    let steps = rehearsal.overriding.steps.iter();
    let failures = rehearsal.ignored().chain(rehearsal.refusals());
    let busy: HashSet<_> = findings
        .map(|finding| &finding.policy)
        .chain(steps.map(|step| &step.policy))
        .chain(failures.map(|failure| &failure.policy))
        .collect();
    let validating = rehearsal.validation.iter().flat_map(|outcome| &outcome.asked);
    let asked = rehearsal.overriding.asked.iter().chain(validating);
    let idle = asked.filter(move |policy| !busy.contains(policy));
    idle.map(|policy| format!("{policy}: evaluated, no effect"))
}

/// Describes a patch without its values, which may be secret.
fn operations(patch: &JsonPatch) -> String {
    let shown = |operation: &JsonPatchOperation| match operation {
        JsonPatchOperation::Add(path, _) => format!("add {path}"),
        JsonPatchOperation::Replace(path, _) => format!("replace {path}"),
        JsonPatchOperation::Remove(path) => format!("remove {path}"),
        JsonPatchOperation::Test(path, _) => format!("test {path}"),
        JsonPatchOperation::Copy(from, path) => format!("copy {from} to {path}"),
        JsonPatchOperation::Move(from, path) => format!("move {from} to {path}"),
    };
    let shown: Vec<_> = patch.iter().map(shown).collect();
    shown.join(", ")
}

/// Returns the result of the request as its sender would see it.
fn verdict(rehearsal: &Rehearsal) -> String {
    if rehearsal.is_allowed() {
        return match rehearsal.overriding.patch.is_empty() {
            true => "allowed, nothing changes".to_owned(),
            false => "allowed, with changes".to_owned(),
        };
    }
    let of_validation = rehearsal.validation.as_ref().and_then(ValidationOutcome::message);
    let of_overriding = rehearsal.overriding.refusal.as_ref().map(ToString::to_string);
    let message = of_overriding.or(of_validation).unwrap_or_default();
    format!("denied: {message}")
}
