//! The volumes of a pod: what is in them ([`content`]), how it is written ([`writer`]), where each container finds
//! them.

pub(crate) mod content;
mod volumes;
mod writer;

pub(crate) use volumes::{Volumes, WriteError};
