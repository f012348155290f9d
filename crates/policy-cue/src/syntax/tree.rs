//! The syntax tree of a program.

use crate::{
    builtins::BuiltinFunction, kind::KindSet, number::CueNumber, pattern::Pattern, position::SourcePosition,
};

/// An expression with its position.
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
    /// A name, with its target after resolution.
    Name(String, NameTarget),
    /// A base with a flat row of selectors and indexes.
    Path(Box<Expression>, Vec<SelectorStep>),
    Unary(UnaryOperator, Box<Expression>),
    /// A row of operators of the same precedence, evaluated from left to right.
    Operations(Box<Expression>, Vec<BinaryOperation>),
    /// `a & b`.
    Conjunction(Vec<Expression>),
    /// `*a | b`.
    Disjunction(Vec<Alternative>),
    /// A default mark, which exists only until its disjunction is parsed.
    Marked(Box<Expression>),
    /// A call before resolution.
    UnresolvedCall(Box<Expression>, Vec<Expression>),
    Call(&'static BuiltinFunction, Vec<Expression>),
    Struct(StructLiteral),
    List(Vec<Element>),
}

/// The target of a name; the number counts scopes outwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameTarget {
    Unresolved,
    /// A field of the struct in that scope.
    Field {
        up: u32,
    },
    /// A variable of the `for` in that scope.
    Key {
        up: u32,
    },
    Item {
        up: u32,
    },
    /// The package imported under that name.
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
    /// The compiled pattern, if the right side is a literal regular expression.
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
    /// Whether names can refer to the field: quoted labels are not in scope.
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

impl Expression {
    pub(crate) fn new(position: SourcePosition, kind: ExpressionKind) -> Self {
        Self { position, kind }
    }

    /// A placeholder for a rejected construct, so that parsing can continue.
    pub(crate) fn refused(position: SourcePosition) -> Self {
        Self::new(position, ExpressionKind::Top)
    }
}

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

impl UnaryOperator {
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Self::Plus => "+",
            Self::Minus => "-",
            Self::Not => "!",
        }
    }
}
