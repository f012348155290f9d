//! From text to a tree.

mod expression;
mod lexer;
mod parser;
mod text;
mod token;
mod tree;

pub(crate) use parser::{ImportSpecification, SourceFile, parse};
pub(crate) use tree::{
    Alternative, BinaryOperator, Clause, Comprehension, Declaration, Element, Expression, ExpressionKind,
    Fragment, Operation, PathStep, PathStepKind, StructLiteral, Target, UnaryOperator,
};
