//! What is waited for as a view that is drawn anew: a line for each step, with how long it takes.

use std::{fmt::Write, time::Duration};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use windlass_object::text::OneLine;

use super::waiting::{WaitState, WaitStep, Waiting};

/// How often the spinner moves.
const TICK: Duration = Duration::from_millis(120);

/// A view on standard error.
pub(super) struct LiveView {
    lines: MultiProgress,
    /// What is waited for where there are no steps; else for how long already.
    head: ProgressBar,
    steps: Vec<(WaitStep, ProgressBar)>,
}

// === impl LiveView ===

impl LiveView {
    /// Nothing is waited for yet.
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

    /// Shows what is waited for now.
    pub(super) fn show(&mut self, waiting: &Waiting) {
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

    /// Prints a line above, which stays.
    pub(super) fn println(&self, text: &str) {
        // What cannot be shown on standard error cannot be said there either.
        let _ = self.lines.println(text);
    }

    /// Prints with the view out of the way.
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

/// Shows that a step has come from one state into another.
fn style(line: &ProgressBar, from: WaitState, to: WaitState) {
    match to {
        WaitState::Pending => restyle(line, "  · {prefix:.dim}"),
        WaitState::Current => {
            line.reset_elapsed();
            restyle(line, "  {spinner:.cyan} {prefix:.bold} {elapsed:>4} {wide_msg}");
            line.enable_steady_tick(TICK);
            return;
        }
        // How long it took is known only where that was seen.
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
    // A template that is not understood would leave the style of before: a test reads all of them.
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
    fn each_step_has_a_line_and_the_current_one_says_what_it_waits_for() {
        let terminal = InMemoryTerm::new(12, 60);
        let target = ProgressDrawTarget::term_like(Box::new(terminal.clone()));
        let mut view = LiveView::new(target);
        let mut shown = |waiting: &Waiting| {
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
            shown(&Waiting::from("look around".to_owned())),
            ["*   0s look around"]
        );
        let steps = |first| [("Accepted", first), ("Installed", false), ("Armed", false)];
        let hostile = "pods\nto be \u{1b}[31mready, which takes a while and is cut at the edge";
        assert_eq!(
            shown(&Waiting::in_turn(hostile.to_owned(), steps(false))),
            [
                "*   0s",
                "  * Accepted    0s pods\\nto be \\u{1b}[31mready, which takes",
                "  · Installed",
                "  · Armed",
            ]
        );
        assert_eq!(
            shown(&Waiting::in_turn("the rest".to_owned(), steps(true))),
            [
                "*   0s",
                "  ✓ Accepted    0s",
                "  * Installed   0s the rest",
                "  · Armed",
            ]
        );
        assert_eq!(
            shown(&Waiting::in_turn("it".to_owned(), [("Upgrade", false)])),
            ["*   0s", "  * Upgrade     0s it"]
        );
        drop(view);
        assert_eq!(terminal.contents(), "");
    }
}
