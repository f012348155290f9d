//! `windlass interpret --trace`: prints each executed line of a script.

use anyhow::{Context, bail};
use interpreter::{
    Operation, Question,
    customization::CustomizationRules,
    lua::{LuaLimits, LuaProgram, LuaTrace},
};
use windlass_object::{
    object,
    text::{OneLine, shortened},
};

use super::{files::Customization, operation::print_results};

/// The longest line that is shown.
const LONGEST: usize = 100;

/// Runs the scripts for a question about an object, and prints each executed line with its time and memory.
/// Returns whether all succeeded.
pub(super) fn print(customizations: &[Customization], question: Question<'_>) -> anyhow::Result<bool> {
    let operation = question.operation();
    let scripts: Vec<_> = customizations
        .iter()
        .filter_map(|customization| script(customization, operation))
        .collect();
    if scripts.is_empty() {
        bail!("no script for {operation} is set: only scripts can be traced");
    }
    let mut succeeds = true;
    for (name, script) in scripts {
        let program = LuaProgram::compile_for(name, operation, script);
        let program = program.with_context(|| format!("cannot compile the script of {}", OneLine(name)))?;
        let trace = program.trace(question, &LuaLimits::default())?;
        std::print!("{}", lines(&trace));
        match &trace.answer {
            Ok(answer) => print_results(operation, answer)?,
            Err(error) => {
                succeeds = false;
                println!("error: {}", OneLine(&error.to_string()));
            }
        }
    }
    Ok(succeeds)
}

fn script(customization: &Customization, operation: Operation) -> Option<(&str, &str)> {
    let field = CustomizationRules::field(operation);
    let script = object::text(
        &customization.object,
        &format!("/spec/customizations/{field}/luaScript"),
    )?;
    let name = object::text(&customization.object, "/metadata/name").unwrap_or("script");
    (!script.is_empty()).then_some((name, script))
}

fn lines(trace: &LuaTrace) -> String {
    let mut text = format!(
        "# {}\n{:>10}  {:>12}  LINE\n",
        OneLine(&trace.name),
        "TIME",
        "MEMORY"
    );
    for line in &trace.lines {
        let code = shortened(line.text.trim_end().to_owned(), LONGEST);
        let time = format!("{:.1?}", line.time);
        let memory = format!("{:.1} KiB", line.memory as f64 / 1024.0);
        text.push_str(&format!(
            "{time:>10}  {memory:>12}  {:>4}  {}\n",
            line.number,
            OneLine(&code)
        ));
    }
    text
}
