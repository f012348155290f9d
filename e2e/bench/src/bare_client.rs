//! A client that writes targets and does nothing else: what an operator is compared with.

use futures::{StreamExt, TryStreamExt, stream};

use super::stranger::{ForeignWrite, Stranger};

/// Writes that are under way at a time.
const IN_FLIGHT: usize = 16;

/// Puts `bundle` into every target.
pub(super) async fn write_all(stranger: &Stranger, bundle: &str) -> anyhow::Result<Vec<ForeignWrite>> {
    let writing = (0..stranger.targets()).map(|target| stranger.write(target, bundle));
    // Boxed: a stream of borrowing futures is not known to be `Send`.
    let writing = stream::iter(writing).buffered(IN_FLIGHT).boxed_local();
    writing.try_collect().await
}
