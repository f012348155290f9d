//! ExtensionConfigs and APIServices that call Deployments of the bundle.

use windlass_object::Problem;

use crate::{callers::Caller, parse::Bundle};

pub(super) fn check(bundle: &Bundle, problems: &mut Vec<Problem>) {
    for caller in Caller::all(bundle) {
        if let Err(unserved) = caller.backend(bundle) {
            problems.push(caller.problem(&unserved));
        }
    }
}
