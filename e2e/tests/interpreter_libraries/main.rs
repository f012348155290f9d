//! Tests our interpreter against the Go libraries that Karmada's is built from, which
//! `e2e/interpreter-libraries` calls. Without Go, the tests are skipped with a message.

mod agreements;
mod differences;
mod documents;
mod expressions;
#[path = "../go_program/mod.rs"]
mod go_program;
mod libraries;
mod objects;
mod patches;
mod quantities;
mod scripts;
