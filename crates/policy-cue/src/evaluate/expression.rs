//! Evaluates expressions to values.

use serde_json::Value;

use crate::{
    evaluate::{
        Evaluation,
        failure::{Evaluated, SharedFailure, worse_failure},
        node::ScopeId,
        value::{CueValue, SharedRef, ValuePlace},
    },
    kind::KindSet,
    syntax::{Expression, ExpressionKind, Fragment, UnaryOperator},
};

/// The partial result of an interpolation. A single text is shared, not copied.
enum JoinedText<'a> {
    Nothing,
    One(SharedRef<'a, str>),
    Several(String),
}

impl<'a> JoinedText<'a> {
    fn push(&mut self, part: SharedRef<'a, str>) {
        match self {
            Self::Nothing => *self = Self::One(part),
            _ => self.push_str(&part),
        }
    }

    fn push_str(&mut self, part: &str) {
        match self {
            _ if part.is_empty() => {}
            Self::Nothing => *self = Self::Several(part.to_owned()),
            Self::One(before) => *self = Self::Several([before, part].concat()),
            Self::Several(text) => text.push_str(part),
        }
    }

    fn into_text(self) -> SharedRef<'a, str> {
        match self {
            Self::Nothing => SharedRef::Borrowed(""),
            Self::One(text) => text,
            Self::Several(text) => SharedRef::Made(text.into()),
        }
    }
}

