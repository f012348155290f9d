//! What a program is made of, once it is read.

use crate::{
    builtins::BuiltinFunction, kind::KindSet, number::CueNumber, pattern::Pattern, position::SourcePosition,
};

/// An expression and where it starts.
#[derive(Debug)]
pub(crate) struct Expression {
    pub(crate) position: SourcePosition,
    pub(crate) kind: ExpressionKind,
}

#[derive(Debug)]
pub(crate) enum ExpressionKind {
    Null,
    Bool(bool),
    Number(CueNumber),
    Text(String),
    Interpolation(Vec<Fragment>),
    /// `_`.
    Top,
    /// `_|_`.
    Bottom,
    /// `int`, `string` and the like.
    Kind(KindSet),
    /// A name, and what it leads to once it is resolved.
    Name(String, NameTarget),
    /// What selectors and indexes lead to, in one row however many there are.
    Path(Box<Expression>, Vec<SelectorStep>),
    Unary(UnaryOperator, Box<Expression>),
    /// Operators of one precedence in a row, done from left to right.
    Operations(Box<Expression>, Vec<BinaryOperation>),
    /// `a & b`.
    Conjunction(Vec<Expression>),
    /// `*a | b`.
    Disjunction(Vec<Alternative>),
    /// A mark for a default, which stands alone only until the disjunction around it is read.
    Marked(Box<Expression>),
    /// Before it is resolved.
    UnresolvedCall(Box<Expression>, Vec<Expression>),
    Call(&'static BuiltinFunction, Vec<Expression>),
    Struct(StructLiteral),
    List(Vec<Element>),
}

/// What a name leads to: so many scopes further out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameTarget {
    Unresolved,
    /// The field of that name in the struct there.
    Field {
        up: u32,
    },
    /// What the `for` there calls so.
    Key {
        up: u32,
    },
    Item {
        up: u32,
    },
    /// The package imported as that.
    Package(&'static str),
}

#[derive(Debug)]
pub(crate) enum Fragment {
    Text(String),
    Expression(Expression),
}

#[derive(Debug)]
pub(crate) struct SelectorStep {
    pub(crate) position: SourcePosition,
    pub(crate) kind: SelectorStepKind,
}

#[derive(Debug)]
pub(crate) enum SelectorStepKind {
    Field(String),
    Index(Expression),
}

#[derive(Debug)]
pub(crate) struct BinaryOperation {
    pub(crate) operator: BinaryOperator,
    pub(crate) position: SourcePosition,
    pub(crate) right: Expression,
    /// What the right side says, where it is a regular expression that is written down.
    pub(crate) pattern: Option<Pattern>,
}

#[derive(Debug)]
pub(crate) struct Alternative {
    pub(crate) is_default: bool,
    pub(crate) value: Expression,
}

#[derive(Debug, Default)]
pub(crate) struct StructLiteral {
    pub(crate) declarations: Vec<Declaration>,
}

#[derive(Debug)]
pub(crate) enum Declaration {
    Field(FieldDeclaration),
    Comprehension(Comprehension),
    Embedding(Expression),
}

#[derive(Debug)]
pub(crate) struct FieldDeclaration {
    pub(crate) position: SourcePosition,
    pub(crate) label: String,
    /// Names are found by labels that are names, not by quoted ones.
    pub(crate) is_name: bool,
    pub(crate) is_optional: bool,
    pub(crate) value: Expression,
}

#[derive(Debug)]
pub(crate) struct Comprehension {
    pub(crate) position: SourcePosition,
    pub(crate) clauses: Vec<Clause>,
    /// Always a struct literal.
    pub(crate) body: Expression,
}

#[derive(Debug)]
pub(crate) enum Clause {
    If(Expression),
    For {
        key: Option<String>,
        item: Option<String>,
        source: Expression,
    },
}

#[derive(Debug)]
pub(crate) enum Element {
    Item(Expression),
    Comprehension(Comprehension),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnaryOperator {
    Plus,
    Minus,
    Not,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BinaryOperator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Match,
    NotMatch,
    And,
    Or,
}

// === impl Expression ===

impl Expression {
    pub(crate) fn new(position: SourcePosition, kind: ExpressionKind) -> Self {
        Self { position, kind }
    }

    /// What stands for a construct that is refused, so that what follows it is read.
    pub(crate) fn refused(position: SourcePosition) -> Self {
        Self::new(position, ExpressionKind::Top)
    }
}

// === impl BinaryOperator ===

impl BinaryOperator {
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::Match => "=~",
            Self::NotMatch => "!~",
            Self::And => "&&",
            Self::Or => "||",
        }
    }
}

// === impl UnaryOperator ===

impl UnaryOperator {
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Self::Plus => "+",
            Self::Minus => "-",
            Self::Not => "!",
        }
    }
}
