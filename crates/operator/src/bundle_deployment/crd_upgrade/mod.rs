//! Whether the CustomResourceDefinitions that are there can become those of the bundle.

mod findings;
mod pages;
mod trials;
