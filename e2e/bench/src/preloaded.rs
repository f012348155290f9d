//! What the operator sees of the world: another time, and a pod that it cannot reach.

use std::path::{Path, PathBuf};

use anyhow::Context;
use tokio::process::Command;
use windlass_scenarios::test_cluster::TestCluster;

/// A library that stands between a process and the C library. `unsafe` Rust, which it would be, is forbidden here, and cargo
/// needs a C compiler anyway.
const SOURCE: &str = include_str!("preloaded.c");

/// Minutes by which a clock is fast or slow, one after the other: each step is another distance.
const SHIFTS: [i32; 8] = [40, -40, 120, -120, 40, -120, 0, 120];

/// What an operator is shown that runs with its [environment](Self::environment), and nobody else.
pub(super) struct PreloadedWorld {
    library: PathBuf,
    /// Says by how many seconds the clock is off.
    clock: PathBuf,
    /// Says which address is not reached.
    unreachable: PathBuf,
}

impl PreloadedWorld {
    /// The world as it is.
    pub(super) async fn new(cluster: &TestCluster) -> anyhow::Result<Self> {
        let source = cluster.write("preloaded.c", SOURCE)?;
        let library = source.with_extension("so");
        let compiler = Command::new("cc")
            .args(["-O1", "-shared", "-fPIC", "-o"])
            .args([&library, &source])
            .status();
        let compiled = compiler.await.context("cc is missing: install a C compiler")?;
        anyhow::ensure!(compiled.success(), "{} cannot be compiled", source.display());
        Ok(Self {
            library,
            clock: cluster.write("clock", "0")?,
            unreachable: cluster.write("unreachable", "")?,
        })
    }

    /// What makes a process see it.
    pub(super) fn environment(&self) -> [(String, String); 3] {
        [
            ("LD_PRELOAD", &self.library),
            ("STEPPED_CLOCK", &self.clock),
            ("UNREACHABLE", &self.unreachable),
        ]
        .map(|(name, value)| (name.to_owned(), value.display().to_string()))
    }

    /// Lets the clock step for the `number`th time, counted from 0. Waits go by another clock, which does not.
    pub(super) fn step(&self, number: u32) -> anyhow::Result<()> {
        let shift = SHIFTS[usize::try_from(number)? % SHIFTS.len()];
        replace(&self.clock, &(shift * 60).to_string())
    }

    /// Lets no connection be made to an IPv4 address.
    pub(super) fn hide(&self, address: &str) -> anyhow::Result<()> {
        replace(&self.unreachable, address)
    }
}

/// Replaces a file at once: no process reads half of it.
fn replace(file: &Path, content: &str) -> anyhow::Result<()> {
    let next = file.with_extension("next");
    std::fs::write(&next, content)?;
    std::fs::rename(&next, file).with_context(|| format!("replacing {}", file.display()))
}
