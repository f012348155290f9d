//! The live view of a wait: a redrawn line for each step, with its duration.

use std::{fmt::Write, time::Duration};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use windlass_object::text::OneLine;

use super::wait_status::{WaitState, WaitStatus, WaitStep};

/// The interval of the spinner.
const TICK: Duration = Duration::from_millis(120);

/// A view on standard error.
pub(super) struct LiveView {
    lines: MultiProgress,
    /// The line for a wait without steps; otherwise shows the total time.
    head: ProgressBar,
    steps: Vec<(WaitStep, ProgressBar)>,
}

impl LiveView {
    /// Returns an empty view.
    pub(super) fn new(target: ProgressDrawTarget) -> Self {
        let lines = MultiProgress::with_draw_target(target);
        let head = lines.add(line("{spinner:.cyan} {elapsed:>4} {wide_msg}"));
        head.enable_steady_tick(TICK);
        Self {
            lines,
            head,
            steps: Vec::new(),
        }
    }

    /// Shows the current state of the wait.
    pub(super) fn show(&mut self, waiting: &WaitStatus) {
        let names = |steps: &mut dyn Iterator<Item = &WaitStep>| -> Vec<String> {
            steps.map(|step| step.name.clone()).collect()
        };
        let shown = names(&mut self.steps.iter().map(|(step, _)| step));
        if shown != names(&mut waiting.steps.iter()) {
            self.clear();
            self.steps = waiting.steps.iter().map(|step| self.added(step)).collect();
        }
        let message = OneLine(&waiting.message).to_string();
        for ((shown, line), step) in self.steps.iter_mut().zip(&waiting.steps) {
            if shown.state != step.state {
                style(line, shown.state, step.state);
                *shown = step.clone();
            }
            if step.state == WaitState::Current {
                line.set_message(message.clone());
            }
        }
        let is_told_below = waiting.current().is_some();
        self.head
            .set_message(if is_told_below { String::new() } else { message });
    }

    /// Prints a permanent line above the view.
    pub(super) fn println(&self, text: &str) {
        // Errors of standard error cannot be reported anywhere.
        let _ = self.lines.println(text);
    }

    /// Hides the view while `print` runs.
    pub(super) fn suspend<R>(&self, print: impl FnOnce() -> R) -> R {
        self.lines.suspend(print)
    }

    fn added(&self, step: &WaitStep) -> (WaitStep, ProgressBar) {
        let width = step.name.chars().count().max(9);
        let bar = self.lines.add(ProgressBar::new_spinner());
        bar.set_prefix(format!("{:<width$}", OneLine(&step.name).to_string()));
        style(&bar, WaitState::Pending, step.state);
        (step.clone(), bar)
    }

    fn clear(&mut self) {
        for (_, line) in self.steps.drain(..) {
            self.lines.remove(&line);
        }
    }
}

impl Drop for LiveView {
    fn drop(&mut self) {
        self.clear();
        self.head.finish_and_clear();
    }
}

fn line(template: &str) -> ProgressBar {
    let line = ProgressBar::new_spinner();
    restyle(&line, template);
    line
}

/// Shows the new state of a step.
fn style(line: &ProgressBar, from: WaitState, to: WaitState) {
    match to {
        WaitState::Pending => restyle(line, "  · {prefix:.dim}"),
        WaitState::Current => {
            line.reset_elapsed();
            restyle(line, "  {spinner:.cyan} {prefix:.bold} {elapsed:>4} {wide_msg}");
            line.enable_steady_tick(TICK);
            return;
        }
        // The duration is known only if the step was seen as current.
        WaitState::Done if from == WaitState::Current => {
            line.set_message(format!("{:>4}", format!("{}s", line.elapsed().as_secs())));
            restyle(line, "  {check:.green} {prefix} {msg:.dim}");
        }
        WaitState::Done => restyle(line, "  {check:.green} {prefix}"),
    }
    line.disable_steady_tick();
    line.tick();
}

fn restyle(line: &ProgressBar, template: &str) {
    // Invalid templates keep the previous style; a test parses all of them.
    if let Ok(style) = ProgressStyle::with_template(template) {
        let check = |_: &ProgressState, mark: &mut dyn Write| {
            let _ = mark.write_str("✓");
        };
        line.set_style(style.with_key("check", check));
    }
}

#[cfg(test)]
mod tests {
    use indicatif::InMemoryTerm;

    use super::*;

    #[test]
    fn each_step_has_a_line_and_the_current_one_shows_its_message() {
        let terminal = InMemoryTerm::new(12, 60);
        let target = ProgressDrawTarget::term_like(Box::new(terminal.clone()));
        let mut view = LiveView::new(target);
        let mut shown = |waiting: &WaitStatus| {
            view.show(waiting);
            view.head.tick();
            view.steps.iter().for_each(|(_, line)| line.tick());
            let text = terminal.contents();
            let lines = text.lines().map(|line| {
                let is_spinner = |character: char| ('\u{2800}'..='\u{28ff}').contains(&character);
                line.replace(is_spinner, "*").trim_end().to_owned()
            });
            lines.collect::<Vec<_>>()
        };
        assert_eq!(
            shown(&WaitStatus::from("look around".to_owned())),
            ["*   0s look around"]
        );
        let steps = |first| [("Accepted", first), ("Installed", false), ("Armed", false)];
        let hostile = "pods\nto be \u{1b}[31mready, which takes a while and is cut at the edge";
        assert_eq!(
            shown(&WaitStatus::from_steps(hostile.to_owned(), steps(false))),
            [
                "*   0s",
                "  * Accepted    0s pods\\nto be \\u{1b}[31mready, which takes",
                "  · Installed",
                "  · Armed",
            ]
        );
        assert_eq!(
            shown(&WaitStatus::from_steps("the rest".to_owned(), steps(true))),
            [
                "*   0s",
                "  ✓ Accepted    0s",
                "  * Installed   0s the rest",
                "  · Armed",
            ]
        );
        assert_eq!(
            shown(&WaitStatus::from_steps("it".to_owned(), [("Upgrade", false)])),
            ["*   0s", "  * Upgrade     0s it"]
        );
        drop(view);
        assert_eq!(terminal.contents(), "");
    }
}
