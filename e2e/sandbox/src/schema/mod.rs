//! Structural schemas: pruning, defaulting, validation, list types.
