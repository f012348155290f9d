//! cert-manager's cainjector and Windlass on the same objects: each object has one writer.

mod annotations;
mod injectable;
mod replacement;
mod steps;

pub(super) use self::{
    annotations::{
        cert_manager_and_windlass_each_handle_their_own_targets,
        targets_that_also_request_cert_manager_have_one_writer,
    },
    replacement::windlass_replaces_cert_manager_only_while_it_is_stopped,
};
