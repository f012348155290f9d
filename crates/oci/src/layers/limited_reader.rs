//! Streams with a limit.

use std::{
    cell::Cell,
    io::{self, Read},
    rc::Rc,
};

/// A stream that fails at its limit instead of ending.
pub(super) struct LimitedReader<R> {
    pub(super) stream: R,
    pub(super) left: u64,
    /// The number of bytes read.
    pub(super) read: Rc<Cell<u64>>,
}

#[derive(Debug, thiserror::Error)]
#[error("the limit on unpacked bytes is reached")]
struct LimitReached;

impl<R: Read> Read for LimitedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && !buffer.is_empty() {
            return Err(io::Error::other(LimitReached));
        }
        let length = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let read = self.stream.read(&mut buffer[..length])?;
        self.left -= read as u64;
        self.read.set(self.read.get() + read as u64);
        Ok(read)
    }
}

/// Reports whether an error comes from the limit.
pub(super) fn is_limit(cause: &io::Error) -> bool {
    matches!(cause.get_ref(), Some(cause) if cause.is::<LimitReached>())
}
