//! `windlass completions`: completion scripts for shells.

use std::{io::Write, process::ExitCode};

use anyhow::Context as _;
use clap::{Command, Parser};
use clap_complete::Shell;

/// Prints a completion script for a shell, such as: source <(windlass completions bash)
#[derive(Clone, Debug, Parser)]
#[command(alias = "completion")] // the name of kubectl's command
pub(super) struct Args {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

impl Args {
    pub(super) fn run(&self, command: Command) -> anyhow::Result<ExitCode> {
        std::io::stdout()
            .write_all(&script(self.shell, command))
            .context("cannot write to standard output")?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns the script for `command`, independent of the name of the running file.
fn script(shell: Shell, mut command: Command) -> Vec<u8> {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    script
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;
    use clap::ValueEnum as _;

    use super::*;
    use crate::commands::Cli;

    #[test]
    fn every_shell_completes_every_command() {
        for shell in Shell::value_variants() {
            let script = String::from_utf8(script(*shell, Cli::command())).unwrap();
            for command in Cli::command().get_subcommands() {
                assert!(
                    script.contains(command.get_name()),
                    "{shell}: {}",
                    command.get_name()
                );
            }
            assert!(script.contains("windlass"), "{shell}");
        }
    }
}
