//! The programs of scenarios, the demo and benchmarks, as one executable: see [`Program`].

mod load;
mod node;
mod push;
mod real;
mod sandbox;
mod shutdown;

use std::process::ExitCode;

use anyhow::anyhow;
use clap::Parser;
use windlass::commands::{self, Cli};
use windlass_scenarios::{programs, trial};

/// Scenarios, the demo and benchmarks, and the programs that they start.
#[derive(Debug, Parser)]
#[command(version)]
enum Program {
    Demo(windlass_demo::Arguments),
    Real(real::Arguments),
    Soak(windlass_bench::Arguments),
    Sandbox(sandbox::Arguments),
    Node(node::Arguments),
    Load(load::Arguments),
    Push(push::Arguments),
    Windlass(Cli),
    /// Runs the operator, as `windlass run` does.
    Operator(Box<commands::run::Args>),
    SampleOperator(sample_operator::Args),
}

fn main() -> anyhow::Result<ExitCode> {
    rustls::crypto::ring::default_provider()
        .install_default()
        .map_err(|_| anyhow!("another part of the program has already chosen a TLS provider"))?;
    let program = Program::parse();
    if let Some(filter) = program.log_filter() {
        programs::log(filter);
    }
    program.run()
}

impl Program {
    /// Returns the log filter without `RUST_LOG`; `None` if the program starts its own logs.
    fn log_filter(&self) -> Option<&'static str> {
        match self {
            Self::Demo(_) | Self::Soak(_) | Self::Load(_) => Some("error"),
            Self::Real(_) => Some(trial::LOG_FILTER),
            Self::Sandbox(_) | Self::Node(_) | Self::Push(_) => Some("info"),
            Self::Windlass(_) | Self::Operator(_) | Self::SampleOperator(_) => None,
        }
    }

    fn run(self) -> anyhow::Result<ExitCode> {
        if let Self::Real(arguments) = self {
            // Each scenario has its own runtime.
            return real::run(arguments);
        }
        tokio::runtime::Runtime::new()?.block_on(self.start())
    }

    async fn start(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Demo(arguments) if arguments.needs_control_plane() => {
                Err(real::restart_with_control_plane())
            }
            Self::Demo(arguments) => {
                let report = windlass_demo::run(arguments, std::env::current_exe()?).await?;
                println!("{}", windlass_demo::summary(&report));
                Ok(exit_code(report.failed == 0 && report.requests > 0))
            }
            Self::Soak(arguments) if arguments.plan => {
                println!("{arguments}");
                Ok(ExitCode::SUCCESS)
            }
            Self::Soak(arguments) => {
                let outcome = windlass_bench::run(arguments, std::env::current_exe()?).await?;
                println!("{outcome}");
                Ok(exit_code(outcome.is_good()))
            }
            Self::Real(arguments) => real::run(arguments),
            Self::Sandbox(arguments) => sandbox::run(arguments).await,
            Self::Node(arguments) => node::run(arguments).await,
            Self::Load(arguments) => load::run(arguments).await,
            Self::Push(arguments) => push::run(arguments).await,
            Self::Windlass(cli) => cli.run().await,
            Self::Operator(arguments) => arguments.run().await,
            Self::SampleOperator(arguments) => {
                sample_operator::run(arguments).await.map(|()| ExitCode::SUCCESS)
            }
        }
    }
}

fn exit_code(is_good: bool) -> ExitCode {
    if is_good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_arguments_of_every_program_are_consistent() {
        Program::command().debug_assert();
    }

    #[test]
    fn programs_of_test_clusters_are_subcommands() {
        for program in [programs::WINDLASS, programs::OPERATOR, programs::SAMPLE_OPERATOR] {
            assert!(Program::command().find_subcommand(program).is_some(), "{program}");
        }
        assert!(Cli::command().find_subcommand(programs::RUN).is_some());
    }
}
