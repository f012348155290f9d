//! How traffic gets from the pods of one revision to those of the next, without a call that fails.
//!
//! Each Deployment that serves webhooks has two Services (blue-green), and each Service leads to pods of one revision only.
//! The new pods come up beside the old ones, which are [held]; they are proven through the Service that nobody calls;
//! then each webhook is pointed to that Service, its port and its path by a single write. Old pods end when nobody calls
//! them any more. Such a write also gives fresh connections: kube-apiserver goes on using those that it has, also to pods
//! that are no endpoints any more.

mod arming;
mod calls;
mod color;
mod hold;
mod interruption;
mod network;
mod placed;
mod switch_order;
mod template;
#[cfg(test)]
mod tests;
mod transition;

pub use arming::Arming;
pub use calls::{CalledPath, CalledPort, DEFAULT_PORT, client_configs, is_of_api_servers};
pub use color::{Color, Pair, ServiceObservation, observe};
pub use hold::{
    deadline_seconds, frozen, frozen_for, held, is_coming_up, is_frozen, is_held, is_rolling, keeps_old_pods,
    leaves_as_is, surge,
};
pub use interruption::{crowding, ending_old_pods_first, ends_old_pods_first, exclusion, makes_way};
pub use network::admit_new_pods;
pub use placed::Traffic;
pub use switch_order::{ConvertedBy, SwitchOrder, SwitchedCrd, asks_for_conversion};
pub use template::original_template;
pub use transition::transitional;
