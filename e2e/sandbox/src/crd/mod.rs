//! CustomResourceDefinitions: their own validation, conditions and lifecycle.
