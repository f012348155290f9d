//! Parses declarations: imports, fields, comprehensions. Expressions are in [`super::expression`].

use crate::{
    position::SourcePosition,
    problem::{CueProblem, CueProblems, MOST_PROBLEMS},
    syntax::{
        import::ImportSpecification,
        lexer::{Lexer, Token},
        token::TokenKind,
        tree::{Declaration, Expression, ExpressionKind, FieldDeclaration, StructLiteral},
    },
};

/// The maximum nesting of brackets, calls, labels and signs.
pub(super) const DEEPEST: usize = 64;

/// A parsed file: its imports and fields.
#[derive(Debug)]
pub(crate) struct SourceFile {
    pub(crate) imports: Vec<ImportSpecification>,
    pub(crate) body: StructLiteral,
}

pub(super) struct Parser<'s> {
    lexer: Lexer<'s>,
    pub(super) token: Token<'s>,
    pub(super) problems: Vec<CueProblem>,
    depth: usize,
}

/// A problem that ends the parsing of the current construct.
pub(super) type Parsed<T> = Result<T, CueProblem>;

/// Parses a file. All constructs outside of the subset are reported together.
pub(crate) fn parse(source: &str) -> Result<SourceFile, CueProblems> {
    let mut parser = Parser {
        lexer: Lexer::new(source),
        token: Token {
            kind: TokenKind::End,
            position: SourcePosition { line: 1, column: 1 },
            text: "",
        },
        problems: Vec::new(),
        depth: 0,
    };
    parser.recover_to_token();
    let imports = parser.imports();
    let body = parser.declarations(TokenKind::End);
    match CueProblems::from_problems(parser.problems) {
        None => Ok(SourceFile { imports, body }),
        Some(problems) => Err(problems),
    }
}

/// The form of a label in front of a colon.
enum LabelForm {
    Name(String),
    Quoted(String),
    Refused(&'static str, &'static str),
    NotALabel,
}

