//! The annotation `windlass.dev/rotate: <leaf|ca>:<reason>`.

use std::str::FromStr;

use thiserror::Error;

/// Which certificates a user requests to replace now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManualRotation {
    /// `leaf:<reason>`: the serving certificate.
    Leaf,
    /// `ca:<reason>`: the current CA, as a regular rotation.
    Authority,
    /// `ca:compromised…`: the current CA, immediately and without a cross certificate.
    Compromised,
    /// `ca:compromised-all…`: the next CA as well, because both keys are in one Secret.
    AllCompromised,
}

/// The value of the annotation is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "windlass.dev/rotate: {value:?} must be leaf:<reason> or ca:<reason>, for example ca:compromised-2026-05-04"
)]
pub struct ParseRequestError {
    value: String,
}

impl FromStr for ManualRotation {
    type Err = ParseRequestError;

    fn from_str(value: &str) -> Result<Self, Self::Err> {
        match value.trim().split_once(':') {
            Some(("leaf", reason)) if !reason.is_empty() => Ok(Self::Leaf),
            Some(("ca", reason)) if reason.starts_with("compromised-all") => Ok(Self::AllCompromised),
            Some(("ca", reason)) if reason.starts_with("compromised") => Ok(Self::Compromised),
            Some(("ca", reason)) if !reason.is_empty() => Ok(Self::Authority),
            _ => Err(ParseRequestError {
                value: value.to_owned(),
            }),
        }
    }
}
