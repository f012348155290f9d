//! `windlass interpret --test`: runs the test cases of customizations.

use std::path::Path;

use anyhow::bail;
use interpreter::{ResourceInterpreter, cases::InterpretationCase};
use windlass_cluster::telemetry::chain;
use windlass_object::text::OneLine;

use super::files;
use crate::commands::documents;

/// The file name of customizations with cases.
const CUSTOMIZATIONS: &str = "customizations.yaml";

/// The folder name of cases.
const TESTDATA: &str = "testdata";

/// The number of cases, and how many passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    all: usize,
    pass: usize,
}

/// Runs all cases below a folder, prints the failed ones, and returns whether all passed.
pub(super) async fn run(folder: &Path) -> anyhow::Result<bool> {
    let files = documents::below(folder, true)?;
    let mut count = Count::default();
    for file in files.iter().filter(|file| is_customizations(file)) {
        if let Err(error) = run_cases_of(file, &mut count).await {
            count.all += 1;
            print_problem(&file.display().to_string(), &format!("{error:#}"));
        }
    }
    if count.all == 0 {
        bail!(
            "no cases found: {} has no {CUSTOMIZATIONS} next to a folder {TESTDATA} with files",
            folder.display()
        );
    }
    println!("{} of {} cases pass", count.pass, count.all);
    Ok(count.pass == count.all)
}

fn is_customizations(file: &Path) -> bool {
    let is_case = file
        .components()
        .any(|component| component.as_os_str() == TESTDATA);
    !is_case && file.file_name().is_some_and(|name| name == CUSTOMIZATIONS)
}

/// Runs the cases of a file with customizations.
async fn run_cases_of(file: &Path, count: &mut Count) -> anyhow::Result<()> {
    let customizations = files::customizations(&[file.to_owned()], false)?;
    let interpreter = ResourceInterpreter::new(vec![files::source(&customizations)?]);
    let folder = file.parent().unwrap_or(Path::new(".")).join(TESTDATA);
    let cases = match folder.is_dir() {
        true => documents::below(&folder, true)?,
        false => Vec::new(),
    };
    for path in cases {
        run_file(&path, &interpreter, count).await?;
    }
    Ok(())
}

async fn run_file(path: &Path, interpreter: &ResourceInterpreter, count: &mut Count) -> anyhow::Result<()> {
    let shown = path.display();
    for (index, document) in documents::read(path, documents::LARGEST)?.iter().enumerate() {
        count.all += 1;
        let case = match InterpretationCase::read(document) {
            Ok(case) => case,
            Err(error) => {
                print_problem(&format!("{shown}: document {}", index + 1), &error.to_string());
                continue;
            }
        };
        let name = match case.name.as_str() {
            "" => format!("document {}", index + 1),
            name => name.to_owned(),
        };
        for field in case.unknown.keys() {
            eprintln!(
                "warning: {shown}: {}: {} is not a field of a case",
                OneLine(&name),
                OneLine(field)
            );
        }
        match case.run(interpreter).await {
            Ok(_) => count.pass += 1,
            Err(error) => print_problem(&format!("{shown}: {name}"), &chain(&error)),
        }
    }
    Ok(())
}

fn print_problem(place: &str, problem: &str) {
    println!("{}:", OneLine(place));
    problem.lines().for_each(|line| println!("  {}", OneLine(line)));
}
