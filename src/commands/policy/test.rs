//! `windlass policy test`: test cases of policies.

use std::{
    collections::BTreeSet,
    fmt,
    path::{Path, PathBuf},
};

use anyhow::bail;
use policy::{
    Engines, EvaluationBudget,
    cases::{CaseDifference, CaseOutcome, CasePolicy, PolicyCase, PolicyCases},
};
use serde::Serialize;
use serde_json::Value;
use windlass_object::text::OneLine;

use super::{
    diff,
    policy_files::{PolicyFiles, is_cases, object_name},
    problem::PolicyFileProblem,
};
use crate::{
    commands::documents,
    terminal::{Format, Table, print},
};

const AFTER_HELP: &str = "A file names policies and has cases, each with its expected result:

  policies: [mirror.yaml]
  cases:
  - name: an image is pulled from the mirror
    object: {apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c, image: nginx}]}}
    expect: {change: {spec: {containers: [{name: c, image: mirror.example.com/nginx}]}}}

docs/policy-command.md describes all fields. Exits 1 if a case fails.";

/// Runs the test cases in files named cases.yaml, *-cases.yaml or *.cases.yaml.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    /// Folder, or file with cases; repeatable.
    #[arg(value_name = "DIR", required = true)]
    paths: Vec<PathBuf>,

    /// Also show a table of all cases.
    #[arg(short, long)]
    verbose: bool,

    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

/// The run of all cases. Human-readable output is printed immediately.
struct CaseRun {
    engines: Engines,
    is_for_people: bool,
    table: Table,
    report: CaseReport,
}

/// The result of all cases.
#[derive(Debug, Default, Serialize)]
struct CaseReport {
    /// Number of cases; an unreadable file counts as one.
    all: usize,
    /// Number of passed cases.
    pass: usize,
    /// Problems that prevent cases from running.
    problems: Vec<PolicyFileProblem>,
    /// The cases that ran.
    cases: Vec<ReportedCase>,
}

/// The result of a case.
#[derive(Debug, Serialize)]
struct ReportedCase {
    file: String,
    name: String,
    operation: &'static str,
    object: String,
    passes: bool,
    /// Differences from the expected result.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    differences: Vec<ReportedDifference>,
}

/// A difference from the expected result of a case.
#[derive(Debug, Serialize)]
struct ReportedDifference {
    field: &'static str,
    expected: Value,
    actual: Value,
}

impl Args {
    /// Runs the cases. Returns whether all passed.
    ///
    /// # Errors
    ///
    /// When there are no cases, or a folder cannot be read.
    pub(super) fn run(self) -> anyhow::Result<bool> {
        // A file in two of the folders runs once.
        let mut files = BTreeSet::new();
        for path in &self.paths {
            if path.is_dir() {
                let found = documents::below(path, true)?.into_iter();
                files.extend(found.filter(|file| is_cases(file)));
            } else {
                files.insert(path.clone());
            }
        }
        if files.is_empty() {
            let paths: Vec<_> = self.paths.iter().map(|path| path.display().to_string()).collect();
            bail!(
                "no cases found: {} has no file named cases.yaml, *-cases.yaml or *.cases.yaml",
                paths.join(", ")
            );
        }
        let mut run = CaseRun {
            engines: Engines::built_in(),
            is_for_people: self.output == Format::Table,
            table: Table::new(&["FILE", "CASE", "OPERATION", "OBJECT", "RESULT"]),
            report: CaseReport::default(),
        };
        for file in &files {
            run.file(file)?;
        }
        let report = &run.report;
        print(self.output, report, || {
            let table = if self.verbose {
                run.table.to_string()
            } else {
                String::new()
            };
            format!("{table}{} of {} cases pass\n", report.pass, report.all)
        })?;
        Ok(report.pass == report.all)
    }
}

