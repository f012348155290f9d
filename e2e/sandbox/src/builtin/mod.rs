//! Built-in kinds: their defaults and the validation that operators rely on.
