//! The state of a field during its evaluation.

use smallvec::SmallVec;

use crate::{
    evaluate::{
        choice::PendingChoice,
        failure::{EvaluationFailure, SharedFailure, worse_failure},
        node::{Conjunct, NodeId, ScopeId},
        value::{CueValue, ValuePlace},
    },
    kind::KindSet,
    position::SourcePosition,
    syntax::{Comprehension, Element},
};

/// The state of a field during its evaluation.
pub(super) struct Unification<'a> {
    pub(super) kind: KindSet,
    pub(super) scalar: Option<CueValue<'a>>,
    /// Whether a part makes it a struct.
    pub(super) is_struct: bool,
    /// Whether a part makes it a struct unless another part makes it something else.
    pub(super) may_be_struct: bool,
    pub(super) has_top: bool,
    pub(super) lists: SmallVec<[PendingList<'a>; 1]>,
    pub(super) choices: Vec<PendingChoice<'a>>,
    pub(super) comprehensions: Vec<(&'a Comprehension, ScopeId, Option<SharedFailure>)>,
    /// The incomplete parts after the last attempt.
    pub(super) pending: Vec<(Conjunct<'a>, SharedFailure)>,
    pub(super) error: Option<SharedFailure>,
    /// The nodes whose conjuncts were added.
    pub(super) seen: SmallVec<[NodeId; 4]>,
}

/// One of several lists that are unified in a field.
pub(super) enum PendingList<'a> {
    Literal(&'a [Element], ScopeId),
    Items(Vec<ValuePlace<'a>>),
}

impl Unification<'_> {
    pub(super) fn new() -> Self {
        Self {
            kind: KindSet::TOP,
            scalar: None,
            is_struct: false,
            may_be_struct: false,
            has_top: false,
            lists: SmallVec::new(),
            choices: Vec::new(),
            comprehensions: Vec::new(),
            pending: Vec::new(),
            error: None,
            seen: SmallVec::new(),
        }
    }

    pub(super) fn fail(&mut self, failure: SharedFailure) {
        self.error = worse_failure(self.error.take(), Some(failure));
    }

    /// Restricts the possible kinds; returns whether any remains.
    pub(super) fn restrict(&mut self, kind: KindSet, position: SourcePosition) -> bool {
        let left = self.kind & kind;
        if left.is_empty() {
            if !self.kind.is_empty() {
                let message = format!("the value cannot be both {} and {}", self.kind, kind);
                self.fail(EvaluationFailure::error(position, message));
            }
            self.kind = left;
            return false;
        }
        self.kind = left;
        true
    }

    /// The incomplete failure of highest precedence.
    pub(super) fn incomplete(&self) -> Option<SharedFailure> {
        let comprehensions = self
            .comprehensions
            .iter()
            .filter_map(|(_, _, failure)| failure.clone());
        let pending = self.pending.iter().map(|(_, failure)| failure.clone());
        comprehensions
            .chain(pending)
            .fold(None, |worst, failure| worse_failure(worst, Some(failure)))
    }
}
