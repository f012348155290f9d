//! Fields of structs, and anonymous fields of expressions.

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

impl<'a> Evaluation<'a, '_> {
    /// Returns only failures that end the evaluation.
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

    /// Discards the previous value of the field.
    pub(super) fn add_to_field(&mut self, node: NodeId, conjunct: Conjunct<'a>) -> Evaluated<()> {
        let node = &mut self.nodes[node.index()];
        if node.is_decided {
            let message = "a field is extended after its default was used; declare it earlier";
            return Err(self.incomplete(message));
        }
        node.conjuncts.push(conjunct);
        if let NodeState::Done(_) = node.state {
            node.forget();
        }
        Ok(())
    }

    /// Creates an anonymous field of an expression, such as for both sides of `&`.
    pub(super) fn anonymous(
        &mut self,
        expression: &'a Expression,
        scope: ScopeId,
    ) -> Evaluated<CueValue<'a>> {
        let node = self.new_node(Conjunct::Expression(expression, scope))?;
        let value = self.evaluate_node(node);
        let is_incomplete = value.as_ref().is_err_and(|failure| failure.is_incomplete());
        // CUE v0.4.3 evaluates the operands completely, except structs.
        if !matches!(expression.kind, ExpressionKind::Struct(_)) && (value.is_ok() || is_incomplete) {
            self.settle(node)?;
        }
        value
    }

    /// Checks an anonymous field and its contents for errors.
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
                // The known part of an incomplete value may be an error.
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
