//! Work that recurses, on a stack that is large enough.

use std::thread;

/// Bytes of stack for the parser: an unoptimised level of it takes some 100 KiB.
const STACK: usize = 64 << 20;

/// Runs `work` aside. The parser may also panic on what it does not know.
///
/// # Errors
///
/// When it does.
pub(super) fn aside<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, String> {
    thread::scope(|scope| {
        let worker = thread::Builder::new()
            .stack_size(STACK)
            .spawn_scoped(scope, work)
            .map_err(|error| error.to_string())?;
        worker.join().map_err(|_| "the parser failed".to_owned())
    })
}
