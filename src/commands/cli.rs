//! The command line.

use std::{
    ffi::{OsStr, OsString},
    path::Path,
    process::ExitCode,
};

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand, error::ErrorKind};
use futures::future::LocalBoxFuture;

use super::{
    adoption, bundle_images, catalog, certs, check, completions, doctor, history, hooks, install, interpret,
    man, manifests, policy, render, report, rollback, rotate, run, status, ui, uninstall,
};

/// Installs operator bundles, and issues and rotates certificates for their webhooks.
#[derive(Debug, Parser)]
#[command(name = "windlass", version, about, disable_help_subcommand = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(Box<run::Args>),
    Manifests(manifests::Args),
    Check(check::Args),
    Render(render::Args),
    Bundle(bundle_images::Args),
    Catalog(catalog::Args),
    Install(Box<install::Args>),
    Adoption(adoption::Args),
    Uninstall(uninstall::Args),
    Status(status::Args),
    History(history::Args),
    Report(report::Args),
    Doctor(doctor::Args),
    Ui(ui::Args),
    Rollback(rollback::Args),
    Certs(certs::Args),
    Rotate(rotate::Args),
    Hooks(hooks::Args),
    Interpret(Box<interpret::Args>),
    Policy(Box<policy::Args>),
    Completions(completions::Args),
    Man(man::Args),
}

/// The file name of the kubectl plugin, and the command that its users type ("Extend kubectl with plugins" in
/// the Kubernetes documentation).
const PLUGIN: (&str, &str) = ("kubectl-windlass", "kubectl windlass");

impl Cli {
    /// Parses a command line, whose first argument is the program. The kubectl plugin shows `kubectl
    /// windlass` in its usage.
    ///
    /// # Errors
    ///
    /// What is wrong with it; or the requested help or version.
    pub fn read(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let mut arguments = arguments.into_iter().peekable();
        let mut command = Self::command();
        let (file, shown) = PLUGIN;
        let program = arguments.peek().map(Path::new).and_then(Path::file_name);
        if program == Some(OsStr::new(file)) {
            command = command.bin_name(shown);
        }
        let read = Self::from_arg_matches(&command.try_get_matches_from_mut(arguments)?)?;
        let unfit = |error| command.error(ErrorKind::ValueValidation, error);
        read.command.check().map_err(unfit)?;
        Ok(read)
    }

    /// Runs the command.
    ///
    /// # Errors
    ///
    /// When the command fails; problems that it finds in its input set the exit code instead.
    pub fn run(self) -> LocalBoxFuture<'static, anyhow::Result<ExitCode>> {
        // Boxed: the body is compiled here once, not again in every program that runs it.
        Box::pin(async move {
            match self.command {
                Command::Run(args) => args.run().await,
                Command::Manifests(args) => args.run(),
                Command::Check(args) => args.run().await,
                Command::Render(args) => args.run().await,
                Command::Bundle(args) => args.run().await,
                Command::Catalog(args) => args.run().await,
                Command::Install(args) => args.run().await,
                Command::Adoption(args) => args.run().await,
                Command::Uninstall(args) => args.run().await,
                Command::Status(args) => args.run().await,
                Command::History(args) => args.run().await,
                Command::Report(args) => args.run().await,
                Command::Doctor(args) => args.run().await,
                Command::Ui(args) => args.run().await,
                Command::Rollback(args) => args.run().await,
                Command::Certs(args) => args.run().await,
                Command::Rotate(args) => args.run().await,
                Command::Hooks(args) => args.run().await,
                Command::Interpret(args) => args.run().await,
                Command::Policy(args) => args.run().await,
                Command::Completions(args) => args.run(Self::command()),
                Command::Man(args) => args.run(Self::command()),
            }
        })
    }
}

impl Command {
    /// Checks combinations of arguments that clap cannot check.
    fn check(&self) -> anyhow::Result<()> {
        match self {
            Self::Install(args) => args.check(),
            Self::Render(args) => args.check(),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_of_every_command_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn arguments_are_accepted_or_rejected() {
        for (arguments, is_fine) in [
            (&["install", "./b", "-n", "ns"][..], true),
            (&["install", "./b", "-n", "ns", "--wait"], true),
            (
                &["install", "./b", "-n", "ns", "--wait=false", "--timeout", "90s"],
                true,
            ),
            (&["install", "./b", "-n", "ns", "--timeout", "soon"], false),
            (&["install", "./b"], false),
            (&["install", "b", "-n", "ns"], false),
            (
                &["install", "./b", "-n", "ns", "--adopt-from", "helm/release"],
                true,
            ),
            (&["install", "./b", "-n", "ns", "--adopt-from", "olm/csv"], true),
            (
                &["install", "./b", "-n", "ns", "--adopt-from", "service-ca/service"],
                true,
            ),
            (
                &["install", "./b", "-n", "ns", "--adopt-from", "kustomize/folder"],
                false,
            ),
            (&["adoption", "confirm", "a", "--dry-run"], true),
            (&["adoption", "undo", "a"], true),
            (&["adoption", "a"], false),
            (&["uninstall", "../a"], false),
            (&["status", "a", "-o", "yaml"], true),
            (&["history", "a", "-o", "json"], true),
            (&["report", "a.html"], true),
            (&["report"], false),
            (&["doctor", "-o", "json"], true),
            (&["doctor", "--missing-rights"], true),
            (&["doctor", "--missing-rights", "-o", "json"], false),
            (&["doctor", "--checks", "-o", "json"], false),
            (&["ui", "--cert-dir", "/tls"], true),
            (&["ui"], false),
            (&["rollback", "a"], true),
            (&["rollback", "a", "--to", "3", "--wait=false"], true),
            (&["rollback", "a", "--to", "0"], false),
            (&["certs", "-n", "ns", "-o", "json"], true),
            (&["rotate", "ns/name", "--ca", "--reason", "why", "--wait"], true),
            (&["rotate", "name"], false),
            (&["catalog", "list", "--catalog", "c", "-o", "json"], true),
            (
                &["catalog", "path", "p", "--catalog", "c", "--version", ">=1.2 <2"],
                true,
            ),
            (
                &["catalog", "path", "p", "--catalog", "c", "--version", "newest"],
                false,
            ),
            (
                &["catalog", "path", "p", "--catalog", "c", "--from-name", "p.v1"],
                false,
            ),
            (&["catalog", "list"], false),
            (&["hooks", "list", "-o", "json"], true),
            (
                &[
                    "hooks",
                    "call",
                    "BeforeClusterCreate",
                    "--request",
                    "-",
                    "--config",
                    "a",
                ],
                true,
            ),
            (&["hooks", "call", "BeforeClusterCreate"], false),
            (&["completions", "zsh"], true),
            (&["completion", "bash"], true),
            (&["completions", "sh"], false),
            (&["man"], true),
        ] {
            let parsed = Cli::read(
                [&["windlass"], arguments]
                    .concat()
                    .into_iter()
                    .map(OsString::from),
            );
            assert_eq!(parsed.is_ok(), is_fine, "{arguments:?}");
        }
    }

    #[test]
    fn the_kubectl_plugin_shows_kubectl_in_its_usage() {
        for (program, usage) in [
            ("/usr/bin/kubectl-windlass", "Usage: kubectl windlass rotate "),
            ("/usr/bin/windlass", "Usage: windlass rotate "),
        ] {
            let read = Cli::read([program, "rotate", "--help"].map(OsString::from));
            let text = read.unwrap_err().to_string();
            assert!(text.contains(usage), "{text}");
        }
    }
}
