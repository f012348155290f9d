//! Parses `if` and `for`.

use crate::syntax::{
    lexer::Token,
    parser::{Parsed, Parser},
    token::TokenKind,
    tree::{Clause, Comprehension},
};

impl<'s> Parser<'s> {
    /// Parses the rest of a comprehension after its first keyword.
    pub(super) fn comprehension(&mut self, keyword: Token<'s>) -> Parsed<Comprehension> {
        let position = keyword.position;
        let mut clauses = vec![self.clause(keyword)?];
        loop {
            if self.is_comma() {
                self.advance()?;
            }
            if self.is_keyword("if") || self.is_keyword("for") {
                let keyword = self.advance()?;
                clauses.push(self.clause(keyword)?);
            } else if self.is_keyword("let") {
                self.refuse(
                    self.token.position,
                    "let clause",
                    "write the expression where its name is used",
                );
                self.advance()?;
                self.expect(TokenKind::Identifier)?;
                self.expect(TokenKind::Assign)?;
                self.expression()?;
            } else {
                break;
            }
        }
        if !self.is(TokenKind::OpenBrace) {
            return Err(self.unexpected("\"{\""));
        }
        let body = self.struct_literal()?;
        Ok(Comprehension {
            position,
            clauses,
            body,
        })
    }

    fn clause(&mut self, keyword: Token<'s>) -> Parsed<Clause> {
        if keyword.text == "if" {
            return Ok(Clause::If(self.expression()?));
        }
        let named = |name: &str| (name != "_").then(|| name.to_owned());
        let first = self.expect(TokenKind::Identifier)?.text;
        let (key, item) = if self.is_comma() {
            self.advance()?;
            (named(first), named(self.expect(TokenKind::Identifier)?.text))
        } else {
            (None, named(first))
        };
        if !self.is_keyword("in") {
            return Err(self.unexpected("\"in\""));
        }
        self.advance()?;
        let source = self.expression()?;
        Ok(Clause::For { key, item, source })
    }
}
