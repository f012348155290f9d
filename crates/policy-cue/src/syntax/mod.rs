//! Parses text into a syntax tree.

mod comprehension;
mod expression;
mod import;
mod lexer;
mod parser;
mod text;
mod token;
mod tree;

pub(crate) use import::ImportSpecification;
pub(crate) use parser::{SourceFile, parse};
pub(crate) use tree::{
    Alternative, BinaryOperation, BinaryOperator, Clause, Comprehension, Declaration, Element, Expression,
    ExpressionKind, Fragment, NameTarget, SelectorStep, SelectorStepKind, StructLiteral, UnaryOperator,
};
