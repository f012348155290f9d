//! `windlass policy check`: every problem of policies.

use std::path::PathBuf;

use clap::ValueEnum;
use policy::{Engines, PolicyKind};
use serde::Serialize;
use windlass_object::text::OneLine;

use super::{
    policy_files::{PolicyFile, PolicyFiles},
    problem::PolicyFileProblem,
};
use crate::terminal::{Format, print};

const AFTER_HELP: &str =
    "Checks what an API server with Windlass would reject: schemas, selectors, references, templates, and
programs in CUE and CEL. Exits 1 if there is a problem.

Examples:
  windlass policy check -f policies/
  windlass policy check -f policy.yaml --show-rendered";

/// Reports every problem of policies, one per line: FILE: JSONPATH[:LINE:COLUMN]: message.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    /// File or folder with policies, repeatable; - is standard input.
    #[arg(short, long, value_name = "FILE", required = true)]
    filename: Vec<PathBuf>,

    /// Also show the output of templates.
    #[arg(long)]
    show_rendered: bool,

    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Text,
    Json,
}

/// The output of a template.
#[derive(Debug, Serialize)]
struct RenderedTemplate {
    file: String,
    policy: String,
    path: String,
    cue: String,
}

/// The output of the command.
#[derive(Debug, Serialize)]
struct CheckReport {
    problems: Vec<PolicyFileProblem>,
    rendered: Vec<RenderedTemplate>,
}

impl Args {
    /// Checks policies. Returns whether they have no problems.
    ///
    /// # Errors
    ///
    /// When folders cannot be read, or the output cannot be printed.
    pub(super) fn run(self) -> anyhow::Result<bool> {
        let read = PolicyFiles::read(&self.filename, &Engines::built_in())?;
        let is_good = read.problems.is_empty();
        let rendered = match self.show_rendered {
            true => read.policies.iter().flat_map(rendered).collect(),
            false => Vec::new(),
        };
        let report = CheckReport {
            problems: read.problems,
            rendered,
        };
        match (self.output, self.show_rendered) {
            (Output::Json, false) => print(Format::Json, &report.problems, String::new)?,
            (Output::Json, true) => print(Format::Json, &report, String::new)?,
            (Output::Text, _) => print(Format::Table, &report, || text(&report))?,
        }
        Ok(is_good)
    }
}

fn rendered(policy: &PolicyFile) -> impl Iterator<Item = RenderedTemplate> {
    let states = policy.compiled.rule_states().enumerate();
    states.filter_map(|(index, (cue, _))| {
        let key = policy.compiled.key();
        let path = match key.kind {
            PolicyKind::ClusterValidatePolicy => format!("$.spec.validateRules[{index}].template"),
            _ => format!("$.spec.overrideRules[{index}].overriders.template"),
        };
        Some(RenderedTemplate {
            file: policy.file.display().to_string(),
            policy: key.to_string(),
            path,
            cue: cue?.to_owned(),
        })
    })
}

fn text(report: &CheckReport) -> String {
    let mut text = String::new();
    for problem in &report.problems {
        text.push_str(&format!("{problem}\n"));
    }
    for template in &report.rendered {
        let RenderedTemplate {
            file,
            policy,
            path,
            cue,
        } = template;
        let heading = format!("{file}: {policy}: {path}");
        text.push_str(&format!("// {}\n", OneLine(&heading)));
        for line in cue.lines() {
            // Tabs are harmless on a terminal.
            let parts: Vec<_> = line.split('\t').map(|part| OneLine(part).to_string()).collect();
            text.push_str(&format!("{}\n", parts.join("\t")));
        }
    }
    text
}
