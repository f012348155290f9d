//! Installs of others that come under Windlass, while their webhooks are called.

mod by_hand;
mod theirs;

pub(super) use self::by_hand::an_install_of_the_same_names_is_adopted_without_a_failed_call;
