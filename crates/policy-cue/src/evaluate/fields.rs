//! Fields of structs, and what expressions hold of their own.

use crate::{
    evaluate::{
        Evaluation,
        failure::Evaluated,
        node::{Conjunct, NodeId, NodeState, ScopeId},
        unification::Unification,
        value::{CueValue, SharedRef, ValuePlace},
    },
    syntax::{Expression, ExpressionKind},
};

// === impl Evaluation ===

impl<'a> Evaluation<'a, '_> {
    /// Fails only with what ends everything.
    pub(super) fn insert(
        &mut self,
        id: NodeId,
        so_far: &mut Unification<'a>,
        label: SharedRef<'a, str>,
        conjunct: Conjunct<'a>,
    ) -> Evaluated<()> {
        match self.insert_field(id, label, conjunct) {
            Err(failure) if !failure.is_final() => {
                so_far.fail(failure);
                Ok(())
            }
            inserted => inserted,
        }
    }

    pub(super) fn insert_field(
        &mut self,
        id: NodeId,
        label: SharedRef<'a, str>,
        conjunct: Conjunct<'a>,
    ) -> Evaluated<()> {
        if let Some(node) = self.nodes[id.index()].field(&label) {
            return self.add_to_field(node, conjunct);
        }
        let node = self.new_node(conjunct)?;
        for index in 0.. {
            let Some((name, constraint)) = self.nodes[id.index()].optional.get(index) else {
                break;
            };
            if *name == &*label {
                let constraint = constraint.clone();
                self.nodes[node.index()].conjuncts.push(constraint);
            }
        }
        self.nodes[id.index()].fields.push(label, node);
        Ok(())
    }

    /// What was found before counts no more.
    pub(super) fn add_to_field(&mut self, node: NodeId, conjunct: Conjunct<'a>) -> Evaluated<()> {
        let node = &mut self.nodes[node.index()];
        if node.is_decided {
            let message = "a field gets another value after its default was used; declare it further up";
            return Err(self.incomplete(message));
        }
        node.conjuncts.push(conjunct);
        if let NodeState::Done(_) = node.state {
            node.forget();
        }
        Ok(())
    }

    /// A field of an expression's own, such as both sides of `&`.
    pub(super) fn anonymous(
        &mut self,
        expression: &'a Expression,
        scope: ScopeId,
    ) -> Evaluated<CueValue<'a>> {
        let node = self.new_node(Conjunct::Expression(expression, scope))?;
        let value = self.evaluate_node(node);
        let is_incomplete = value.as_ref().is_err_and(|failure| failure.is_incomplete());
        // 0.4.3 evaluates the operands to their last field, but for structs.
        if !matches!(expression.kind, ExpressionKind::Struct(_)) && (value.is_ok() || is_incomplete) {
            self.settle(node)?;
        }
        value
    }

    /// Looks for errors in all that a field of an expression's own holds.
    fn settle(&mut self, node: NodeId) -> Evaluated<()> {
        let fields = self.nodes[node.index()].fields.as_slice().iter();
        let mut places: Vec<NodeId> = fields.map(|(_, field)| *field).collect();
        for item in self.nodes[node.index()].items.iter().flatten() {
            if let ValuePlace::Node(item) = item {
                places.push(*item);
            }
        }
        for place in places {
            match self.evaluate_node(place) {
                Err(failure) if !failure.is_incomplete() => return Err(failure),
                // What is there of what is incomplete may be an error, too.
                Err(_) => {
                    self.enter()?;
                    let settled = self.settle(place);
                    self.leave();
                    settled?;
                }
                Ok(CueValue::Node(inner)) if inner == place => {
                    self.enter()?;
                    let settled = self.settle(inner);
                    self.leave();
                    settled?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}
