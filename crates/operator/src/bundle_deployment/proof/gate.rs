//! Where a proof that is missing stops an install.

use super::super::halt::Halt;
use crate::install::status::Milestone;

pub(super) fn gate(reason: &str, message: String) -> Halt {
    Halt::waiting(Milestone::Armed, reason, message)
}
