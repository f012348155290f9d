//! Evaluates a program lazily: each field has a value, is incomplete, or is an error.

mod budget;
mod choice;
mod comprehension;
mod expression;
mod failure;
mod field_table;
mod fields;
mod lists;
mod node;
mod operator;
mod output;
mod path;
mod unification;
mod unify;
mod value;

use serde_json::Value;

use crate::{
    budget::CueBudget,
    error::EvaluationError,
    kind::KindSet,
    position::SourcePosition,
    syntax::{Expression, ExpressionKind},
};
use budget::Spending;
pub(crate) use failure::{Evaluated, EvaluationFailure, FailureMessage, Severity, SharedFailure};
use node::{Conjunct, Node, NodeId, NodeState, ScopeFrame, ScopeId, ScopeNames};
pub(crate) use value::{CueValue, SharedRef, ValuePlace};

/// One evaluation of a program.
pub(crate) struct Evaluation<'a, 'b> {
    nodes: Vec<Node<'a>>,
    scopes: Vec<ScopeFrame<'a>>,
    spending: Spending<'b>,
    /// The position of the current expression, for operations without a position.
    position: SourcePosition,
}

/// The empty scope around the program.
const OUTSIDE: ScopeId = ScopeId(0);

/// Returns the output of a program with these inputs; `None` if it has no such field.
pub(crate) fn evaluate<'a>(
    program: &'a Expression,
    inputs: &[(&'a str, &'a Value)],
    output: &str,
    budget: &CueBudget<'_>,
) -> Result<Option<Value>, EvaluationError> {
    let mut evaluation = Evaluation {
        nodes: Vec::with_capacity(64),
        scopes: Vec::with_capacity(32),
        spending: Spending::new(budget),
        position: program.position,
    };
    evaluation.run(program, inputs, output)
}

