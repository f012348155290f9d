//! Progress output of the demo and the benchmarks: a line for each step, live on a terminal.

use std::{
    future::Future,
    io::IsTerminal,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::bail;
use indicatif::{ProgressBar, ProgressStyle};
use parking_lot::Mutex;

use crate::{
    command::{Command, typed},
    load::Load,
};

/// The interval of the spinner and the counter.
const TICK: Duration = Duration::from_millis(100);

/// The interval of progress lines for long steps without a terminal.
const SIGN_OF_LIFE: Duration = Duration::from_secs(30);

/// Prints steps with their durations.
pub struct StepPrinter {
    started: Instant,
    live: bool,
    /// The spinner of the current step.
    spinner: Mutex<ProgressBar>,
}

impl StepPrinter {
    /// Returns a printer whose clock starts now.
    pub fn start() -> Self {
        Self {
            started: Instant::now(),
            live: std::io::stdout().is_terminal(),
            spinner: Mutex::new(ProgressBar::hidden()),
        }
    }

    /// Prints a line with the elapsed time.
    pub fn say(&self, text: &str) {
        self.print(&format!(
            "[{:5.1} s] {text}",
            self.started.elapsed().as_secs_f64()
        ));
    }

    /// Prints the heading of the next steps.
    pub fn heading(&self, text: &str) {
        self.print(&format!("\n{text}"));
    }

    /// Runs a step: shows a spinner during it, and a line after it.
    pub async fn step<T>(
        &self,
        title: &str,
        work: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<T> {
        self.watched(title, String::new, work).await
    }

    /// Runs a step, and shows the number of requests that `load` has sent.
    pub async fn under_load<T>(
        &self,
        title: &str,
        load: &Load,
        work: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<T> {
        self.watched(title, || counts(load), work).await
    }

    /// Runs a command, and prints it with its output, and the requests that `load` has sent.
    pub async fn command(
        &self,
        command: &Command,
        arguments: &[&str],
        load: Option<&Load>,
    ) -> anyhow::Result<()> {
        let title = typed(arguments);
        let displayed: Vec<String> = arguments.iter().map(|argument| relative(argument)).collect();
        let displayed: Vec<&str> = displayed.iter().map(String::as_str).collect();
        self.print(&format!("          $ {}", typed(&displayed)));
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

    /// Prints a line of a command's output.
    fn quote(&self, line: &str) {
        self.print(&format!("            {}", shortened(line)));
    }

    fn print(&self, line: &str) {
        self.spinner.lock().suspend(|| println!("{line}"));
    }

    /// Runs a step, and appends `detail` to its line.
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

/// Returns a path below the current folder relative to it, and any other argument unchanged.
fn relative(argument: &str) -> String {
    let path = Path::new(argument);
    let relative = || {
        let current = std::env::current_dir().ok()?.canonicalize().ok()?;
        let path = path.canonicalize().ok()?;
        Some(format!("./{}", path.strip_prefix(current).ok()?.to_str()?))
    };
    if path.is_absolute() {
        relative().unwrap_or_else(|| argument.to_owned())
    } else {
        argument.to_owned()
    }
}

/// Shortens a message about pods that are not ready: names those with the same cause together, and omits the conditions'
/// types and reasons.
fn shortened(line: &str) -> String {
    const NOT_READY: &str = " is not ready: ";
    const CONDITION: &str = "ContainersReady: ContainersNotReady: containers with unready status: ";
    let (message, reason) = match line.rsplit_once(" (") {
        Some((message, reason)) if reason.ends_with(')') => (message, format!(" ({reason}")),
        _ => (line, String::new()),
    };
    let mut parts = Vec::<(Vec<&str>, String)>::new();
    for part in message.split("; ") {
        let (pod, cause) = match part.split_once(NOT_READY) {
            Some((pod, cause)) if !pod.contains(' ') => (Some(pod), cause),
            _ => (None, part),
        };
        let cause = cause.replace(CONDITION, "containers ");
        let is_known = parts
            .last()
            .is_some_and(|(pods, known)| !pods.is_empty() && *known == cause);
        if is_known
            && let Some(pod) = pod
            && let Some((pods, _)) = parts.last_mut()
        {
            pods.push(pod);
        } else {
            parts.push((Vec::from_iter(pod), cause));
        }
    }
    let parts = parts.into_iter().map(|(pods, cause)| match pods.as_slice() {
        [] => cause,
        [pod] => format!("pod {pod} is not ready: {cause}"),
        pods => format!("pods {} are not ready: {cause}", pods.join(", ")),
    });
    parts.collect::<Vec<String>>().join("; ") + &reason
}

fn counts(load: &Load) -> String {
    let report = load.report();
    format!(" ({} requests, {} failed)", report.requests, report.failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_with_the_same_cause_are_named_together() {
        let cause = "ContainersReady: ContainersNotReady: containers with unready status: [manager]";
        let line = format!("0 available; a is not ready: {cause}; b is not ready: {cause} (RollingOut)");
        assert_eq!(
            shortened(&line),
            "0 available; pods a, b are not ready: containers [manager] (RollingOut)"
        );
    }
}
