//! `windlass policy apply`: what would become of an object.

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

/// Says what would become of an object, and which rule did what.
///
/// Policies are asked as an API server with Windlass would: override policies first, cluster-wide ones before those of the namespace, by
/// name; then validate policies. What they refer to comes from --data.
///
///   windlass policy apply --policy mirror.yaml --object pod.yaml
///   windlass policy apply --policy policies/ --object new.yaml --old-object old.yaml -o yaml
///   windlass policy apply --policy confirm.yaml --object namespace.yaml --operation DELETE --user alice --group admins
///   windlass policy apply --policy quota.yaml --object pod.yaml --data cluster.yaml -o patch
///
/// With -o yaml, json and patch only that is on standard output, and nothing for what is denied.
///
/// Exits 0 where the object is allowed, 1 where it is denied, 2 where a file or an argument is wrong.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// File, or folder of files, with policies; can be repeated.
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
    /// What changes, as diff -u shows it. Values of Secrets are hidden.
    Diff,
    /// The object as it would be, as YAML.
    Yaml,
    /// The object as it would be, as JSON.
    Json,
    /// The JSON patch (RFC 6902) from the object as it is.
    Patch,
}

// === impl Args ===

impl Args {
    /// Asks the policies about each object. Returns whether all are allowed.
    ///
    /// # Errors
    ///
    /// When a file or an argument is wrong.
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
                let after = (&*format!("{}, as it would be", object_name(object)), after(&rehearsal));
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

/// Which rule did what, and what that comes to.
fn report(heading: &str, rehearsal: &Rehearsal) -> String {
    let fetched = rehearsal.fetched.iter().map(|(reference, answer)| match answer {
        FetchedAnswer::Found(_) => format!("fetched {reference}"),
        FetchedAnswer::NotFound => format!("fetched {reference}: not found; give it with --data"),
        FetchedAnswer::Failed(error) => format!("fetched {reference}: {error}; give it with --data"),
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

/// What a rule objects to, once for each thing that follows.
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

/// The policies that were asked and had nothing to say.
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
    idle.map(|policy| format!("{policy}: was asked, and has nothing to say"))
}

/// What a patch does, without its values: they may be secret.
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

/// What becomes of the request, as whoever sent it would read it.
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
