//! Load on the CPU.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use crate::steps;

/// The variable with the number of threads; the default is none.
const BUSY: &str = "WINDLASS_E2E_BUSY";

/// Threads that load the CPU until this is dropped.
pub(crate) struct BusyMachine(Arc<AtomicBool>);

impl BusyMachine {
    /// Starts as many threads as [`BUSY`] says.
    ///
    /// # Errors
    ///
    /// Fails if that is not a number.
    pub(crate) fn start() -> anyhow::Result<Self> {
        let ended = Arc::new(AtomicBool::new(false));
        for _ in 0..steps::number_in(BUSY, 0)? {
            let ended = ended.clone();
            thread::spawn(move || {
                while !ended.load(Ordering::Relaxed) {
                    std::hint::black_box((0..100_000_u64).sum::<u64>());
                }
            });
        }
        Ok(Self(ended))
    }
}

impl Drop for BusyMachine {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
