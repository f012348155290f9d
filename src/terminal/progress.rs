//! How far a command is: live on a terminal, else a line whenever that changes.

use std::{
    io::IsTerminal,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressStyle};
use windlass_object::text::OneLine;

/// How often the spinner moves.
const TICK: Duration = Duration::from_millis(120);

/// Says on standard error what is waited for.
pub(crate) struct Progress {
    started: Instant,
    spinner: Option<ProgressBar>,
    said: String,
}

// === impl Progress ===

impl Progress {
    /// Nothing is said yet.
    pub(crate) fn new() -> Self {
        let spinner = std::io::stderr().is_terminal().then(|| {
            let spinner = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed:>4} {wide_msg}") {
                spinner.set_style(style);
            }
            spinner.enable_steady_tick(TICK);
            spinner
        });
        Self {
            started: Instant::now(),
            spinner,
            said: String::new(),
        }
    }

    /// Says what is waited for, if that is news.
    pub(crate) fn wait_for(&mut self, what: &str) {
        let what = OneLine(what).to_string();
        if what == self.said {
            return;
        }
        match &self.spinner {
            Some(spinner) => spinner.set_message(what.clone()),
            None => eprintln!("{}", line(self.started.elapsed(), &what)),
        }
        self.said = what;
    }

    /// Says what is done; the line stays.
    pub(crate) fn done(&self, what: &str) {
        let line = line(self.started.elapsed(), &OneLine(what).to_string());
        match &self.spinner {
            Some(spinner) => spinner.println(line),
            None => eprintln!("{line}"),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(spinner) = &self.spinner {
            spinner.finish_and_clear();
        }
    }
}

fn line(after: Duration, what: &str) -> String {
    format!("[{:5.1} s] {what}", after.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_when() {
        assert_eq!(line(Duration::from_millis(12_340), "x"), "[ 12.3 s] x");
    }
}