impl<'a> Evaluation<'a, '_> {
    /// Evaluates an expression; the value may be a choice or a kind.
    pub(super) fn evaluate(&mut self, expression: &'a Expression, scope: ScopeId) -> Evaluated<CueValue<'a>> {
        self.position = expression.position;
        self.step()?;
        match &expression.kind {
            ExpressionKind::Null => Ok(CueValue::Null),
            ExpressionKind::Bool(value) => Ok(CueValue::Bool(*value)),
            ExpressionKind::Number(number) => Ok(CueValue::Number(SharedRef::Borrowed(number))),
            ExpressionKind::Text(text) => Ok(CueValue::Text(SharedRef::Borrowed(text))),
            ExpressionKind::Top => Ok(CueValue::Kind(KindSet::TOP)),
            ExpressionKind::Kind(kind) => Ok(CueValue::Kind(*kind)),
            ExpressionKind::Bottom => Err(self.error("the program contains an explicit error: _|_")),
            _ => {
                self.spending.enter(expression.position)?;
                let value = self.compute(expression, scope);
                self.spending.leave();
                value
            }
        }
    }

    fn compute(&mut self, expression: &'a Expression, scope: ScopeId) -> Evaluated<CueValue<'a>> {
        match &expression.kind {
            ExpressionKind::Interpolation(fragments) => self.interpolate(fragments, scope),
            ExpressionKind::Name(..) | ExpressionKind::Path(..) => {
                let place = self.place(expression, scope)?;
                self.value_of(&place)
            }
            ExpressionKind::Unary(operator, operand) => self.unary(*operator, operand, scope),
            ExpressionKind::Operations(first, rest) => self.operations(first, rest, scope),
            ExpressionKind::Call(function, arguments) => {
                let mut values = Vec::with_capacity(arguments.len());
                let mut failure = None;
                for argument in arguments {
                    match self.evaluate_decided(argument, scope) {
                        Ok(value) => values.push(value),
                        Err(found) => failure = worse_failure(failure, Some(found)),
                    }
                }
                if let Some(failure) = failure {
                    return Err(failure);
                }
                self.position = expression.position;
                function.call(self, &values)
            }
            _ => self.anonymous(expression, scope),
        }
    }

    /// Returns the value at a place.
    pub(crate) fn value_of(&mut self, place: &ValuePlace<'a>) -> Evaluated<CueValue<'a>> {
        match place {
            ValuePlace::Node(node) => self.evaluate_node(*node),
            ValuePlace::Value(value) => Ok(value.clone()),
        }
    }

    /// Evaluates an expression; a choice yields its default.
    pub(super) fn evaluate_decided(
        &mut self,
        expression: &'a Expression,
        scope: ScopeId,
    ) -> Evaluated<CueValue<'a>> {
        let value = self.evaluate(expression, scope)?;
        self.position = expression.position;
        self.decide(value)
    }

    /// Returns the default of a choice; any other value unchanged.
    pub(crate) fn decide(&self, value: CueValue<'a>) -> Evaluated<CueValue<'a>> {
        let mut value = value;
        while let CueValue::Choice(choice) = &value {
            if choice.defaults != 1 {
                let count = choice.values.len();
                return Err(self.incomplete(format!("{count} alternatives remain and none is the default")));
            }
            value = choice.values[0].clone();
        }
        Ok(value)
    }

    /// Evaluates an expression to a value that is not only a kind.
    pub(super) fn concrete(&mut self, expression: &'a Expression, scope: ScopeId) -> Evaluated<CueValue<'a>> {
        let value = self.evaluate_decided(expression, scope)?;
        self.require_concrete(value)
    }

    pub(super) fn require_concrete(&self, value: CueValue<'a>) -> Evaluated<CueValue<'a>> {
        match value {
            CueValue::Kind(kind) => Err(self.incomplete(format!(
                "the value is not concrete: only its kind, {kind}, is known"
            ))),
            value => Ok(value),
        }
    }

    fn unary(
        &mut self,
        operator: UnaryOperator,
        operand: &'a Expression,
        scope: ScopeId,
    ) -> Evaluated<CueValue<'a>> {
        if matches!(operand.kind, ExpressionKind::Kind(_) | ExpressionKind::Top) {
            return Err(self.error(format!("{:?} needs a value, not a kind", operator.symbol())));
        }
        let value = self.evaluate_decided(operand, scope)?;
        self.position = operand.position;
        match (operator, &value) {
            (UnaryOperator::Plus, CueValue::Number(_)) => Ok(value),
            (UnaryOperator::Minus, CueValue::Number(number)) => {
                let mut negated = (**number).clone();
                negated.decimal = negated.decimal.negated();
                Ok(CueValue::number(negated))
            }
            (UnaryOperator::Not, CueValue::Bool(value)) => Ok(CueValue::Bool(!value)),
            (UnaryOperator::Not, _) => Err(self.wrong_kind(&value, KindSet::BOOL)),
            _ => Err(self.wrong_kind(&value, KindSet::NUMBER)),
        }
    }

    fn interpolate(&mut self, fragments: &'a [Fragment], scope: ScopeId) -> Evaluated<CueValue<'a>> {
        let mut text = JoinedText::Nothing;
        let mut failure = None;
        for fragment in fragments {
            let part = match fragment {
                Fragment::Text(part) => part.as_str(),
                Fragment::Expression(expression) => match self.fragment(expression, scope) {
                    Ok(CueValue::Text(part)) => {
                        self.take(part.len())?;
                        text.push(part);
                        continue;
                    }
                    Ok(CueValue::Number(number)) => &number.to_string(),
                    Ok(CueValue::Bool(value)) => {
                        if value {
                            "true"
                        } else {
                            "false"
                        }
                    }
                    Ok(other) => {
                        let wanted = KindSet::STRING | KindSet::NUMBER | KindSet::BOOL | KindSet::BYTES;
                        failure = worse_failure(failure, Some(self.wrong_kind(&other, wanted)));
                        continue;
                    }
                    Err(found) => {
                        failure = worse_failure(failure, Some(found));
                        continue;
                    }
                },
            };
            self.take(part.len())?;
            text.push_str(part);
        }
        match failure {
            Some(failure) => Err(failure),
            None => Ok(CueValue::Text(text.into_text())),
        }
    }

    fn fragment(&mut self, expression: &'a Expression, scope: ScopeId) -> Evaluated<CueValue<'a>> {
        let value = self.evaluate_decided(expression, scope)?;
        self.position = expression.position;
        Ok(value)
    }

    /// The items of a list; `None` for other values.
    pub(crate) fn list(&mut self, value: &CueValue<'a>) -> Evaluated<Option<Vec<ValuePlace<'a>>>> {
        match value {
            CueValue::Json(Value::Array(items)) => {
                self.take(items.len() * size_of::<ValuePlace<'_>>())?;
                let places = items.iter().map(|item| self.json(item).map(ValuePlace::Value));
                places.collect::<Evaluated<_>>().map(Some)
            }
            CueValue::Node(node) => {
                let items = self.nodes[node.index()].items.clone();
                if let Some(items) = &items {
                    self.take(items.len() * size_of::<ValuePlace<'_>>())?;
                }
                Ok(items)
            }
            _ => Ok(None),
        }
    }

    /// The number of fields of a struct, or of items of a list.
    pub(crate) fn count(&self, value: &CueValue<'a>) -> Option<usize> {
        match value {
            CueValue::Json(Value::Array(items)) => Some(items.len()),
            CueValue::Json(Value::Object(object)) => Some(object.len()),
            CueValue::Node(node) => {
                let node = &self.nodes[node.index()];
                Some(node.items.as_ref().map_or(node.fields.as_slice().len(), Vec::len))
            }
            _ => None,
        }
    }

    /// The failure for a value of the wrong kind, or for one that is not concrete yet.
    pub(crate) fn wrong_kind(&self, value: &CueValue<'a>, wanted: KindSet) -> SharedFailure {
        if let CueValue::Kind(kind) = value
            && kind.intersects(wanted)
        {
            return self.incomplete(format!(
                "the value is not concrete: only its kind, {kind}, is known"
            ));
        }
        self.error(format!("{} is not {wanted}", self.describe(value)))
    }

    /// Describes a value for a message. Strings are omitted: they may be secrets.
    pub(crate) fn describe(&self, value: &CueValue<'a>) -> String {
        match value {
            CueValue::Number(number) => number.to_string(),
            CueValue::Bool(value) => value.to_string(),
            CueValue::Null => "null".to_owned(),
            other => format!("a {}", self.kind(other)),
        }
    }
}
