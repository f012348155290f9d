//! One container of a pod: started, probed, restarted, stopped.

mod launch;
mod runs;
mod state;
mod supervision;
mod task;

pub(crate) use runs::Handle;
pub(crate) use state::{ContainerPhase, ContainerRecord, Role, Terminated};
pub(crate) use task::{ContainerReport, Task};
