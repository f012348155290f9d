//! Installs of others that come under Windlass, while their webhooks are called.

mod by_hand;
mod theirs;

pub(super) use self::by_hand::what_would_interrupt_calls_is_not_adopted_by_hand;
