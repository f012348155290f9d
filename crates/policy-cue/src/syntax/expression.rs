//! Parses expressions by operator precedence.

use crate::{
    number::parse_literal,
    position::SourcePosition,
    problem::CueProblem,
    syntax::{
        lexer::Token,
        parser::{Parsed, Parser},
        text::unescape,
        token::TokenKind,
        tree::{
            Alternative, BinaryOperation, BinaryOperator, Element, Expression, ExpressionKind, Fragment,
            NameTarget, SelectorStep, SelectorStepKind, UnaryOperator,
        },
    },
};

/// Keywords that select a field only in quotes.
const KEYWORDS: &[&str] = &["false", "for", "if", "in", "let", "null", "true"];

/// Operators from lowest to highest precedence: `||`, `&&`, comparisons, sums, products.
const PRECEDENCES: &[&[(TokenKind, BinaryOperator)]] = &[
    &[(TokenKind::Or, BinaryOperator::Or)],
    &[(TokenKind::And, BinaryOperator::And)],
    &[
        (TokenKind::Equal, BinaryOperator::Equal),
        (TokenKind::NotEqual, BinaryOperator::NotEqual),
        (TokenKind::Less, BinaryOperator::Less),
        (TokenKind::LessOrEqual, BinaryOperator::LessOrEqual),
        (TokenKind::Greater, BinaryOperator::Greater),
        (TokenKind::GreaterOrEqual, BinaryOperator::GreaterOrEqual),
        (TokenKind::Match, BinaryOperator::Match),
        (TokenKind::NotMatch, BinaryOperator::NotMatch),
    ],
    &[
        (TokenKind::Plus, BinaryOperator::Add),
        (TokenKind::Minus, BinaryOperator::Subtract),
    ],
    &[
        (TokenKind::Star, BinaryOperator::Multiply),
        (TokenKind::Slash, BinaryOperator::Divide),
    ],
];

impl<'s> Parser<'s> {
    /// Parses an expression: alternatives separated by `|`.
    pub(super) fn expression(&mut self) -> Parsed<Expression> {
        self.nested(Self::disjunction)
    }

    fn disjunction(&mut self) -> Parsed<Expression> {
        let first = self.conjunction()?;
        if !self.is(TokenKind::Bar) {
            return Ok(first);
        }
        let position = first.position;
        let mut alternatives = vec![alternative(first)];
        while self.is(TokenKind::Bar) {
            self.advance()?;
            alternatives.push(alternative(self.conjunction()?));
        }
        Ok(Expression::new(
            position,
            ExpressionKind::Disjunction(alternatives),
        ))
    }

    fn conjunction(&mut self) -> Parsed<Expression> {
        let first = self.operations(0)?;
        if !self.is(TokenKind::Ampersand) {
            return Ok(first);
        }
        let position = first.position;
        let mut parts = vec![first];
        while self.is(TokenKind::Ampersand) {
            self.advance()?;
            parts.push(self.operations(0)?);
        }
        Ok(Expression::new(position, ExpressionKind::Conjunction(parts)))
    }

    /// Parses operators of at least this precedence, with their operands.
    fn operations(&mut self, loosest: usize) -> Parsed<Expression> {
        let mut left = self.unary()?;
        // Continues the row of operators in `left`, if it has the same precedence.
        let mut row = None;
        loop {
            self.refuse_integer_division()?;
            let Some((precedence, operator)) = operator(self.token.kind) else {
                return Ok(left);
            };
            if precedence < loosest {
                return Ok(left);
            }
            let position = self.advance()?.position;
            let operation = BinaryOperation {
                operator,
                position,
                right: self.operations(precedence + 1)?,
                pattern: None,
            };
            if let ExpressionKind::Operations(_, rest) = &mut left.kind
                && row == Some(precedence)
            {
                rest.push(operation);
            } else {
                let start = left.position;
                let kind = ExpressionKind::Operations(Box::new(left), vec![operation]);
                left = Expression::new(start, kind);
                row = Some(precedence);
            }
        }
    }

    /// Rejects `a div b` and the like.
    fn refuse_integer_division(&mut self) -> Parsed<()> {
        while self.is(TokenKind::Identifier) && matches!(self.token.text, "div" | "mod" | "quo" | "rem") {
            let advice = "use math.Floor or math.Trunc of a quotient";
            self.refuse(self.token.position, "integer division", advice);
            self.advance()?;
            self.unary()?;
        }
        Ok(())
    }

    fn unary(&mut self) -> Parsed<Expression> {
        let position = self.token.position;
        let operator = match self.token.kind {
            TokenKind::Plus => UnaryOperator::Plus,
            TokenKind::Minus => UnaryOperator::Minus,
            TokenKind::Not => UnaryOperator::Not,
            TokenKind::Star => {
                self.advance()?;
                let marked = self.nested(Self::unary)?;
                return Ok(Expression::new(
                    position,
                    ExpressionKind::Marked(Box::new(marked)),
                ));
            }
            TokenKind::Less
            | TokenKind::LessOrEqual
            | TokenKind::Greater
            | TokenKind::GreaterOrEqual
            | TokenKind::NotEqual
            | TokenKind::Match
            | TokenKind::NotMatch => {
                self.refuse(position, "bound", "compare in an \"if\" instead");
                self.advance()?;
                self.nested(Self::unary)?;
                return Ok(Expression::refused(position));
            }
            _ => return self.primary(),
        };
        self.advance()?;
        let operand = self.nested(Self::unary)?;
        Ok(Expression::new(
            position,
            ExpressionKind::Unary(operator, Box::new(operand)),
        ))
    }

