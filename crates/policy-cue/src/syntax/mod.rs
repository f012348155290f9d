//! From text to a tree.

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
    Alternative, BinaryOperator, Clause, Comprehension, Declaration, Element, Expression, ExpressionKind,
    Fragment, Operation, PathStep, PathStepKind, StructLiteral, Target, UnaryOperator,
};
