//! Parses imports.

use crate::{
    position::SourcePosition,
    syntax::{
        parser::{Parsed, Parser},
        token::TokenKind,
    },
};

/// An imported package.
#[derive(Debug)]
pub(crate) struct ImportSpecification {
    pub(crate) position: SourcePosition,
    pub(crate) name: Option<String>,
    pub(crate) path: String,
}

impl Parser<'_> {
    pub(super) fn imports(&mut self) -> Vec<ImportSpecification> {
        let mut imports = Vec::new();
        while self.is(TokenKind::Identifier) && matches!(self.token.text, "import" | "package")
            || self.is(TokenKind::Attribute)
        {
            if let Err(problem) = self.import(&mut imports) {
                self.problems.push(problem);
                self.recover_to_declaration();
            }
        }
        imports
    }

    fn import(&mut self, imports: &mut Vec<ImportSpecification>) -> Parsed<()> {
        let start = self.advance()?;
        if start.text == "package" {
            self.refuse(start.position, "package clause", "remove it");
            self.expect(TokenKind::Identifier)?;
        } else if start.text == "import" {
            if self.is(TokenKind::OpenParenthesis) {
                self.advance()?;
                while !self.is(TokenKind::CloseParenthesis) {
                    imports.push(self.import_specification()?);
                    if self.is_comma() {
                        self.advance()?;
                    } else if !self.is(TokenKind::CloseParenthesis) {
                        return Err(self.unexpected("\",\" or \")\""));
                    }
                }
                self.advance()?;
            } else {
                imports.push(self.import_specification()?);
            }
        }
        self.end_declaration()
    }

    fn import_specification(&mut self) -> Parsed<ImportSpecification> {
        let position = self.token.position;
        let name = if self.is(TokenKind::Identifier) {
            Some(self.advance()?.text.to_owned())
        } else {
            None
        };
        if !self.is(TokenKind::Text) {
            return Err(self.unexpected("a package in quotes"));
        }
        let path = self.text_literal()?;
        Ok(ImportSpecification { position, name, path })
    }
}
