//! What is wrong with a catalog.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::text::one_line;

/// One thing that is wrong with a catalog, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CatalogProblem {
    /// The file, as its reader was told; with the line at which the blob begins, where it is about one.
    pub place: String,
    /// The package that it is about; `None` when that is not known.
    pub package: Option<String>,
    /// The channel of the package that it is about.
    pub channel: Option<String>,
    /// What is wrong.
    pub message: String,
}

// === impl CatalogProblem ===

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
