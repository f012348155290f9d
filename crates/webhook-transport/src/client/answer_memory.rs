//! How much memory answers may take, all together.

use std::{future::pending, sync::Arc};

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Memory that the answers of a transport share, from the first byte that is read until the last clone of them is dropped.
///
/// # Guarantees
///
/// - An answer of at most [`SMALL`] bytes waits for nobody.
/// - All others together take no more than the shared memory and that of one answer of the largest size, but for the half of one
///   that is copied while it grows.
/// - Answers that wait for each other's memory never wait for ever: one of them at a time may grow to the largest size beside the
///   shared memory.
#[derive(Clone)]
pub(super) struct AnswerMemory {
    largest: usize,
    /// A permit for each KiB.
    shared: Arc<Semaphore>,
    /// One permit: to be as large as an answer may be.
    spare: Arc<Semaphore>,
}

/// An answer that is being read.
pub(super) struct GrowingAnswer {
    memory: AnswerMemory,
    bytes: Vec<u8>,
    allowance: Allowance,
}

/// What one answer may take.
#[derive(Default)]
struct Allowance {
    bytes: usize,
    shared: Option<OwnedSemaphorePermit>,
    spare: Option<OwnedSemaphorePermit>,
}

/// An answer, which takes memory as long as anybody has it.
struct HeldAnswer {
    bytes: Vec<u8>,
    _allowance: Allowance,
}

/// An answer is larger than any may be.
pub(super) struct TooLargeError;

/// How many bytes any answer may have: what hooks and interpreters usually say is far below that.
pub(super) const SMALL: usize = 64 << 10;

const KIB: usize = 1 << 10;

// === impl AnswerMemory ===

impl AnswerMemory {
    /// Memory for answers of at most `largest` bytes each, which share `shared` bytes.
    pub(super) fn new(largest: usize, shared: usize) -> Self {
        Self {
            largest,
            shared: Arc::new(Semaphore::new((shared / KIB).min(Semaphore::MAX_PERMITS))),
            spare: Arc::new(Semaphore::new(1)),
        }
    }

    /// An answer of which nothing is read yet.
    pub(super) fn answer(&self) -> GrowingAnswer {
        GrowingAnswer {
            memory: self.clone(),
            bytes: Vec::new(),
            allowance: Allowance {
                bytes: self.largest.min(SMALL),
                ..Allowance::default()
            },
        }
    }

    /// Waits until there is memory for twice as much as there was, or for all that an answer may have.
    async fn grow(&self, allowance: &mut Allowance) {
        let next = (allowance.bytes * 2).min(self.largest);
        let more = (next - allowance.bytes).div_ceil(KIB);
        let shared = async {
            match u32::try_from(more) {
                Ok(more) => self.shared.clone().acquire_many_owned(more).await,
                Err(_) => pending().await,
            }
        };
        tokio::select! {
            biased;
            Ok(permit) = shared => {
                allowance.bytes = next;
                match &mut allowance.shared {
                    Some(held) => held.merge(permit),
                    held => *held = Some(permit),
                }
            }
            Ok(permit) = self.spare.clone().acquire_owned() => {
                allowance.bytes = self.largest;
                // What it had of the shared memory is for those that wait.
                allowance.shared = None;
                allowance.spare = Some(permit);
            }
            // Neither semaphore is ever closed.
            else => {}
        }
    }
}

// === impl GrowingAnswer ===

impl GrowingAnswer {
    /// Appends what was read, when there is memory for it.
    pub(super) async fn extend(&mut self, read: &[u8]) -> Result<(), TooLargeError> {
        let length = self.bytes.len() + read.len();
        if length > self.memory.largest {
            return Err(TooLargeError);
        }
        while length > self.allowance.bytes {
            self.memory.grow(&mut self.allowance).await;
        }
        if length > self.bytes.capacity() {
            let room = (length * 2).min(self.allowance.bytes);
            self.bytes.reserve_exact(room - self.bytes.len());
        }
        self.bytes.extend_from_slice(read);
        Ok(())
    }