impl<'a> Evaluation<'a, '_> {
    fn run(
        &mut self,
        program: &'a Expression,
        inputs: &[(&'a str, &'a Value)],
        output: &str,
    ) -> Result<Option<Value>, EvaluationError> {
        let whole = |failure: SharedFailure| output::error(&failure, "the program");
        let root = self
            .new_node(Conjunct::Expression(program, OUTSIDE))
            .map_err(whole)?;
        self.scopes.push(ScopeFrame {
            around: None,
            names: ScopeNames::Struct(root),
        });
        self.input(root, inputs).map_err(whole)?;
        let evaluated = self.evaluate_node(root);
        // An error anywhere fails the program, whatever the output is.
        self.check(root)?;
        if let Err(failure) = &evaluated
            && !failure.is_incomplete()
        {
            return Err(output::error(failure, "the program"));
        }
        match self.nodes[root.index()].field(output) {
            Some(node) => self.output(node, output).map(Some),
            // The incomplete part of the program might have declared the output field.
            None => evaluated.map(|_| None).map_err(whole),
        }
    }

    /// Adds inputs as fields of the program.
    fn input(&mut self, root: NodeId, inputs: &[(&'a str, &'a Value)]) -> Evaluated<()> {
        for (name, value) in inputs {
            let conjunct = self.json_conjunct(value)?;
            self.insert_field(root, SharedRef::Borrowed(name), conjunct)?;
        }
        Ok(())
    }

    fn new_node(&mut self, conjunct: Conjunct<'a>) -> Evaluated<NodeId> {
        self.spending.take(self.position, size_of::<Node<'_>>())?;
        let id = NodeId(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX));
        self.nodes.push(Node::new(conjunct));
        Ok(id)
    }

    fn new_scope(&mut self, around: ScopeId, names: ScopeNames<'a>) -> Evaluated<ScopeId> {
        self.spending.take(self.position, size_of::<ScopeFrame<'_>>())?;
        let id = ScopeId(u32::try_from(self.scopes.len()).unwrap_or(u32::MAX));
        self.scopes.push(ScopeFrame {
            around: Some(around),
            names,
        });
        Ok(id)
    }

    /// The names in the scope `up` levels further out.
    fn names(&self, scope: ScopeId, up: u32) -> &ScopeNames<'a> {
        let mut frame = &self.scopes[scope.index()];
        for _ in 0..up {
            if let Some(around) = frame.around {
                frame = &self.scopes[around.index()];
            }
        }
        &frame.names
    }

    /// Creates a list as result of an expression.
    pub(crate) fn new_list(&mut self, items: Vec<ValuePlace<'a>>) -> Evaluated<CueValue<'a>> {
        self.spending
            .take(self.position, items.len() * size_of::<ValuePlace<'_>>())?;
        let id = self.new_node(Conjunct::Place(ValuePlace::Value(CueValue::Kind(KindSet::LIST))))?;
        let node = &mut self.nodes[id.index()];
        node.conjuncts.clear();
        node.items = Some(items);
        node.state = NodeState::Done(Ok(CueValue::Node(id)));
        Ok(CueValue::Node(id))
    }

    /// Creates a text as result of an expression.
    pub(crate) fn new_text(&mut self, text: &str) -> Evaluated<CueValue<'a>> {
        self.spending.take(self.position, text.len())?;
        Ok(CueValue::text(text))
    }

    /// Accounts for bytes that are about to be allocated.
    pub(crate) fn take(&mut self, bytes: usize) -> Evaluated<()> {
        self.spending.take(self.position, bytes)
    }

    /// Accounts for one step.
    pub(crate) fn step(&mut self) -> Evaluated<()> {
        self.spending.step(self.position)
    }

    /// Accounts for one level of nesting.
    pub(crate) fn enter(&mut self) -> Evaluated<()> {
        self.spending.enter(self.position)
    }

    pub(crate) fn leave(&mut self) {
        self.spending.leave();
    }

    pub(crate) fn position(&self) -> SourcePosition {
        self.position
    }

    pub(crate) fn error(&self, message: impl Into<FailureMessage>) -> SharedFailure {
        EvaluationFailure::error(self.position, message)
    }

    pub(crate) fn incomplete(&self, message: impl Into<FailureMessage>) -> SharedFailure {
        EvaluationFailure::incomplete(self.position, message)
    }

    fn json_conjunct(&self, value: &'a Value) -> Evaluated<Conjunct<'a>> {
        Ok(Conjunct::Place(ValuePlace::Value(self.json(value)?)))
    }

    /// Converts a JSON value.
    pub(crate) fn json(&self, value: &'a Value) -> Evaluated<CueValue<'a>> {
        CueValue::from_json(value).ok_or_else(|| self.error(format!("{value} is out of range")))
    }

    /// The possible kinds of a value.
    pub(crate) fn kind(&self, value: &CueValue<'a>) -> KindSet {
        match value {
            CueValue::Null => KindSet::NULL,
            CueValue::Bool(_) => KindSet::BOOL,
            CueValue::Number(number) if number.is_integer => KindSet::INTEGER,
            CueValue::Number(_) => KindSet::FLOAT,
            CueValue::Text(_) => KindSet::STRING,
            CueValue::Kind(kind) => *kind,
            CueValue::Choice(choice) => choice
                .values
                .iter()
                .fold(KindSet::NONE, |kinds, value| kinds | self.kind(value)),
            CueValue::Json(Value::Array(_)) => KindSet::LIST,
            CueValue::Json(_) => KindSet::STRUCT,
            CueValue::Node(node) if self.nodes[node.index()].items.is_some() => KindSet::LIST,
            CueValue::Node(_) => KindSet::STRUCT,
        }
    }
}

impl NodeId {
    fn index(self) -> usize {
        self.0 as usize
    }
}

impl ScopeId {
    fn index(self) -> usize {
        self.0 as usize
    }
}

/// Reports whether an expression is a scalar literal, independent of its scope.
fn is_scalar(expression: &Expression) -> bool {
    matches!(
        expression.kind,
        ExpressionKind::Null | ExpressionKind::Bool(_) | ExpressionKind::Number(_) | ExpressionKind::Text(_)
    )
}

/// Reports whether an expression only refers to another value, which it then shares.
fn is_reference(expression: &Expression) -> bool {
    matches!(
        expression.kind,
        ExpressionKind::Name(..) | ExpressionKind::Path(..)
    )
}
