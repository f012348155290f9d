//! Lazily evaluated fields and items.

use smallvec::{SmallVec, smallvec};

use crate::{
    evaluate::{
        failure::Evaluated,
        field_table::FieldTable,
        value::{CueValue, ValuePlace},
    },
    syntax::Expression,
};

/// The ID of a field or item in the evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeId(pub(super) u32);

/// The ID of a scope in the evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScopeId(pub(super) u32);

/// One of several expressions or values that are unified in a field.
#[derive(Clone)]
pub(crate) enum Conjunct<'a> {
    Expression(&'a Expression, ScopeId),
    Place(ValuePlace<'a>),
}

pub(super) enum NodeState<'a> {
    New,
    Evaluating,
    Done(Evaluated<CueValue<'a>>),
}

pub(super) struct Node<'a> {
    /// The parts to unify; nearly always one.
    pub(super) conjuncts: SmallVec<[Conjunct<'a>; 1]>,
    pub(super) state: NodeState<'a>,
    /// The known kind or scalar, during the evaluation of the rest.
    pub(super) scalar: Option<CueValue<'a>>,
    pub(super) fields: FieldTable<'a>,
    pub(super) optional: Vec<(&'a str, Conjunct<'a>)>,
    /// The items of a list.
    pub(super) items: Option<Vec<ValuePlace<'a>>>,
    /// Whether a choice was made, after which nothing can be added.
    pub(super) is_decided: bool,
}

/// A scope with its parent.
pub(super) struct ScopeFrame<'a> {
    pub(super) around: Option<ScopeId>,
    pub(super) names: ScopeNames<'a>,
}

pub(super) enum ScopeNames<'a> {
    Struct(NodeId),
    For { key: CueValue<'a>, item: ValuePlace<'a> },
}

impl<'a> Node<'a> {
    pub(super) fn new(conjunct: Conjunct<'a>) -> Self {
        Self {
            conjuncts: smallvec![conjunct],
            state: NodeState::New,
            scalar: None,
            fields: FieldTable::default(),
            optional: Vec::new(),
            items: None,
            is_decided: false,
        }
    }

    /// Resets the node to unevaluated.
    pub(super) fn forget(&mut self) {
        self.state = NodeState::New;
        self.scalar = None;
        self.items = None;
        self.fields.clear();
        self.optional.clear();
        self.is_decided = false;
    }

    pub(super) fn field(&self, label: &str) -> Option<NodeId> {
        self.fields.get(label)
    }
}
