//! `cargo demo`: see [`windlass_e2e::demo`].

use std::process::ExitCode;

use clap::Parser;
use windlass_e2e::{demo, programs};

fn main() -> anyhow::Result<ExitCode> {
    programs::main("error", |runtime| {
        let arguments = demo::Arguments::parse();
        let report = runtime.block_on(demo::run(arguments, std::env::current_exe()?))?;
        println!("{}", demo::summary(&report));
        Ok(if report.failed == 0 && report.requests > 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    })
}
