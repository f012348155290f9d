//! Tokens.

use std::fmt;

/// The kind of a token. The text of literals and names is in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Identifier,
    Integer,
    Float,
    /// A complete string literal.
    Text,
    /// The part of a string literal before its first `\(`.
    Interpolation,
    Attribute,
    Bottom,
    /// A comma, or a line end that acts as one.
    Comma {
        written: bool,
    },
    Colon,
    DoubleColon,
    Question,
    Dot,
    Ellipsis,
    OpenParenthesis,
    CloseParenthesis,
    OpenBracket,
    CloseBracket,
    OpenBrace,
    CloseBrace,
    Plus,
    Minus,
    Star,
    Slash,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
    Match,
    NotMatch,
    Not,
    And,
    Or,
    Ampersand,
    Bar,
    Assign,
    Arrow,
    Semicolon,
    End,
}

impl fmt::Display for TokenKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Identifier => "a name",
            Self::Integer | Self::Float => "a number",
            Self::Text | Self::Interpolation => "a string",
            Self::Attribute => "an attribute",
            Self::Bottom => "_|_",
            Self::Comma { written: true } => "\",\"",
            Self::Comma { written: false } => "the end of the line",
            Self::Colon => "\":\"",
            Self::DoubleColon => "\"::\"",
            Self::Question => "\"?\"",
            Self::Dot => "\".\"",
            Self::Ellipsis => "\"...\"",
            Self::OpenParenthesis => "\"(\"",
            Self::CloseParenthesis => "\")\"",
            Self::OpenBracket => "\"[\"",
            Self::CloseBracket => "\"]\"",
            Self::OpenBrace => "\"{\"",
            Self::CloseBrace => "\"}\"",
            Self::Plus => "\"+\"",
            Self::Minus => "\"-\"",
            Self::Star => "\"*\"",
            Self::Slash => "\"/\"",
            Self::Less => "\"<\"",
            Self::LessOrEqual => "\"<=\"",
            Self::Greater => "\">\"",
            Self::GreaterOrEqual => "\">=\"",
            Self::Equal => "\"==\"",
            Self::NotEqual => "\"!=\"",
            Self::Match => "\"=~\"",
            Self::NotMatch => "\"!~\"",
            Self::Not => "\"!\"",
            Self::And => "\"&&\"",
            Self::Or => "\"||\"",
            Self::Ampersand => "\"&\"",
            Self::Bar => "\"|\"",
            Self::Assign => "\"=\"",
            Self::Arrow => "\"<-\"",
            Self::Semicolon => "\";\"",
            Self::End => "the end of the program",
        })
    }
}
