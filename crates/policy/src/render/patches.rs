//! The operations of a program.

use serde_json::Value;

use super::{
    cue_text::{CueElement, CueText, ValueText, comprehension, expression, field},
    quote::{literal, quote},
};

/// A list of operations under construction.
#[derive(Debug, Default)]
pub(super) struct PatchList(Vec<CueElement>);

impl PatchList {
    /// Adds a value at a path, both as expressions, for each match of the clauses; once without clauses.
    ///
    /// `add` also replaces, with every patch library.
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

    /// Adds JSON at a path.
    pub(super) fn add_json(&mut self, clauses: &str, path: String, value: &Value) {
        self.add(clauses, path, literal(value));
    }

    /// Removes the value at a path.
    pub(super) fn remove(&mut self, clauses: &str, path: String) {
        self.push(
            clauses,
            vec![
                field("op", expression(quote("remove"))),
                field("path", expression(path)),
            ],
        );
    }

    /// Adds the operations to the program.
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
