//! Work that recurses, on a stack that is large enough.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    thread,
};

/// Bytes of stack for the parser: an unoptimised level of it takes some 100 KiB.
const STACK: usize = 64 << 20;

/// What is said where the library panics.
const FAILED: &str = "the expression is of a form that is not supported";

/// How deep what is evaluated may be nested on the stack that there is: an unoptimised level takes some 30 KiB.
const SHALLOW: usize = 24;

/// Runs `work`, which recurses so deep, aside if need be. The library may panic on what it does not know.
///
/// # Errors
///
/// When it does.
pub(super) fn nested<T: Send>(depth: usize, work: impl FnOnce() -> T + Send) -> Result<T, String> {
    if depth > SHALLOW {
        return on_large_stack(work);
    }
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| FAILED.to_owned())
}

/// Runs `work` aside. The parser may also panic on what it does not know.
///
/// # Errors
///
/// When it does.
pub(super) fn on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, String> {
    thread::scope(|scope| {
        let worker = thread::Builder::new()
            .stack_size(STACK)
            .spawn_scoped(scope, work)
            .map_err(|error| error.to_string())?;
        worker.join().map_err(|_| FAILED.to_owned())
    })
}
