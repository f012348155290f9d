//! `sample-operator`: see the library.

use clap::Parser;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    sample_operator::run(sample_operator::Args::parse()).await
}