    /// Parses an operand with its selectors, indexes and calls.
    fn primary(&mut self) -> Parsed<Expression> {
        let mut expression = self.operand()?;
        loop {
            match self.token.kind {
                TokenKind::Dot => {
                    self.advance()?;
                    let step = self.selector()?;
                    add_step(&mut expression, step);
                }
                TokenKind::OpenBracket => {
                    if let Some(step) = self.index()? {
                        add_step(&mut expression, step);
                    }
                }
                TokenKind::OpenParenthesis => {
                    self.advance()?;
                    let arguments = self.arguments()?;
                    let position = expression.position;
                    let call = ExpressionKind::UnresolvedCall(Box::new(expression), arguments);
                    expression = Expression::new(position, call);
                }
                _ => return Ok(expression),
            }
        }
    }

    fn selector(&mut self) -> Parsed<SelectorStep> {
        let position = self.token.position;
        let field = match self.token.kind {
            TokenKind::Identifier => {
                let name = self.advance()?.text;
                if KEYWORDS.contains(&name) {
                    let message = format!("{name:?} is a keyword of CUE; put it in quotes to select a field");
                    self.problems.push(CueProblem::syntax(position, message));
                } else if name.starts_with('#') || name.starts_with("_#") {
                    self.refuse(
                        position,
                        "definition",
                        "select a field; a name in quotes may have \"#\"",
                    );
                } else if name.starts_with('_') {
                    self.refuse(
                        position,
                        "hidden field",
                        "put the name in quotes to select a field",
                    );
                }
                name.to_owned()
            }
            TokenKind::Text if self.token.text.starts_with('"') => self.text_literal()?,
            _ => return Err(self.unexpected("a name or a string in quotes")),
        };
        let kind = SelectorStepKind::Field(field);
        Ok(SelectorStep { position, kind })
    }

    /// `None` for a slice, which is rejected.
    fn index(&mut self) -> Parsed<Option<SelectorStep>> {
        let position = self.advance()?.position;
        let mut index = None;
        let mut is_slice = false;
        while !self.is(TokenKind::CloseBracket) {
            if self.is(TokenKind::Colon) {
                self.advance()?;
                is_slice = true;
            } else if index.is_none() || is_slice {
                index = Some(self.expression()?);
            } else {
                break;
            }
        }
        if self.is_comma() {
            self.advance()?;
        }
        self.expect(TokenKind::CloseBracket)?;
        if is_slice {
            self.refuse(position, "slice", "use list.Slice or strings.SliceRunes");
            return Ok(None);
        }
        let Some(index) = index else {
            return Err(CueProblem::syntax(
                position,
                "an index is missing; write one between the brackets",
            ));
        };
        let kind = match index.kind {
            // An index with a string literal selects a field, whatever its notation.
            ExpressionKind::Text(text) => SelectorStepKind::Field(text),
            kind => SelectorStepKind::Index(Expression { kind, ..index }),
        };
        Ok(Some(SelectorStep { position, kind }))
    }

    fn arguments(&mut self) -> Parsed<Vec<Expression>> {
        let mut arguments = Vec::new();
        while !self.is(TokenKind::CloseParenthesis) {
            arguments.push(self.expression()?);
            if !self.is_comma() {
                break;
            }
            self.advance()?;
        }
        self.expect(TokenKind::CloseParenthesis)?;
        Ok(arguments)
    }

    fn operand(&mut self) -> Parsed<Expression> {
        let position = self.token.position;
        let kind = match self.token.kind {
            TokenKind::Integer | TokenKind::Float => {
                let text = self.advance()?.text;
                let number =
                    parse_literal(text).map_err(|message| CueProblem::new(position, "number", message))?;
                ExpressionKind::Number(number)
            }
            TokenKind::Text => ExpressionKind::Text(self.text_literal()?),
            TokenKind::Interpolation => self.interpolation()?,
            TokenKind::Bottom => {
                self.advance()?;
                ExpressionKind::Bottom
            }
            TokenKind::OpenBrace => return self.struct_literal(),
            TokenKind::OpenBracket => self.list()?,
            TokenKind::OpenParenthesis => {
                self.advance()?;
                let inner = self.expression()?;
                self.expect(TokenKind::CloseParenthesis)?;
                if let ExpressionKind::Marked(_) = inner.kind {
                    let message = "a default is marked only directly in a disjunction: *a | b";
                    return Err(CueProblem::new(position, "default mark", message));
                }
                return Ok(inner);
            }
            TokenKind::Identifier => self.identifier()?,
            _ => return Err(self.unexpected("a value")),
        };
        Ok(Expression::new(position, kind))
    }

