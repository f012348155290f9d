//! The requirements of a bundle must be readable.

use windlass_object::Problem;

use crate::{parse::Bundle, requirements::Requirements};

pub(super) fn check(bundle: &Bundle, problems: &mut Vec<Problem>) {
    problems.extend(Requirements::read(bundle).1);
}
