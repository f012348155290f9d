//! What Windlass knows, without IO: no async, no clock, no environment, no client. `now`, serial numbers and
//! key pairs are arguments.

pub mod bundle;
pub mod check;
pub mod names;
pub mod object;
pub mod pki;
pub mod render;
pub mod rotation;
