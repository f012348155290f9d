//! cert-manager's cainjector and Windlass on the same objects: each object has one writer.

mod annotations;
mod injectable;
mod standing_in;
mod steps;

pub(super) use self::{
    annotations::{
        cert_manager_and_windlass_each_answer_who_asks_them, who_asks_cert_manager_too_has_one_writer,
    },
    standing_in::windlass_answers_for_cert_manager_only_while_that_is_gone,
};
