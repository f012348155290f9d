//! Renders templates: reads JSON lines, each `{"override": …}` or `{"validation": …}`, and writes a JSON line
//! for each: the program, or its problems.

use std::io::{self, BufRead as _, Write as _};

use policy::{
    PolicyProblem,
    api::{OverrideRuleTemplate, ValidateRuleTemplate},
    render::{render_override, render_validation},
};
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum Template {
    Override(Box<OverrideRuleTemplate>),
    Validation(Box<ValidateRuleTemplate>),
}

fn main() -> io::Result<()> {
    let mut output = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let rendered = match serde_json::from_str(&line?) {
            Ok(Template::Override(template)) => render_override(&template),
            Ok(Template::Validation(template)) => render_validation(&template),
            Err(error) => Err(vec![PolicyProblem::new("", error.to_string())]),
        };
        let told = match rendered {
            Ok(program) => json!({ "program": program }),
            Err(problems) => {
                let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
                json!({ "problems": problems })
            }
        };
        writeln!(output, "{told}")?;
    }
    Ok(())
}
