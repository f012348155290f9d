//! Problems of a catalog.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::text::one_line;

/// A problem of a catalog, with its location.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CatalogProblem {
    /// The file name given to the reader, followed by the line at which the blob starts.
    pub place: String,
    /// The package, if known.
    pub package: Option<String>,
    /// The channel of the package.
    pub channel: Option<String>,
    /// What is wrong in the blob.
    pub message: String,
}

impl fmt::Display for CatalogProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", one_line(&self.place))?;
        if let Some(package) = &self.package {
            write!(f, "package {}: ", one_line(package))?;
        }
        if let Some(channel) = &self.channel {
            write!(f, "channel {}: ", one_line(channel))?;
        }
        f.write_str(&one_line(&self.message))
    }
}
