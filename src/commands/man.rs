//! `windlass man`: manual pages.

use std::{io::Write, path::PathBuf, process::ExitCode};

use anyhow::Context as _;
use clap::{Command, Parser};
use clap_mangen::Man;

/// Prints the manual page windlass(1), for example for: windlass man | man --local-file -
#[derive(Clone, Debug, Parser)]
pub(super) struct Args {
    /// Write this page and one for each command to DIR, overwriting existing files.
    #[arg(long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
}

impl Args {
    pub(super) fn run(&self, command: Command) -> anyhow::Result<ExitCode> {
        let command = command.disable_help_subcommand(true);
        let Some(directory) = &self.output_dir else {
            let mut page = Vec::new();
            Man::new(command).render(&mut page)?;
            std::io::stdout()
                .write_all(&page)
                .context("cannot write to standard output")?;
            return Ok(ExitCode::SUCCESS);
        };
        let shown = directory.display();
        std::fs::create_dir_all(directory).with_context(|| format!("cannot create {shown}"))?;
        clap_mangen::generate_to(command, directory).with_context(|| format!("cannot write to {shown}"))?;
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::commands::Cli;

    #[test]
    fn every_command_has_a_page_that_names_its_options() {
        let directory = tempfile::tempdir().unwrap();
        let args = Args {
            output_dir: Some(directory.path().join("man1")),
        };
        args.run(Cli::command()).unwrap();
        let page = |name: &str| std::fs::read_to_string(directory.path().join("man1").join(name)).unwrap();
        let whole = page("windlass.1");
        for command in Cli::command().get_subcommands() {
            let name = format!("windlass-{}", command.get_name());
            assert!(whole.contains(&name.replace('-', "\\-")), "{name}: {whole}");
            assert!(page(&format!("{name}.1")).contains("SYNOPSIS"), "{name}");
        }
        assert!(page("windlass-run.1").contains("\\-\\-bundle\\-dir"));
        assert!(page("windlass-hooks-call.1").contains("\\-\\-request"));
    }
}
