//! Splits a source into tokens, and inserts commas at line ends like CUE.

use crate::{position::SourcePosition, problem::CueProblem, syntax::token::TokenKind};

/// A token and its text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'s> {
    pub(crate) kind: TokenKind,
    pub(crate) position: SourcePosition,
    pub(crate) text: &'s str,
}

/// A reader of tokens.
pub(crate) struct Lexer<'s> {
    source: &'s str,
    offset: usize,
    position: SourcePosition,
    /// Whether the next line end is a comma.
    ends_line: bool,
}

/// Operators and punctuation, longest first.
const SYMBOLS: &[(&str, TokenKind)] = &[
    ("...", TokenKind::Ellipsis),
    ("::", TokenKind::DoubleColon),
    ("<-", TokenKind::Arrow),
    ("<=", TokenKind::LessOrEqual),
    (">=", TokenKind::GreaterOrEqual),
    ("=~", TokenKind::Match),
    ("==", TokenKind::Equal),
    ("!~", TokenKind::NotMatch),
    ("!=", TokenKind::NotEqual),
    ("&&", TokenKind::And),
    ("||", TokenKind::Or),
    (":", TokenKind::Colon),
    (";", TokenKind::Semicolon),
    ("?", TokenKind::Question),
    (".", TokenKind::Dot),
    (",", TokenKind::Comma { written: true }),
    ("(", TokenKind::OpenParenthesis),
    (")", TokenKind::CloseParenthesis),
    ("[", TokenKind::OpenBracket),
    ("]", TokenKind::CloseBracket),
    ("{", TokenKind::OpenBrace),
    ("}", TokenKind::CloseBrace),
    ("+", TokenKind::Plus),
    ("-", TokenKind::Minus),
    ("*", TokenKind::Star),
    ("/", TokenKind::Slash),
    ("<", TokenKind::Less),
    (">", TokenKind::Greater),
    ("=", TokenKind::Assign),
    ("!", TokenKind::Not),
    ("&", TokenKind::Ampersand),
    ("|", TokenKind::Bar),
];

fn is_letter(character: char) -> bool {
    character.is_alphabetic() || character == '_'
}

fn is_part_of_name(character: char) -> bool {
    is_letter(character) || character.is_numeric() || character == '$' || character == '#'
}

/// Reports whether a line end after this token is a comma.
fn ends_line(kind: TokenKind) -> bool {
    matches!(
        kind,
        TokenKind::Identifier
            | TokenKind::Integer
            | TokenKind::Float
            | TokenKind::Text
            | TokenKind::Attribute
            | TokenKind::Bottom
            | TokenKind::Question
            | TokenKind::Ellipsis
            | TokenKind::CloseParenthesis
            | TokenKind::CloseBracket
            | TokenKind::CloseBrace
            | TokenKind::Semicolon
    )
}

impl<'s> Lexer<'s> {
    pub(crate) fn new(source: &'s str) -> Self {
        Self {
            source: source.strip_prefix('\u{feff}').unwrap_or(source),
            offset: 0,
            position: SourcePosition { line: 1, column: 1 },
            ends_line: false,
        }
    }

    fn rest(&self) -> &'s str {
        &self.source[self.offset..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn step(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.offset += character.len_utf8();
        if character == '\n' {
            self.position.line = self.position.line.saturating_add(1);
            self.position.column = 1;
        } else {
            self.position.column = self.position.column.saturating_add(1);
        }
        Some(character)
    }

    fn skip(&mut self, characters: usize) {
        for _ in 0..characters {
            self.step();
        }
    }

    fn skip_while(&mut self, is_skipped: impl Fn(char) -> bool) {
        while self.peek().is_some_and(&is_skipped) {
            self.step();
        }
    }

    /// Skips blanks and comments; returns whether they contain a line end.
    fn skip_blanks(&mut self) -> bool {
        let mut found = false;
        loop {
            match self.peek() {
                Some('\n') => found = true,
                Some(' ' | '\t' | '\r') => {}
                Some('/') if self.rest().starts_with("//") => {
                    self.skip_while(|character| character != '\n');
                    continue;
                }
                _ => return found,
            }
            self.step();
        }
    }

    fn token(&mut self, kind: TokenKind, start: (usize, SourcePosition)) -> Token<'s> {
        self.ends_line = ends_line(kind);
        Token {
            kind,
            position: start.1,
            text: &self.source[start.0..self.offset],
        }
    }