impl<'s> Parser<'s> {
    pub(super) fn advance(&mut self) -> Parsed<Token<'s>> {
        let next = self.lexer.next()?;
        Ok(std::mem::replace(&mut self.token, next))
    }

    /// Continues in a string after an interpolation.
    pub(super) fn resume_text(&mut self, hashes: usize, start: SourcePosition) -> Parsed<Token<'s>> {
        self.lexer.resume_text(hashes, start)
    }

    pub(super) fn is(&self, kind: TokenKind) -> bool {
        self.token.kind == kind
    }

    pub(super) fn is_comma(&self) -> bool {
        matches!(self.token.kind, TokenKind::Comma { .. })
    }

    pub(super) fn is_keyword(&self, keyword: &str) -> bool {
        self.is(TokenKind::Identifier) && self.token.text == keyword
    }

    pub(super) fn expect(&mut self, kind: TokenKind) -> Parsed<Token<'s>> {
        if self.is(kind) {
            return self.advance();
        }
        Err(self.unexpected(&kind.to_string()))
    }

    pub(super) fn unexpected(&self, wanted: &str) -> CueProblem {
        let found = match self.token.kind {
            TokenKind::Identifier | TokenKind::Integer | TokenKind::Float => format!("{:?}", self.token.text),
            kind => kind.to_string(),
        };
        CueProblem::syntax(self.token.position, format!("found {found}, expected {wanted}"))
    }

    pub(super) fn refuse(&mut self, position: SourcePosition, construct: &'static str, advice: &str) {
        let message = format!("not part of policy CUE; {advice}");
        self.problems.push(CueProblem::new(position, construct, message));
    }

    /// Parses a nested construct, unless it is too deep.
    pub(super) fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == DEEPEST {
            let message = format!("more than {DEEPEST} levels; give parts of the expression names");
            return Err(CueProblem::new(self.token.position, "nesting", message));
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    /// Reports an invalid token and skips it.
    fn recover_to_token(&mut self) {
        while let Err(problem) = self.advance() {
            self.problems.push(problem);
            if self.problems.len() >= MOST_PROBLEMS {
                self.token.kind = TokenKind::End;
                return;
            }
        }
    }

    /// Skips the rest of an invalid declaration.
    pub(super) fn recover_to_declaration(&mut self) {
        let mut open = 0_usize;
        loop {
            match self.token.kind {
                TokenKind::End => return,
                TokenKind::OpenBrace | TokenKind::OpenBracket | TokenKind::OpenParenthesis => open += 1,
                TokenKind::CloseBrace if open == 0 => return,
                TokenKind::CloseBrace | TokenKind::CloseBracket | TokenKind::CloseParenthesis => {
                    open = open.saturating_sub(1);
                }
                TokenKind::Comma { .. } if open == 0 => return self.recover_to_token(),
                _ => {}
            }
            self.recover_to_token();
        }
    }

    /// Expects a comma after a declaration, or the end of its struct.
    pub(super) fn end_declaration(&mut self) -> Parsed<()> {
        if self.is_comma() {
            self.advance()?;
            return Ok(());
        }
        if self.is(TokenKind::CloseBrace) || self.is(TokenKind::End) {
            return Ok(());
        }
        Err(self.unexpected("\",\" or the end of the line"))
    }

    /// Parses declarations up to that token, which is not consumed.
    fn declarations(&mut self, end: TokenKind) -> StructLiteral {
        let mut literal = StructLiteral::default();
        while self.problems.len() < MOST_PROBLEMS {
            if self.is(end) || self.is(TokenKind::End) {
                break;
            }
            // A surplus brace ends nothing.
            if self.is(TokenKind::CloseBrace) {
                self.problems.push(self.unexpected("a field"));
                self.recover_to_token();
                continue;
            }
            match self.declaration() {
                Ok(declaration) => literal.declarations.extend(declaration),
                Err(problem) => {
                    let is_fatal = problem.construct == "nesting";
                    self.problems.push(problem);
                    if is_fatal {
                        self.token.kind = TokenKind::End;
                        break;
                    }
                    self.recover_to_declaration();
                }
            }
        }
        literal
    }

    /// Parses `{` up to its `}`.
    pub(super) fn struct_literal(&mut self) -> Parsed<Expression> {
        let start = self.expect(TokenKind::OpenBrace)?.position;
        let literal = self.nested(|parser| Ok(parser.declarations(TokenKind::CloseBrace)))?;
        if self.problems.len() < MOST_PROBLEMS {
            self.expect(TokenKind::CloseBrace)?;
        }
        Ok(Expression::new(start, ExpressionKind::Struct(literal)))
    }

    fn declaration(&mut self) -> Parsed<Option<Declaration>> {
        let start = self.token;
        match start.kind {
            TokenKind::Attribute => {
                self.advance()?;
                self.end_declaration()?;
                return Ok(None);
            }
            TokenKind::Ellipsis => {
                // Skip `...`: structs are open without it.
                self.advance()?;
                if !self.is_comma() && !self.is(TokenKind::CloseBrace) && !self.is(TokenKind::End) {
                    self.refuse(start.position, "ellipsis", "write \"...\" alone, or nothing");
                    self.expression()?;
                }
                self.end_declaration()?;
                return Ok(None);
            }
            _ => {}
        }
        if self.is_keyword("if") || self.is_keyword("for") {
            let keyword = self.advance()?;
            if !self.is(TokenKind::Colon) && !self.is(TokenKind::Question) {
                let comprehension = self.comprehension(keyword)?;
                self.end_declaration()?;
                return Ok(Some(Declaration::Comprehension(comprehension)));
            }
            let field = self.field(start.position, keyword.text.to_owned(), true)?;
            return Ok(Some(Declaration::Field(field)));
        }
        let expression = if self.is_keyword("let") {
            let keyword = self.advance()?;
            if self.is(TokenKind::Identifier) {
                self.refuse(start.position, "let clause", "write a field instead");
                self.advance()?;
                self.expect(TokenKind::Assign)?;
                self.expression()?;
                self.end_declaration()?;
                return Ok(None);
            }
            name(keyword)
        } else {
            self.expression()?
        };
        if self.is(TokenKind::Assign) {
            self.refuse(start.position, "alias", "write a field instead, with \":\"");
            self.advance()?;
            let aliased = self.expression()?;
            if !self.is(TokenKind::Colon) {
                self.end_declaration()?;
                return Ok(None);
            }
            return self.labelled(start, aliased);
        }
        if self.is(TokenKind::Colon) || self.is(TokenKind::Question) || self.is(TokenKind::DoubleColon) {
            return self.labelled(start, expression);
        }
        self.end_declaration()?;
        Ok(Some(Declaration::Embedding(expression)))
    }

    fn labelled(&mut self, start: Token<'s>, label: Expression) -> Parsed<Option<Declaration>> {
        let (label, is_name) = self.label(start, label)?;
        let field = self.field(start.position, label, is_name)?;
        Ok(Some(Declaration::Field(field)))
    }

    /// Converts an expression before a colon into a label, and whether names can refer to it.
    fn label(&mut self, start: Token<'s>, expression: Expression) -> Parsed<(String, bool)> {
        match form(start, expression) {
            LabelForm::Name(name) => Ok((name, true)),
            LabelForm::Quoted(text) => Ok((text, false)),
            LabelForm::Refused(construct, advice) => {
                self.refuse(start.position, construct, advice);
                Ok((String::new(), false))
            }
            LabelForm::NotALabel => Err(CueProblem::syntax(
                start.position,
                "a label is a name or a string in quotes",
            )),
        }
    }

    /// Parses the part after a label: `?`, `:`, the value and attributes.
    fn field(&mut self, position: SourcePosition, label: String, is_name: bool) -> Parsed<FieldDeclaration> {
        let field = self.field_with_value(position, label, is_name)?;
        while self.is(TokenKind::Attribute) {
            self.advance()?;
        }
        self.end_declaration()?;
        Ok(field)
    }

    fn field_with_value(
        &mut self,
        position: SourcePosition,
        label: String,
        is_name: bool,
    ) -> Parsed<FieldDeclaration> {
        if is_name && label.starts_with("__") {
            let message = "names that start with \"__\" are reserved; choose another one";
            self.problems.push(CueProblem::syntax(position, message));
        } else if is_name && (label.starts_with('#') || label.starts_with("_#")) {
            self.refuse(position, "definition", "write a field whose name has no \"#\"");
        } else if is_name && label.starts_with('_') {
            self.refuse(
                position,
                "hidden field",
                "write a field whose name does not start with \"_\"",
            );
        }
        let is_optional = self.is(TokenKind::Question);
        if is_optional {
            self.advance()?;
        }
        if self.is(TokenKind::DoubleColon) {
            self.refuse(position, "definition", "write a field with one colon");
            self.advance()?;
        } else {
            self.expect(TokenKind::Colon)?;
        }
        let value = self.field_value()?;
        Ok(FieldDeclaration {
            position,
            label,
            is_name,
            is_optional,
            value,
        })
    }

    /// Parses an expression, or another label: `a: b: 1`.
    fn field_value(&mut self) -> Parsed<Expression> {
        let start = self.token;
        let value = if self.is_keyword("if") || self.is_keyword("for") || self.is_keyword("let") {
            name(self.advance()?)
        } else {
            self.expression()?
        };
        if !self.is(TokenKind::Colon) && !self.is(TokenKind::Question) && !self.is(TokenKind::DoubleColon) {
            return Ok(value);
        }
        let (label, is_name) = self.label(start, value)?;
        let field = self.nested(|parser| parser.field_with_value(start.position, label, is_name))?;
        let declarations = vec![Declaration::Field(field)];
        let literal = ExpressionKind::Struct(StructLiteral { declarations });
        Ok(Expression::new(start.position, literal))
    }
}

fn name(token: Token<'_>) -> Expression {
    let kind = ExpressionKind::Name(token.text.to_owned(), super::tree::NameTarget::Unresolved);
    Expression::new(token.position, kind)
}

fn form(start: Token<'_>, expression: Expression) -> LabelForm {
    if start.kind == TokenKind::OpenParenthesis {
        return LabelForm::Refused("dynamic field", "write its name");
    }
    match expression.kind {
        ExpressionKind::Name(name, _) => LabelForm::Name(name),
        ExpressionKind::Text(text) => LabelForm::Quoted(text),
        ExpressionKind::Null => LabelForm::Quoted("null".to_owned()),
        ExpressionKind::Bool(value) => LabelForm::Quoted(value.to_string()),
        ExpressionKind::Interpolation(_) => LabelForm::Refused("dynamic field", "write its name"),
        ExpressionKind::List(_) => LabelForm::Refused("pattern constraint", "write each field"),
        // The expression was rejected already.
        ExpressionKind::Top if start.text != "_" => LabelForm::Quoted(String::new()),
        _ => LabelForm::NotALabel,
    }
}
