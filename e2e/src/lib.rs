//! Scenarios, each written once, and what they need to run.
