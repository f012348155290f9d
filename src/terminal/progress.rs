//! The progress of a command: a live view on a terminal, lines in logs, and JSON events for programs.

use std::{
    fmt::Display,
    io::IsTerminal,
    time::{Duration, Instant},
};

use clap::ValueEnum;
use indicatif::ProgressDrawTarget;
use serde::Serialize;
use serde_json::{Value, json};
use windlass_object::text::OneLine;

use super::{format, live_view::LiveView, wait_status::WaitStatus};

/// The output format of progress and result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProgressFormat {
    #[default]
    Text,
    Json,
}

/// Reports what a command waits for and has done, and prints the result.
pub(crate) struct Progress {
    started: Instant,
    shown: Shown,
    current: WaitStatus,
}

/// Where progress is shown.
enum Shown {
    /// On a terminal.
    View(LiveView),
    /// In a log.
    Lines,
    /// As JSON events.
    Events,
}

impl Progress {
    /// Returns the progress of a command that starts now.
    pub(crate) fn new(format: ProgressFormat) -> Self {
        let shown = match format {
            ProgressFormat::Json => Shown::Events,
            ProgressFormat::Text if std::io::stderr().is_terminal() => {
                Shown::View(LiveView::new(ProgressDrawTarget::stderr()))
            }
            ProgressFormat::Text => Shown::Lines,
        };
        Self {
            started: Instant::now(),
            shown,
            current: WaitStatus::default(),
        }
    }

    /// Reports what the command waits for, if that has changed.
    pub(crate) fn wait_for(&mut self, waiting: impl Into<WaitStatus>) {
        let waiting = waiting.into();
        if waiting == self.current {
            return;
        }
        match &mut self.shown {
            Shown::View(view) => view.show(&waiting),
            Shown::Lines => eprintln!("{}", self.line(&waiting.to_string())),
            Shown::Events => {
                let step = waiting.current();
                self.event(
                    "waiting",
                    &json!({ "step": step, "message": waiting.message, "steps": waiting.steps }),
                );
            }
        }
        self.current = waiting;
    }

    /// Reports a completed action in a permanent line.
    pub(crate) fn done(&self, what: &str) {
        match &self.shown {
            Shown::View(view) => view.println(&self.line(what)),
            Shown::Lines => eprintln!("{}", self.line(what)),
            Shown::Events => self.event("done", &json!({ "message": what })),
        }
    }

    /// Prints text on standard output that is neither progress nor the result; as an event `name` for
    /// programs.
    pub(crate) fn print(&self, name: &str, text: &str) {
        match &self.shown {
            Shown::View(view) => view.suspend(|| print!("{text}")),
            Shown::Lines => print!("{text}"),
            Shown::Events => self.event(name, &json!({ "text": text })),
        }
    }

    /// Prints a finding on standard output, as text or as an event `name`.
    pub(crate) fn report(&self, name: &str, found: &(impl Display + Serialize)) {
        match &self.shown {
            Shown::Events => self.event(name, &json!({ name: found })),
            Shown::View(_) | Shown::Lines => self.print(name, &found.to_string()),
        }
    }

    /// Prints the result: a sentence on standard output, or an event that also has `fields`.
    pub(crate) fn finish(&mut self, sentence: &str, mut fields: Value) {
        if let Shown::Events = self.shown {
            if let Some(metadata) = fields
                .pointer_mut("/object/metadata")
                .and_then(Value::as_object_mut)
            {
                metadata.remove("managedFields");
            }
            fields["message"] = sentence.into();
            return self.event("result", &fields);
        }
        // Later messages are lines.
        self.shown = Shown::Lines;
        println!("{}", OneLine(sentence));
    }

    fn event(&self, name: &str, fields: &Value) {
        let seconds = self.started.elapsed().as_secs_f64();
        println!("{}", event(name, seconds, fields));
    }

    fn line(&self, what: &str) -> String {
        line(self.started.elapsed(), &OneLine(what).to_string())
    }
}

/// Returns an event on one line.
fn event(name: &str, seconds: f64, fields: &Value) -> String {
    #[derive(Serialize)]
    struct Event<'a> {
        event: &'a str,
        seconds: f64,
        #[serde(flatten)]
        fields: &'a Value,
    }
    let seconds = (seconds * 1000.0).round() / 1000.0;
    let event = json!(Event {
        event: name,
        seconds,
        fields
    });
    format::escaped(&event.to_string())
}

fn line(after: Duration, what: &str) -> String {
    format!("[{:5.1} s] {what}", after.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_progress_line_starts_with_the_elapsed_time() {
        assert_eq!(line(Duration::from_millis(12_340), "x"), "[ 12.3 s] x");
    }

    #[test]
    fn an_event_is_one_line_of_escaped_json() {
        let text = event("waiting", 1.23456, &json!({ "message": "a\nb\u{202e}" }));
        assert!(!text.contains(['\n', '\u{202e}']), "{text}");
        let read: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            read,
            json!({ "event": "waiting", "seconds": 1.235, "message": "a\nb\u{202e}" })
        );
    }
}
