//! Unifies the conjuncts of a field.

use std::rc::Rc;

use serde_json::Value;

use crate::{
    evaluate::{
        Evaluation, OUTSIDE,
        choice::PendingChoice,
        failure::{Evaluated, EvaluationFailure, Severity, worse_failure},
        is_reference, is_scalar,
        node::{Conjunct, NodeId, NodeState, ScopeId, ScopeNames},
        unification::{PendingList, Unification},
        value::{CueValue, SharedRef, ValuePlace},
    },
    kind::KindSet,
    syntax::{Declaration, ExpressionKind, StructLiteral},
};

impl<'a> Evaluation<'a, '_> {
    /// Evaluates a field once.
    pub(super) fn evaluate_node(&mut self, id: NodeId) -> Evaluated<CueValue<'a>> {
        let node = &mut self.nodes[id.index()];
        match &node.state {
            NodeState::Done(value) => return value.clone(),
            NodeState::Evaluating => {
                return match &node.scalar {
                    Some(scalar) => Ok(scalar.clone()),
                    None => {
                        let message = "the field depends on itself: a cycle of references";
                        Err(EvaluationFailure::new(Severity::Cycle, self.position, message))
                    }
                };
            }
            NodeState::New => {}
        }
        node.state = NodeState::Evaluating;
        let position = self.position;
        self.step()?;
        self.spending.enter(position)?;
        let value = match self.alias(id) {
            Some(value) => value,
            None => self.unify(id),
        };
        self.spending.leave();
        self.position = position;
        // A failure that ends the evaluation is not the value of this field.
        if let Err(failure) = &value
            && failure.is_final()
        {
            return value;
        }
        // A cycle is retried by the next evaluation, which may have more values.
        if let Err(failure) = &value
            && failure.severity == Severity::Cycle
        {
            self.nodes[id.index()].forget();
            return value;
        }
        self.nodes[id.index()].state = NodeState::Done(value.clone());
        value
    }

    /// Evaluates a field that only refers to another place, whose value it shares.
    fn alias(&mut self, id: NodeId) -> Option<Evaluated<CueValue<'a>>> {
        let [conjunct] = self.nodes[id.index()].conjuncts.as_slice() else {
            return None;
        };
        match conjunct {
            Conjunct::Place(ValuePlace::Value(value))
                if !matches!(value, CueValue::Node(_) | CueValue::Choice(_)) =>
            {
                Some(Ok(value.clone()))
            }
            Conjunct::Expression(expression, _) if is_scalar(expression) => {
                let expression = *expression;
                Some(self.evaluate(expression, OUTSIDE))
            }
            Conjunct::Expression(expression, scope) if is_reference(expression) => {
                let (expression, scope) = (*expression, *scope);
                match self.place(expression, scope) {
                    Ok(ValuePlace::Value(value)) => Some(Ok(value)),
                    Ok(ValuePlace::Node(target)) => {
                        if matches!(self.nodes[target.index()].state, NodeState::Evaluating) {
                            return None;
                        }
                        let value = self.evaluate_node(target);
                        self.nodes[id.index()].is_decided = self.nodes[target.index()].is_decided;
                        Some(value)
                    }
                    Err(failure) => Some(Err(failure)),
                }
            }
            _ => None,
        }
    }

    fn unify(&mut self, id: NodeId) -> Evaluated<CueValue<'a>> {
        let mut so_far = Unification::new();
        for index in 0.. {
            let Some(conjunct) = self.nodes[id.index()].conjuncts.get(index).cloned() else {
                break;
            };
            self.add(id, &mut so_far, conjunct)?;
        }
        while self.expand(id, &mut so_far)? {}
        self.add_lists(id, &mut so_far)?;
        self.conclude(id, so_far)
    }

    /// Returns only failures that end the evaluation.
    fn add(&mut self, id: NodeId, so_far: &mut Unification<'a>, conjunct: Conjunct<'a>) -> Evaluated<()> {
        self.step()?;
        let (expression, scope) = match conjunct {
            Conjunct::Place(ValuePlace::Value(value)) => return self.add_value(id, so_far, value),
            Conjunct::Place(ValuePlace::Node(node)) => return self.add_node(id, so_far, node),
            Conjunct::Expression(expression, scope) => (expression, scope),
        };
        self.position = expression.position;
        let failure = match &expression.kind {
            ExpressionKind::Conjunction(parts) => {
                for part in parts {
                    self.add(id, so_far, Conjunct::Expression(part, scope))?;
                }
                return Ok(());
            }
            ExpressionKind::Struct(literal) => return self.add_struct(id, so_far, literal, scope),
            ExpressionKind::List(elements) => {
                so_far.lists.push(PendingList::Literal(elements, scope));
                return Ok(());
            }
            ExpressionKind::Disjunction(alternatives) => {
                so_far
                    .choices
                    .push(PendingChoice::Alternatives(alternatives, scope));
                return Ok(());
            }
            ExpressionKind::Top => {
                so_far.has_top = true;
                return Ok(());
            }
            ExpressionKind::Name(..) | ExpressionKind::Path(..) => match self.place(expression, scope) {
                Ok(ValuePlace::Node(node)) => return self.add_node(id, so_far, node),
                Ok(ValuePlace::Value(value)) => return self.add_value(id, so_far, value),
                Err(failure) => failure,
            },
            _ => match self.evaluate(expression, scope) {
                Ok(value) => {
                    self.position = expression.position;
                    return self.add_value(id, so_far, value);
                }
                Err(failure) => failure,
            },
        };
        if failure.is_final() {
            return Err(failure);
        }
        if failure.is_incomplete() {
            let conjunct = Conjunct::Expression(expression, scope);
            so_far.pending.push((conjunct, failure));
        } else {
            so_far.fail(failure);
        }
        Ok(())
    }

    /// Adds all conjuncts of another field.
    fn add_node(&mut self, id: NodeId, so_far: &mut Unification<'a>, node: NodeId) -> Evaluated<()> {
        if node == id || so_far.seen.contains(&node) {
            return Ok(());
        }
        so_far.seen.push(node);
        if self.nodes[node.index()].conjuncts.is_empty() {
            return match self.evaluate_node(node) {
                Ok(CueValue::Node(list)) => {
                    let items = self.nodes[list.index()].items.clone();
                    so_far.lists.push(PendingList::Items(items.unwrap_or_default()));
                    Ok(())
                }
                Ok(value) => self.add_value(id, so_far, value),
                Err(failure) => Err(failure),
            };
        }
        for index in 0.. {
            let Some(conjunct) = self.nodes[node.index()].conjuncts.get(index).cloned() else {
                return Ok(());
            };
            self.spending.enter(self.position)?;
            self.add(id, so_far, conjunct)?;
            self.spending.leave();
        }
        Ok(())
    }

    fn add_value(&mut self, id: NodeId, so_far: &mut Unification<'a>, value: CueValue<'a>) -> Evaluated<()> {
        match &value {
            CueValue::Json(Value::Object(object)) => {
                so_far.is_struct = true;
                for (label, value) in object {
                    self.step()?;
                    let conjunct = self.json_conjunct(value)?;
                    self.insert(id, so_far, SharedRef::Borrowed(label), conjunct)?;
                }
                return Ok(());
            }
            CueValue::Json(Value::Array(items)) => {
                let mut places = Vec::with_capacity(items.len());
                for item in items {
                    self.step()?;
                    places.push(ValuePlace::Value(self.json(item)?));
                }
                so_far.lists.push(PendingList::Items(places));
                return Ok(());
            }
            CueValue::Node(node) => return self.add_node(id, so_far, *node),
            CueValue::Choice(choice) => {
                so_far.choices.push(PendingChoice::Values(Rc::clone(choice)));
                return Ok(());
            }
            CueValue::Kind(kind) => {
                so_far.has_top |= *kind == KindSet::TOP;
                so_far.restrict(*kind, self.position);
                return Ok(());
            }
            CueValue::Json(_)
            | CueValue::Null
            | CueValue::Bool(_)
            | CueValue::Number(_)
            | CueValue::Text(_) => {}
        }
        if !so_far.restrict(self.kind(&value), self.position) {
            return Ok(());
        }
        match &so_far.scalar {
            Some(scalar) if !self.are_equal_scalars(scalar, &value) => {
                let (left, right) = (self.describe(scalar), self.describe(&value));
                let message = format!("the value cannot be both {left} and {right}");
                so_far.fail(EvaluationFailure::error(self.position, message));
            }
            Some(_) => {}
            None => {
                self.nodes[id.index()].scalar = Some(value.clone());
                so_far.scalar = Some(value);
            }
        }
        Ok(())
    }

    fn add_struct(
        &mut self,
        id: NodeId,
        so_far: &mut Unification<'a>,
        literal: &'a StructLiteral,
        around: ScopeId,
    ) -> Evaluated<()> {
        so_far.may_be_struct = true;
        // The program itself uses the initial scope.
        let is_program = id.index() == 0 && around == OUTSIDE;
        let scope = if is_program {
            OUTSIDE
        } else {
            self.new_scope(around, ScopeNames::Struct(id))?
        };
        let mut has_embedding = false;
        // Declare fields first: the rest may refer to them.
        for declaration in &literal.declarations {
            let Declaration::Field(field) = declaration else {
                has_embedding = true;
                continue;
            };
            self.step()?;
            let conjunct = Conjunct::Expression(&field.value, scope);
            if field.is_optional {
                if let Some(node) = self.nodes[id.index()].field(&field.label)
                    && let Err(failure) = self.add_to_field(node, conjunct.clone())
                {
                    so_far.fail(failure);
                }
                self.nodes[id.index()].optional.push((&field.label, conjunct));
            } else {
                so_far.is_struct = true;
                self.insert(id, so_far, SharedRef::Borrowed(&field.label), conjunct)?;
            }
        }
        so_far.is_struct |= !has_embedding;
        for declaration in &literal.declarations {
            match declaration {
                Declaration::Field(_) => {}
                Declaration::Comprehension(comprehension) => {
                    so_far.comprehensions.push((comprehension, scope, None));
                }
                Declaration::Embedding(expression) => {
                    self.spending.enter(expression.position)?;
                    self.add(id, so_far, Conjunct::Expression(expression, scope))?;
                    self.spending.leave();
                }
            }
        }
        Ok(())
    }

    /// Retries the incomplete parts; returns whether there was progress.
    fn expand(&mut self, id: NodeId, so_far: &mut Unification<'a>) -> Evaluated<bool> {
        let mut progressed = false;
        let mut index = 0;
        while let Some((comprehension, scope, _)) = so_far.comprehensions.get(index) {
            let (comprehension, scope) = (*comprehension, *scope);
            match self.scopes_of(comprehension, scope) {
                Ok(scopes) => {
                    so_far.comprehensions.remove(index);
                    progressed = true;
                    for scope in scopes {
                        let body = Conjunct::Expression(&comprehension.body, scope);
                        self.spending.enter(comprehension.position)?;
                        self.add(id, so_far, body)?;
                        self.spending.leave();
                    }
                }
                Err(failure) if failure.is_final() => return Err(failure),
                Err(failure) if failure.is_incomplete() => {
                    so_far.comprehensions[index].2 = Some(failure);
                    index += 1;
                }
                Err(failure) => {
                    so_far.comprehensions.remove(index);
                    so_far.fail(failure);
                }
            }
        }
        if progressed {
            return Ok(true);
        }
        let pending = std::mem::take(&mut so_far.pending);
        let before = pending.len();
        for (conjunct, _) in pending {
            self.add(id, so_far, conjunct)?;
        }
        Ok(so_far.pending.len() < before)
    }

    fn conclude(&mut self, id: NodeId, mut so_far: Unification<'a>) -> Evaluated<CueValue<'a>> {
        if so_far.is_struct {
            so_far.restrict(KindSet::STRUCT, self.position);
        }
        let incomplete = so_far.incomplete();
        // CUE v0.4.3 evaluates choices last.
        if let Some(failure) = &incomplete
            && !so_far.choices.is_empty()
            && so_far.scalar.is_none()
        {
            return Err(Rc::clone(failure));
        }
        if so_far.choices.is_empty() {
            if let Some(failure) = worse_failure(so_far.error.take(), incomplete.clone()) {
                return Err(failure);
            }
        } else if let Some(failure) = so_far.error.take() {
            return Err(failure);
        }
        let is_list = self.nodes[id.index()].items.is_some();
        let is_struct = so_far.is_struct
            || so_far.may_be_struct && so_far.kind.contains(KindSet::STRUCT) && !so_far.has_top && !is_list;
        let value = match so_far.scalar.take() {
            Some(scalar) => scalar,
            // Unified with a choice, a struct without declarations yields the choice.
            None if so_far.is_struct || is_list || is_struct && so_far.choices.is_empty() => {
                CueValue::Node(id)
            }
            None => CueValue::Kind(so_far.kind),
        };
        if so_far.choices.is_empty() {
            return Ok(value);
        }
        self.nodes[id.index()].is_decided = true;
        let chosen = self.choose(value, so_far.choices);
        match (chosen, incomplete) {
            (Ok(_), Some(failure)) if failure.severity != Severity::Cycle => Err(failure),
            (chosen, _) => chosen,
        }
    }
}
