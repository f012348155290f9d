//! Resolves names, selectors and indexes.

use serde_json::Value;

use crate::{
    evaluate::{
        Evaluation,
        failure::{Evaluated, FailureMessage, SharedFailure, both_or_worse},
        node::{NodeId, NodeState, ScopeId, ScopeNames},
        value::{CueValue, ValuePlace},
    },
    kind::KindSet,
    position::SourcePosition,
    syntax::{Expression, ExpressionKind, NameTarget, SelectorStep, SelectorStepKind},
};

/// An evaluated field name or index.
enum Selector<'s> {
    Field(&'s str),
    /// The name is a value, which may be a secret.
    Computed(&'s str),
    Index(u64),
}

impl<'a> Evaluation<'a, '_> {
    /// Returns the place of a reference, or the value of any other expression.
    pub(super) fn place(&mut self, expression: &'a Expression, scope: ScopeId) -> Evaluated<ValuePlace<'a>> {
        self.position = expression.position;
        match &expression.kind {
            ExpressionKind::Name(name, target) => self.name_place(name, *target, scope),
            ExpressionKind::Path(base, steps) => {
                let mut place = self.place(base, scope);
                for step in steps {
                    place = match (place, &step.kind) {
                        (Ok(place), _) => self.select(&place, step, scope),
                        // The index is evaluated even if there is nothing to select from.
                        (Err(failure), SelectorStepKind::Index(index)) if !failure.is_final() => {
                            both_or_worse(Err(failure), self.evaluate_decided(index, scope))
                                .map(|(place, _)| place)
                        }
                        (failure, _) => failure,
                    };
                }
                place
            }
            _ => self.evaluate(expression, scope).map(ValuePlace::Value),
        }
    }

    fn name_place(&mut self, name: &str, target: NameTarget, scope: ScopeId) -> Evaluated<ValuePlace<'a>> {
        let up = match target {
            NameTarget::Field { up } | NameTarget::Key { up } | NameTarget::Item { up } => up,
            NameTarget::Unresolved | NameTarget::Package(_) => 0,
        };
        match self.names(scope, up) {
            ScopeNames::For { key, item } => Ok(match target {
                NameTarget::Key { .. } => ValuePlace::Value(key.clone()),
                _ => item.clone(),
            }),
            ScopeNames::Struct(node) => match self.nodes[node.index()].field(name) {
                Some(field) => Ok(ValuePlace::Node(field)),
                None => Err(self.incomplete(FailureMessage::MissingOptional(name.into()))),
            },
        }
    }

    fn select(
        &mut self,
        place: &ValuePlace<'a>,
        step: &'a SelectorStep,
        scope: ScopeId,
    ) -> Evaluated<ValuePlace<'a>> {
        let container = self.container(place, step.position);
        let index;
        let selector = match &step.kind {
            SelectorStepKind::Field(field) => Selector::Field(field),
            SelectorStepKind::Index(expression) => {
                let (found, value) = both_or_worse(container, self.evaluate_decided(expression, scope))?;
                self.position = step.position;
                index = value;
                let selector = self.selector(&index)?;
                return self.select_in(&found, &selector);
            }
        };
        let container = container?;
        self.position = step.position;
        self.select_in(&container, &selector)
    }

    fn selector<'s>(&self, index: &'s CueValue<'a>) -> Evaluated<Selector<'s>> {
        match index {
            CueValue::Text(text) => Ok(Selector::Computed(text)),
            CueValue::Number(number) if number.is_integer => {
                number.decimal.to_u64().map(Selector::Index).ok_or_else(|| {
                    self.error(format!("{} is not an index; it must not be negative", **number))
                })
            }
            other => Err(self.wrong_kind(other, KindSet::INTEGER | KindSet::STRING)),
        }
    }

    /// Evaluates the left side of a selector.
    fn container(&mut self, place: &ValuePlace<'a>, position: SourcePosition) -> Evaluated<CueValue<'a>> {
        let value = match place {
            ValuePlace::Value(value) => value.clone(),
            ValuePlace::Node(node) => match &self.nodes[node.index()].state {
                // Use the fields that are known so far.
                NodeState::Evaluating if self.nodes[node.index()].scalar.is_none() => CueValue::Node(*node),
                _ => self.evaluate_node(*node)?,
            },
        };
        self.position = position;
        self.decide(value)
    }

    fn select_in(&mut self, container: &CueValue<'a>, selector: &Selector<'_>) -> Evaluated<ValuePlace<'a>> {
        match (container, selector) {
            (CueValue::Json(Value::Object(object)), Selector::Field(field) | Selector::Computed(field)) => {
                match object.get(*field) {
                    Some(value) => self.json(value).map(ValuePlace::Value),
                    None => Err(self.missing(selector)),
                }
            }
            (CueValue::Json(Value::Array(items)), Selector::Index(index)) => {
                let item = usize::try_from(*index).ok().and_then(|index| items.get(index));
                match item {
                    Some(value) => self.json(value).map(ValuePlace::Value),
                    None => Err(self.index_out_of_range(*index, items.len())),
                }
            }
            (CueValue::Node(node), selector) => self.selected_of_node(*node, selector),
            (CueValue::Json(_), _) => Err(self.wrong_selector(container, selector)),
            _ => Err(self.not_a_container(container)),
        }
    }

    fn selected_of_node(&mut self, node: NodeId, selector: &Selector<'_>) -> Evaluated<ValuePlace<'a>> {
        let found = &self.nodes[node.index()];
        match (&found.items, selector) {
            (Some(items), Selector::Index(index)) => {
                let item = usize::try_from(*index).ok().and_then(|index| items.get(index));
                match item {
                    Some(item) => Ok(item.clone()),
                    None => Err(self.index_out_of_range(*index, items.len())),
                }
            }
            (None, Selector::Field(field) | Selector::Computed(field)) => match found.field(field) {
                Some(field) => Ok(ValuePlace::Node(field)),
                None => Err(self.missing(selector)),
            },
            _ => Err(self.wrong_selector(&CueValue::Node(node), selector)),
        }
    }

    fn missing(&self, selector: &Selector<'_>) -> SharedFailure {
        self.incomplete(match selector {
            Selector::Field(field) => FailureMessage::MissingField((*field).into()),
            _ => FailureMessage::Fixed("the indexed field does not exist"),
        })
    }

    fn index_out_of_range(&self, index: u64, length: usize) -> SharedFailure {
        self.error(format!("item {index} does not exist: the list has {length}"))
    }

    fn wrong_selector(&self, container: &CueValue<'a>, selector: &Selector<'_>) -> SharedFailure {
        let kind = self.kind(container);
        self.error(match selector {
            Selector::Field(field) => format!("a {kind} has no field {field:?}"),
            Selector::Computed(_) => format!("a {kind} has no fields"),
            Selector::Index(index) => format!("a {kind} has no item {index}"),
        })
    }

    /// The failure for a selection from a value that has no fields, or is not known yet.
    pub(super) fn not_a_container(&self, value: &CueValue<'a>) -> SharedFailure {
        let kind = self.kind(value);
        if matches!(value, CueValue::Kind(_)) && kind.contains(KindSet::STRUCT) {
            return self.incomplete("the value to select from is not known");
        }
        self.error(format!("{} is not a struct or list", self.describe(value)))
    }
}
