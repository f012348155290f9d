//! What a program prints while it works: a line for each step, live on a terminal.

use std::{
    future::Future,
    io::IsTerminal,
    time::{Duration, Instant},
};

use anyhow::bail;
use indicatif::{ProgressBar, ProgressStyle};
use parking_lot::Mutex;

use crate::{
    command::{Command, typed},
    load::Load,
};

/// How often the spinner and the counter move.
const TICK: Duration = Duration::from_millis(100);

/// How often a step that takes long is told where there is no terminal.
const SIGN_OF_LIFE: Duration = Duration::from_secs(30);

/// Prints steps.
pub struct StepPrinter {
    started: Instant,
    live: bool,
    /// That of the step that is under way.
    spinner: Mutex<ProgressBar>,
}

impl StepPrinter {
    /// Shows nothing yet.
    pub fn start() -> Self {
        Self {
            started: Instant::now(),
            live: std::io::stdout().is_terminal(),
            spinner: Mutex::new(ProgressBar::hidden()),
        }
    }

    /// Prints a line.
    pub fn say(&self, text: &str) {
        self.print(&format!(
            "[{:5.1} s] {text}",
            self.started.elapsed().as_secs_f64()
        ));
    }

    /// Runs a step: a spinner while it lasts, a line when it is done.
    pub async fn step<T>(
        &self,
        title: &str,
        work: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<T> {
        self.watched(title, String::new, work).await
    }

    /// Runs a step while `load` goes on, showing how many requests it has sent.
    pub async fn under_load<T>(
        &self,
        title: &str,
        load: &Load,
        work: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<T> {
        self.watched(title, || counts(load), work).await
    }

    /// Runs a command, showing what is typed and what it prints, while `load` goes on, if there is one.
    pub async fn command(
        &self,
        command: &Command,
        arguments: &[&str],
        load: Option<&Load>,
    ) -> anyhow::Result<()> {
        let title = typed(arguments);
        self.print(&format!("          $ {title}"));
        let short = typed(&arguments[..1]);
        let run = async {
            let output = command.run(arguments, |line| self.quote(line)).await?;
            output.stdout.lines().for_each(|line| self.quote(line));
            if !output.succeeded {
                bail!("{title} failed");
            }
            Ok(())
        };
        let detail = || load.map(counts).unwrap_or_default();
        self.watched(&short, detail, run).await
    }

    /// Prints what a command printed.
    fn quote(&self, line: &str) {
        self.print(&format!("            {line}"));
    }

    fn print(&self, line: &str) {
        self.spinner.lock().suspend(|| println!("{line}"));
    }

    /// Runs a step, showing what `detail` says of it.
    pub async fn watched<T>(
        &self,
        title: &str,
        detail: impl Fn() -> String,
        work: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<T> {
        let started = Instant::now();
        let spinner = if self.live {
            ProgressBar::new_spinner()
        } else {
            ProgressBar::hidden()
        };
        spinner.set_style(ProgressStyle::default_spinner());
        *self.spinner.lock() = spinner.clone();
        tokio::pin!(work);
        let mut tick = tokio::time::interval(TICK);
        let mut told = started;
        let outcome = loop {
            tokio::select! {
                outcome = &mut work => break outcome,
                _ = tick.tick() => {
                    spinner.set_message(format!("{title}{}", detail()));
                    spinner.tick();
                    if !self.live && told.elapsed() > SIGN_OF_LIFE {
                        self.say(&format!("{title}{}", detail()));
                        told = Instant::now();
                    }
                }
            }
        };
        spinner.finish_and_clear();
        let mark = if outcome.is_ok() { "done" } else { "FAILED" };
        self.say(&format!(
            "{title}: {mark} in {:.1} s{}",
            started.elapsed().as_secs_f64(),
            detail()
        ));
        outcome
    }
}

fn counts(load: &Load) -> String {
    let report = load.report();
    format!(" ({} requests, {} failed)", report.requests, report.failed)
}
