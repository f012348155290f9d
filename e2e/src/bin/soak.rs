//! `e2e/soak`: see [`windlass_e2e::soak`].

use std::process::ExitCode;

use clap::Parser;
use windlass_e2e::{programs, soak};

fn main() -> anyhow::Result<ExitCode> {
    programs::main("error", |runtime| {
        let arguments = soak::Arguments::parse();
        if arguments.plan {
            println!("{arguments}");
            return Ok(ExitCode::SUCCESS);
        }
        let outcome = runtime.block_on(soak::run(arguments, std::env::current_exe()?))?;
        println!("{outcome}");
        Ok(if outcome.is_good() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    })
}
