//! How far a command is: a view on a terminal, elsewhere a line whenever that changes, and events for programs.

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

use super::{format, live_view::LiveView, waiting::Waiting};

/// How a command says how far it is, and what came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProgressFormat {
    /// Progress on standard error, the result in words on standard output.
    #[default]
    Text,
    /// Events on standard output, each a JSON object on a line of its own. What was waited for ends with the event `result`.
    Json,
}

/// Says what is waited for and what is done, and prints what came of it.
pub(crate) struct Progress {
    started: Instant,
    shown: Shown,
    said: Waiting,
}

/// To whom it is said.
enum Shown {
    /// Whoever looks at a terminal.
    View(LiveView),
    /// Whoever reads a log.
    Lines,
    /// Programs.
    Events,
}

// === impl Progress ===

impl Progress {
    /// Nothing is said yet.
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
            said: Waiting::default(),
        }
    }

    /// Says what is waited for, if that is news.
    pub(crate) fn wait_for(&mut self, waiting: impl Into<Waiting>) {
        let waiting = waiting.into();
        if waiting == self.said {
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
        self.said = waiting;
    }

    /// Says what is done; the line stays.
    pub(crate) fn done(&self, what: &str) {
        match &self.shown {
            Shown::View(view) => view.println(&self.line(what)),
            Shown::Lines => eprintln!("{}", self.line(what)),
            Shown::Events => self.event("done", &json!({ "message": what })),
        }
    }

    /// Prints text on standard output that is neither progress nor the result; for programs in an event called `name`.
    pub(crate) fn print(&self, name: &str, text: &str) {
        match &self.shown {
            Shown::View(view) => view.suspend(|| print!("{text}")),
            Shown::Lines => print!("{text}"),
            Shown::Events => self.event(name, &json!({ "text": text })),
        }
    }

    /// Prints on standard output what was found out: for people as text, for programs in an event called `name`.
    pub(crate) fn report(&self, name: &str, found: &(impl Display + Serialize)) {
        match &self.shown {
            Shown::Events => self.event(name, &json!({ name: found })),
            Shown::View(_) | Shown::Lines => self.print(name, &found.to_string()),
        }
    }

    /// Prints what came of it: a sentence on standard output; for programs an event that has `fields`, too.
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
        // What is said later is said in lines.
        self.shown = Shown::Lines;
        println!("{}", OneLine(sentence));
    }

    fn event(&self, name: &str, said: &Value) {
        let seconds = self.started.elapsed().as_secs_f64();
        println!("{}", event(name, seconds, said));
    }

    fn line(&self, what: &str) -> String {
        line(self.started.elapsed(), &OneLine(what).to_string())
    }
}

/// An event on one line.
fn event(name: &str, seconds: f64, said: &Value) -> String {
    #[derive(Serialize)]
    struct Event<'a> {
        event: &'a str,
        seconds: f64,
        #[serde(flatten)]
        said: &'a Value,
    }
    let seconds = (seconds * 1000.0).round() / 1000.0;
    let event = json!(Event {
        event: name,
        seconds,
        said
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
    fn a_line_says_when() {
        assert_eq!(line(Duration::from_millis(12_340), "x"), "[ 12.3 s] x");
    }

    #[test]
    fn an_event_is_one_line_of_json_that_no_terminal_acts_upon() {
        let text = event("waiting", 1.23456, &json!({ "message": "a\nb\u{202e}" }));
        assert!(!text.contains(['\n', '\u{202e}']), "{text}");
        let read: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            read,
            json!({ "event": "waiting", "seconds": 1.235, "message": "a\nb\u{202e}" })
        );
    }
}
