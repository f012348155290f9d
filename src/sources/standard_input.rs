//! A bundle on standard input.

use std::io;

use super::{Error, archive};
use crate::domain::bundle::Files;

/// Reads an archive from standard input.
///
/// # Errors
///
/// As [`archive::load`]; the archive is called `-`.
pub fn load() -> Result<Files, Error> {
    archive::load(io::stdin().lock(), "-")
}