    /// Returns the next token; [`TokenKind::End`] after the last one.
    pub(crate) fn next(&mut self) -> Result<Token<'s>, CueProblem> {
        let before = (self.offset, self.position);
        let is_new_line = self.skip_blanks();
        // Before a closing bracket on a new line, as in JSON, the line end is not a comma.
        let goes_on = matches!(self.peek(), Some(',' | ':'));
        if self.ends_line && (self.peek().is_none() || is_new_line && !goes_on) {
            self.ends_line = false;
            return Ok(Token {
                kind: TokenKind::Comma { written: false },
                position: before.1,
                text: "",
            });
        }
        let start = (self.offset, self.position);
        let Some(first) = self.peek() else {
            return Ok(self.token(TokenKind::End, start));
        };
        if first.is_ascii_digit() || first == '.' && self.is_digit_at(1) {
            let kind = self.number()?;
            return Ok(self.token(kind, start));
        }
        if self.rest().starts_with("_|_") {
            self.skip(3);
            return Ok(self.token(TokenKind::Bottom, start));
        }
        let hashes = self.rest().chars().take_while(|it| *it == '#').count();
        match self.rest()[hashes..].chars().next() {
            Some('"') => {
                self.skip(hashes + 1);
                let kind = self.opened_text(hashes, start.1)?;
                return Ok(self.token(kind, start));
            }
            Some('\'') => return Err(self.bytes(hashes, start.1)),
            _ => {}
        }
        if is_letter(first) || first == '$' || first == '#' {
            self.skip_while(is_part_of_name);
            return Ok(self.token(TokenKind::Identifier, start));
        }
        if first == '@' {
            self.attribute()?;
            return Ok(self.token(TokenKind::Attribute, start));
        }
        let rest = self.rest();
        let Some((symbol, kind)) = SYMBOLS.iter().find(|(symbol, _)| rest.starts_with(symbol)) else {
            self.step();
            let message = format!("{first:?} is not part of CUE; remove it");
            return Err(CueProblem::syntax(start.1, message));
        };
        self.skip(symbol.len());
        Ok(self.token(*kind, start))
    }

    fn is_digit_at(&self, offset: usize) -> bool {
        let byte = self.source.as_bytes().get(self.offset + offset);
        byte.is_some_and(u8::is_ascii_digit)
    }

    /// Finds the end of a number, which [`crate::syntax::number`] parses.
    fn number(&mut self) -> Result<TokenKind, CueProblem> {
        let start = (self.offset, self.position);
        let mut is_float = false;
        let rest = self.rest();
        if rest.starts_with("0x")
            || rest.starts_with("0X")
            || rest.starts_with("0b")
            || rest.starts_with("0o")
        {
            self.skip_while(|character| character.is_ascii_alphanumeric() || character == '_');
            return Ok(TokenKind::Integer);
        }
        let is_digit = |character: char| character.is_ascii_digit() || character == '_';
        self.skip_while(is_digit);
        if self.peek() == Some('.') && !self.rest().starts_with("..") {
            is_float = true;
            self.step();
            self.skip_while(is_digit);
        }
        match self.peek() {
            Some('e' | 'E') => {
                is_float = true;
                self.step();
                if matches!(self.peek(), Some('+' | '-')) {
                    self.step();
                }
                self.skip_while(is_digit);
            }
            Some('K' | 'M' | 'G' | 'T' | 'P') => {
                is_float = false;
                self.step();
                if self.peek() == Some('i') {
                    self.step();
                }
            }
            _ => {}
        }
        if self.peek().is_some_and(is_letter) {
            self.ends_line = true;
            self.skip_while(is_part_of_name);
            let text = &self.source[start.0..self.offset];
            let message = format!("{text:?} is not a number; put it in quotes, or a blank after the number");
            return Err(CueProblem::syntax(start.1, message));
        }
        Ok(if is_float {
            TokenKind::Float
        } else {
            TokenKind::Integer
        })
    }

    fn attribute(&mut self) -> Result<(), CueProblem> {
        let start = self.position;
        let wrong = |message: &str| CueProblem::new(start, "attribute", message);
        self.step();
        let name = self.offset;
        self.skip_while(is_part_of_name);
        if self.offset == name || self.peek() != Some('(') {
            return Err(wrong(
                "an attribute is a name and parentheses, as in @tag(object)",
            ));
        }
        let mut open = 0_usize;
        loop {
            match self.step() {
                Some('(' | '[' | '{') => open += 1,
                Some(')' | ']' | '}') => {
                    open -= 1;
                    if open == 0 {
                        return Ok(());
                    }
                }
                Some('"') => {
                    let kind = self.opened_text(0, start)?;
                    if kind != TokenKind::Text {
                        return Err(wrong("an attribute has no interpolation; write its value"));
                    }
                }
                Some('\n') | None => {
                    return Err(wrong(
                        "the attribute does not end on its line; close its parentheses",
                    ));
                }
                Some(_) => {}
            }
        }
    }

    /// Lexes a string literal after its first quote, to its end or its first `\(`.
    fn opened_text(&mut self, hashes: usize, start: SourcePosition) -> Result<TokenKind, CueProblem> {
        if self.rest().starts_with("\"\"") {
            return Err(self.multi_line(hashes, start));
        }
        self.text(hashes, start)
    }

    /// Continues in a string after the `)` of an interpolation.
    pub(crate) fn resume_text(
        &mut self,
        hashes: usize,
        start: SourcePosition,
    ) -> Result<Token<'s>, CueProblem> {
        let from = (self.offset, self.position);
        let kind = self.text(hashes, start)?;
        Ok(self.token(kind, from))
    }

    fn text(&mut self, hashes: usize, start: SourcePosition) -> Result<TokenKind, CueProblem> {
        let (closing, escape) = (closing(hashes), escape(hashes));
        loop {
            if self.rest().starts_with(&closing) {
                self.skip(closing.len());
                return Ok(TokenKind::Text);
            }
            if self.rest().starts_with(&escape) {
                self.skip(escape.len());
                match self.step() {
                    Some('(') => return Ok(TokenKind::Interpolation),
                    Some(character) if character != '\n' => continue,
                    _ => return Err(unterminated(start)),
                }
            }
            if matches!(self.step(), Some('\n') | None) {
                return Err(unterminated(start));
            }
        }
    }

    fn multi_line(&mut self, hashes: usize, start: SourcePosition) -> CueProblem {
        self.ends_line = true;
        self.skip(2);
        let end = format!("\"\"{}", closing(hashes));
        while !self.rest().is_empty() && !self.rest().starts_with(&end) {
            self.step();
        }
        self.skip(end.len());
        let message = "not part of policy CUE; write one line with \\n";
        CueProblem::new(start, "string of several lines", message)
    }

    fn bytes(&mut self, hashes: usize, start: SourcePosition) -> CueProblem {
        self.ends_line = true;
        self.skip(hashes + 1);
        while let Some(character) = self.step() {
            match character {
                '\\' => {
                    self.step();
                }
                '\'' | '\n' => break,
                _ => {}
            }
        }
        CueProblem::new(
            start,
            "bytes literal",
            "not part of policy CUE; use a string in double quotes",
        )
    }
}

fn closing(hashes: usize) -> String {
    format!("\"{}", "#".repeat(hashes))
}

fn escape(hashes: usize) -> String {
    format!("\\{}", "#".repeat(hashes))
}

fn unterminated(start: SourcePosition) -> CueProblem {
    CueProblem::syntax(start, "the string does not end on its line; close its quotes")
}
