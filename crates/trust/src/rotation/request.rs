//! The annotation `windlass.dev/rotate: <leaf|ca>:<reason>`.

use std::str::FromStr;

use thiserror::Error;

/// What a user asks to have replaced now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManualRotation {
    /// `leaf:<reason>`: the serving certificate.
    Leaf,
    /// `ca:<reason>`: the CA that signs, in good order.
    Authority,
    /// `ca:compromised…`: the CA that signs, at once; nothing vouches for what it signed.
    Compromised,
    /// `ca:compromised-all…`: the next CA, too, because both keys are in one Secret.
    AllCompromised,
}

/// Why a value asks for nothing.
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
