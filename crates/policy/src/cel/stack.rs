//! Runs recursive work on a large stack.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    thread,
};

/// Stack size in bytes for the parser: an unoptimised level needs some 100 KiB.
const STACK: usize = 64 << 20;

/// The message if the library panics.
const FAILED: &str = "the form of the expression is not supported";

/// The maximum nesting that fits the current stack: an unoptimised level of the evaluation needs some 30 KiB.
const SHALLOW: usize = 24;

/// Runs recursive `work`, on a large stack if `depth` requires it. The library may panic on unsupported
/// input.
///
/// # Errors
///
/// If it panics.
pub(super) fn run_with_stack<T: Send>(depth: usize, work: impl FnOnce() -> T + Send) -> Result<T, String> {
    if depth > SHALLOW {
        return on_large_stack(work);
    }
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| FAILED.to_owned())
}

/// Runs `work` on a large stack. The parser may panic on unsupported input.
///
/// # Errors
///
/// If it panics.
pub(super) fn on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, String> {
    thread::scope(|scope| {
        let worker = thread::Builder::new()
            .stack_size(STACK)
            .spawn_scoped(scope, work)
            .map_err(|error| error.to_string())?;
        worker.join().map_err(|_| FAILED.to_owned())
    })
}
