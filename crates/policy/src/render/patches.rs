//! The operations that a program gives.

use serde_json::Value;

use super::{
    cue_text::{CueElement, CueText, ValueText, comprehension, expression, field},
    quote::{literal, quote},
};

/// Operations as they are collected.
#[derive(Debug, Default)]
pub(super) struct PatchList(Vec<CueElement>);

// === impl PatchList ===

impl PatchList {
    /// Puts a value at a path, both as expressions, each time that the clauses let through; once where there are none.
    ///
    /// `add` also replaces, whatever library applies it.
    pub(super) fn add(&mut self, clauses: &str, path: String, value: ValueText) {
        self.push(
            clauses,
            vec![
                field("op", expression(quote("add"))),
                field("path", expression(path)),
                field("value", value),
            ],
        );
    }

    /// Puts JSON at a path.
    pub(super) fn add_json(&mut self, clauses: &str, path: String, value: &Value) {
        self.add(clauses, path, literal(value));
    }

    /// Takes away what is at a path.
    pub(super) fn remove(&mut self, clauses: &str, path: String) {
        self.push(
            clauses,
            vec![
                field("op", expression(quote("remove"))),
                field("path", expression(path)),
            ],
        );
    }

    /// Has the program give them.
    pub(super) fn declare(self, program: &mut CueText) {
        program.section("", "patches", ValueText::List(self.0));
    }

    fn push(&mut self, clauses: &str, operation: Vec<super::cue_text::CueDeclaration>) {
        let operation = ValueText::Struct(operation);
        self.0.push(if clauses.is_empty() {
            CueElement::Item(operation)
        } else {
            comprehension(clauses, operation)
        });
    }
}
