//! `windlass interpret --operation`: runs the rules of a customization.

use std::path::PathBuf;

use anyhow::{Context, anyhow, bail};
use interpreter::{
    Answer, Operation, ResourceInterpreter,
    cases::{CaseError, CaseResult, InterpretationCase},
    question::AggregatedStatusItem,
};
use serde_json::Value;
use windlass_cluster::telemetry::chain;
use windlass_object::text::OneLine;

use super::{
    files::{self, Customization},
    trace,
};
use crate::{
    commands::documents,
    terminal::{Format, print},
};

/// The input of a rule.
#[derive(Debug, clap::Args)]
pub(super) struct ObjectArgs {
    /// File with the desired object.
    #[arg(long, value_name = "FILE", requires = "operation")]
    desired_file: Option<PathBuf>,

    /// File with the observed object.
    #[arg(long, value_name = "FILE", requires = "operation")]
    observed_file: Option<PathBuf>,

    /// File with AggregatedStatusItems: one document each, or a list.
    #[arg(long, value_name = "FILE", requires = "operation")]
    status_file: Option<PathBuf>,

    /// Replicas that ReviseReplica sets.
    #[arg(long, value_name = "N", requires = "operation", default_value_t = 0)]
    desired_replica: i64,
}

impl ObjectArgs {
    /// Returns the specified files.
    pub(super) fn paths(&self) -> impl Iterator<Item = PathBuf> {
        let named = [&self.desired_file, &self.observed_file, &self.status_file];
        named.into_iter().flatten().cloned()
    }

    /// Runs the rule of an operation, and prints each result. Returns whether it succeeded.
    pub(super) async fn execute(
        &self,
        customizations: &[Customization],
        operation: Operation,
        with_trace: bool,
    ) -> anyhow::Result<bool> {
        let case = self.case(operation)?;
        let question = case.question().map_err(|error| match error {
            CaseError::Missing(_) | CaseError::Both(_) => anyhow!(missing_files(operation)),
            error => error.into(),
        })?;
        if with_trace {
            return trace::print(customizations, question);
        }
        let source = files::source(customizations)?;
        let answered = ResourceInterpreter::new(vec![source]).ask(question).await;
        let answer = match answered {
            Ok(Some(answer)) => answer,
            Ok(None) => bail!("no rule for {operation} of this object is set"),
            Err(error) => {
                eprintln!("Execute {operation} error: {}", OneLine(&chain(&error)));
                return Ok(false);
            }
        };
        print_results(operation, &answer)?;
        Ok(true)
    }

    fn case(&self, operation: Operation) -> anyhow::Result<InterpretationCase> {
        let object = |path: &Option<PathBuf>| path.as_deref().map(documents::object).transpose();
        Ok(InterpretationCase {
            operation: operation.to_string(),
            desired_obj: object(&self.desired_file)?,
            observed_obj: object(&self.observed_file)?,
            status_items: self.status_items()?,
            input_replicas: self.desired_replica,
            ..InterpretationCase::default()
        })
    }

    fn status_items(&self) -> anyhow::Result<Option<Vec<AggregatedStatusItem>>> {
        let Some(path) = &self.status_file else {
            return Ok(None);
        };
        let items =
            documents::read(path, documents::LARGEST)?
                .into_iter()
                .flat_map(|document| match document {
                    Value::Array(items) => items,
                    item => vec![item],
                });
        let items = items.map(serde_json::from_value).collect::<Result<_, _>>();
        let items =
            items.with_context(|| format!("{} must contain AggregatedStatusItems", path.display()))?;
        Ok(Some(items))
    }
}

/// Prints each part of an answer, as `karmadactl interpret` does.
pub(super) fn print_results(operation: Operation, answer: &Answer) -> anyhow::Result<()> {
    let results = CaseResult::from_answer(operation, answer);
    for (index, result) in results.iter().enumerate() {
        println!("---\n# [{}/{}] {}:", index + 1, results.len(), result.name);
        print(Format::Yaml, &result.value, String::new)?;
    }
    Ok(())
}

/// Returns the error that names the required files of an operation.
fn missing_files(operation: Operation) -> String {
    match operation {
        Operation::Retain => format!("{operation} needs --desired-file and --observed-file"),
        _ => format!("{operation} needs one of --desired-file and --observed-file"),
    }
}
