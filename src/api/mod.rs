//! The types of `windlass.dev/v1alpha1`, with their schemas and validation rules.