impl CaseRun {
    fn file(&mut self, file: &Path) -> anyhow::Result<()> {
        let documents = match documents::read(file, documents::LARGEST) {
            Ok(documents) => documents,
            Err(error) => {
                self.report.all += 1;
                let message = format!("{error:#}");
                self.print_line(&OneLine(&message));
                self.report
                    .problems
                    .push(PolicyFileProblem::for_file(file, message));
                return Ok(());
            }
        };
        if documents.is_empty() {
            self.report.all += 1;
            self.add(PolicyFileProblem::for_file(file, "has no cases"));
        }
        for document in documents {
            match PolicyCases::read(&document) {
                Ok(cases) => self.cases(file, &cases)?,
                Err(problems) => {
                    // The number of cases in the file is unknown.
                    self.report.all += 1;
                    for problem in problems {
                        self.add(PolicyFileProblem::new(file, problem));
                    }
                }
            }
        }
        Ok(())
    }

    fn cases(&mut self, file: &Path, cases: &PolicyCases) -> anyhow::Result<()> {
        self.report.all += cases.cases.len();
        let policies = policies(file, cases, &self.engines);
        if !policies.problems.is_empty() {
            for problem in policies.problems {
                self.add(problem);
            }
            return Ok(());
        }
        let set = policies.set();
        for case in &cases.cases {
            let outcome = case.run(&set, &cases.data, &EvaluationBudget::default());
            let passes = outcome.passes();
            self.report.pass += usize::from(passes);
            let result = if passes { "pass" } else { "fail" };
            let object = object_name(&case.object.base);
            self.table.add([
                &file.display(),
                &case.name,
                &case.operation.name(),
                &object,
                &result,
            ]);
            if self.is_for_people && !passes {
                print_failure(file, case, &outcome)?;
            }
            let differences = outcome
                .differences
                .into_iter()
                .map(|difference| ReportedDifference {
                    field: difference.field,
                    expected: difference.expected,
                    actual: difference.actual,
                });
            self.report.cases.push(ReportedCase {
                file: file.display().to_string(),
                name: case.name.clone(),
                operation: case.operation.name(),
                object,
                passes,
                differences: differences.collect(),
            });
        }
        Ok(())
    }

    fn add(&mut self, problem: PolicyFileProblem) {
        self.print_line(&problem);
        self.report.problems.push(problem);
    }

    fn print_line(&self, line: &impl fmt::Display) {
        if self.is_for_people {
            println!("{line}");
        }
    }
}

/// Returns the policies of a file of cases. Policy files must be in its folder or below, after resolving
/// links.
fn policies(file: &Path, cases: &PolicyCases, engines: &Engines) -> PolicyFiles {
    let folder = match file.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let mut policies = PolicyFiles::default();
    for (index, policy) in cases.policies.iter().enumerate() {
        let problem = |message: String| {
            let problem = policy::PolicyProblem::new(format!("policies[{index}]"), message);
            PolicyFileProblem::new(file, problem)
        };
        match policy {
            CasePolicy::Inline(policy) => policies.add(file, policy, engines),
            CasePolicy::File(name) => {
                let path = folder.join(name);
                match (folder.canonicalize(), path.canonicalize()) {
                    (Ok(folder), Ok(real)) if real.starts_with(&folder) => {
                        policies.add_file(&path, false, engines);
                    }
                    (Ok(_), Ok(_)) => {
                        let message = format!("{name} is outside the folder of this file");
                        policies.problems.push(problem(message));
                    }
                    (Err(error), _) | (_, Err(error)) => {
                        policies
                            .problems
                            .push(problem(format!("{name} cannot be read: {error}")));
                    }
                }
            }
        }
    }
    policies
}

fn print_failure(file: &Path, case: &PolicyCase, outcome: &CaseOutcome) -> anyhow::Result<()> {
    println!(
        "{}: {}:",
        OneLine(&file.display().to_string()),
        OneLine(&case.name)
    );
    for difference in &outcome.differences {
        let CaseDifference {
            field,
            expected,
            actual,
        } = difference;
        if expected.is_object() && actual.is_object() || *field == "patch" {
            println!("  {field}:");
            let diff = diff::unified(("expected", expected), ("actual", actual))?;
            diff.lines().for_each(|line| println!("    {line}"));
        } else {
            println!("  {}", OneLine(&difference.to_string()));
        }
    }
    Ok(())
}
