//! Our interpreter against the Go libraries that Karmada's is built from, which `e2e/interpreter-libraries` asks. Where there is no Go to
//! build that with, nothing is tested, and that is said.

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
