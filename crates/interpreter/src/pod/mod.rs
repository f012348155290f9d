//! What a pod template says of the pods that are made of it.

mod dependencies;
mod requirements;

pub use self::{
    dependencies::dependencies,
    requirements::{PodError, requirements},
};