    fn identifier(&mut self) -> Parsed<ExpressionKind> {
        let token = self.token;
        if matches!(token.text, "for" | "if" | "let") {
            return Err(self.unexpected("a value"));
        }
        self.advance()?;
        Ok(match token.text {
            "_" => ExpressionKind::Top,
            "null" => ExpressionKind::Null,
            "true" => ExpressionKind::Bool(true),
            "false" => ExpressionKind::Bool(false),
            name => ExpressionKind::Name(name.to_owned(), NameTarget::Unresolved),
        })
    }

    fn list(&mut self) -> Parsed<ExpressionKind> {
        self.advance()?;
        let mut elements = Vec::new();
        while !self.is(TokenKind::CloseBracket) {
            if self.is(TokenKind::Ellipsis) {
                self.refuse(
                    self.token.position,
                    "open list",
                    "remove \"...\" and write each item",
                );
                self.advance()?;
                if !self.is_comma() && !self.is(TokenKind::CloseBracket) {
                    self.expression()?;
                }
                if self.is_comma() {
                    self.advance()?;
                }
                break;
            }
            let is_comprehension = self.is_keyword("if") || self.is_keyword("for");
            if is_comprehension {
                let keyword = self.advance()?;
                let read = self.nested(|parser| parser.comprehension(keyword))?;
                elements.push(Element::Comprehension(read));
            } else {
                elements.push(Element::Item(self.expression()?));
            }
            match self.token.kind {
                TokenKind::Comma { written } => {
                    let position = self.token.position;
                    self.advance()?;
                    if !written && !is_comprehension && !self.is(TokenKind::CloseBracket) {
                        let message = "\",\" is missing at the end of the line, in a list";
                        return Err(CueProblem::syntax(position, message));
                    }
                }
                _ => break,
            }
        }
        self.expect(TokenKind::CloseBracket)?;
        Ok(ExpressionKind::List(elements))
    }

    /// Parses a string literal without interpolations.
    pub(super) fn text_literal(&mut self) -> Parsed<String> {
        let token = self.advance()?;
        let (hashes, text) = unquoted(token);
        let text = text.strip_suffix(&closing(hashes)).unwrap_or(text);
        unescape(text, hashes).map_err(|message| CueProblem::new(token.position, "string", message))
    }

    fn interpolation(&mut self) -> Parsed<ExpressionKind> {
        let start = self.token.position;
        let (hashes, first) = unquoted(self.token);
        let mut fragments = Vec::new();
        self.fragment(&mut fragments, first, hashes, start)?;
        self.advance()?;
        loop {
            fragments.push(Fragment::Expression(self.expression()?));
            if !self.is(TokenKind::CloseParenthesis) {
                return Err(self.unexpected("\")\""));
            }
            let part = self.resume_text(hashes, start)?;
            self.fragment(&mut fragments, part.text, hashes, start)?;
            self.advance()?;
            if part.kind == TokenKind::Text {
                return Ok(ExpressionKind::Interpolation(fragments));
            }
        }
    }

    fn fragment(
        &mut self,
        fragments: &mut Vec<Fragment>,
        part: &str,
        hashes: usize,
        start: SourcePosition,
    ) -> Parsed<()> {
        let opening = format!("\\{}(", "#".repeat(hashes));
        let text = part
            .strip_suffix(&opening)
            .or_else(|| part.strip_suffix(&closing(hashes)))
            .unwrap_or(part);
        let text = unescape(text, hashes).map_err(|message| CueProblem::new(start, "string", message))?;
        fragments.push(Fragment::Text(text));
        Ok(())
    }
}

/// Returns the number of `#` before a string, and the text after its first quote.
fn unquoted(token: Token<'_>) -> (usize, &str) {
    let text = token.text.trim_start_matches('#');
    (
        token.text.len() - text.len(),
        text.strip_prefix('"').unwrap_or(text),
    )
}

fn closing(hashes: usize) -> String {
    format!("\"{}", "#".repeat(hashes))
}

/// The operator of a token, and its precedence.
fn operator(kind: TokenKind) -> Option<(usize, BinaryOperator)> {
    let mut precedences = PRECEDENCES.iter().enumerate();
    precedences.find_map(|(precedence, operators)| {
        let found = operators.iter().find(|(token, _)| *token == kind);
        found.map(|(_, operator)| (precedence, *operator))
    })
}

fn alternative(expression: Expression) -> Alternative {
    match expression.kind {
        ExpressionKind::Marked(value) => Alternative {
            is_default: true,
            value: *value,
        },
        _ => Alternative {
            is_default: false,
            value: expression,
        },
    }
}

fn add_step(expression: &mut Expression, step: SelectorStep) {
    if let ExpressionKind::Path(_, steps) = &mut expression.kind {
        steps.push(step);
        return;
    }
    let position = expression.position;
    let base = std::mem::replace(expression, Expression::refused(position));
    expression.kind = ExpressionKind::Path(Box::new(base), vec![step]);
}