    /// All that was read. Its memory is free for others when the last clone is dropped.
    pub(super) fn into_bytes(self) -> Bytes {
        let Self { bytes, allowance, .. } = self;
        if allowance.shared.is_none() && allowance.spare.is_none() {
            return bytes.into();
        }
        Bytes::from_owner(HeldAnswer {
            bytes,
            _allowance: allowance,
        })
    }
}

// === impl HeldAnswer ===

impl AsRef<[u8]> for HeldAnswer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt;
    use tokio::time::timeout;

    use super::*;

    const LARGEST: usize = 8 * SMALL;

    /// Reads so many bytes at once.
    async fn read(answer: &mut GrowingAnswer, count: usize) -> Result<(), TooLargeError> {
        for part in vec![b'x'; count].chunks(SMALL / 4) {
            answer.extend(part).await?;
        }
        Ok(())
    }

    fn is_read_at_once(answer: &mut GrowingAnswer, count: usize) -> bool {
        read(answer, count).now_or_never().is_some()
    }

    #[tokio::test]
    async fn small_answers_wait_for_nobody() {
        let memory = AnswerMemory::new(LARGEST, 0);
        let mut large = memory.answer();
        assert!(is_read_at_once(&mut large, LARGEST));
        for _ in 0..100 {
            let mut answer = memory.answer();
            assert!(is_read_at_once(&mut answer, SMALL));
            assert_eq!(answer.into_bytes().len(), SMALL);
        }
        assert!(!is_read_at_once(&mut memory.answer(), SMALL + 1));
    }

    #[tokio::test]
    async fn large_answers_share_what_there_is_until_they_are_dropped() {
        let memory = AnswerMemory::new(LARGEST, LARGEST);
        let mut first = memory.answer();
        assert!(is_read_at_once(&mut first, LARGEST));
        // One more beside what is shared.
        let mut second = memory.answer();
        assert!(is_read_at_once(&mut second, LARGEST));
        // What the first left is for twice as much as any may have.
        let mut third = memory.answer();
        assert!(is_read_at_once(&mut third, 2 * SMALL));
        assert!(!is_read_at_once(&mut third, SMALL));

        let (first, second) = (first.into_bytes(), second.into_bytes());
        let clone = first.slice(1..2);
        drop(first);
        assert!(!is_read_at_once(&mut third, SMALL));
        drop(clone);
        assert!(is_read_at_once(&mut third, SMALL));
        assert_eq!(second.len(), LARGEST);
    }

    #[tokio::test]
    async fn more_than_the_largest_is_refused() {
        let memory = AnswerMemory::new(LARGEST, LARGEST);
        let mut answer = memory.answer();
        assert!(read(&mut answer, LARGEST).await.is_ok());
        assert!(answer.extend(b"x").await.is_err());
        // Even less than what every answer may have.
        let mut answer = AnswerMemory::new(2, 0).answer();
        assert!(answer.extend(b"xx").await.is_ok());
        assert!(answer.extend(b"x").await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn answers_that_wait_for_each_other_are_all_read() {
        let memory = AnswerMemory::new(LARGEST, LARGEST / 2);
        let answers = (0..20).map(|_| async {
            let mut answer = memory.answer();
            for _ in 0..LARGEST / SMALL {
                read(&mut answer, SMALL).await.ok();
                tokio::task::yield_now().await;
            }
            answer.into_bytes().len()
        });
        let read = timeout(Duration::from_secs(1), futures::future::join_all(answers)).await;
        assert_eq!(read.unwrap(), vec![LARGEST; 20]);
    }

    #[tokio::test]
    async fn an_answer_that_is_given_up_leaves_all_of_its_memory() {
        let memory = AnswerMemory::new(LARGEST, LARGEST);
        for _ in 0..10 {
            let mut one = memory.answer();
            let mut other = memory.answer();
            let mut third = memory.answer();
            assert!(is_read_at_once(&mut one, LARGEST) && is_read_at_once(&mut other, LARGEST));
            // It waits, and ends while it does.
            assert!(!is_read_at_once(&mut third, LARGEST));
        }
        assert_eq!(memory.shared.available_permits(), LARGEST / KIB);
        assert_eq!(memory.spare.available_permits(), 1);
    }
}
