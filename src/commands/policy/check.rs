//! `windlass policy check`: everything that is wrong with policies.

use std::path::PathBuf;

use clap::ValueEnum;
use policy::{Engines, PolicyKind};
use serde::Serialize;
use windlass_object::text::OneLine;

use super::{
    policies::{PolicyFile, PolicyFiles},
    problem::PolicyFileProblem,
};
use crate::terminal::{Format, print};

/// Reports every problem of policies, one per line: FILE: JSONPATH[:LINE:COLUMN]: message.
///
/// What is checked is what an API server with Windlass would refuse: schemas, selectors, references, templates, and programs in CUE
/// and CEL, of which LINE and COLUMN are told.
///
///   windlass policy check -f policy.yaml
///   windlass policy check -f policies/ -o json
///   windlass policy check -f policy.yaml --show-rendered
///
/// Exits 1 if there is a problem, and prints nothing where there is none.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// File, or folder of files, with policies; can be repeated; - is standard input. In folders other objects are passed over.
    #[arg(short, long, value_name = "FILE", required = true)]
    filename: Vec<PathBuf>,

    /// Show what templates are rendered to, too. With -o json the output is an object with problems and rendered.
    #[arg(long)]
    show_rendered: bool,

    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// One problem per line.
    Text,
    /// A list of objects: file, path, line, column and message.
    Json,
}

/// What a template is rendered to.
#[derive(Debug, Serialize)]
struct RenderedTemplate {
    file: String,
    policy: String,
    path: String,
    cue: String,
}

/// All that is printed.
#[derive(Debug, Serialize)]
struct CheckReport {
    problems: Vec<PolicyFileProblem>,
    rendered: Vec<RenderedTemplate>,
}

// === impl Args ===

impl Args {
    /// Checks policies. Returns whether they are good.
    ///
    /// # Errors
    ///
    /// When folders cannot be read, or nothing can be printed.
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
            // Tabs are no danger to a terminal.
            let parts: Vec<_> = line.split('\t').map(|part| OneLine(part).to_string()).collect();
            text.push_str(&format!("{}\n", parts.join("\t")));
        }
    }
    text
}
