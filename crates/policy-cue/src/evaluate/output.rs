//! Extracts the output, and checks the whole program for errors.

use serde_json::{Map, Value};

use crate::{
    error::EvaluationError,
    evaluate::{
        Evaluation,
        failure::{Evaluated, EvaluationFailure, Severity, SharedFailure},
        node::NodeId,
        value::{CueValue, SharedRef, ValuePlace},
    },
};

/// The progress of the error check in a struct or list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Visit {
    Not,
    Within,
    Done,
}

/// The path from the program to a value.
struct Trail<'t> {
    before: Option<&'t Self>,
    part: TrailPart<'t>,
}

enum TrailPart<'t> {
    Field(&'t str),
    Item(usize),
}

/// Converts a failure for the caller.
pub(super) fn error(failure: &EvaluationFailure, path: &str) -> EvaluationError {
    let (path, position, message) = (path.to_owned(), failure.position, failure.message.to_string());
    match failure.severity {
        Severity::Exhausted => EvaluationError::Exhausted { position, message },
        Severity::Unsupported => EvaluationError::Unsupported {
            path,
            position,
            message,
        },
        Severity::Error => EvaluationError::Failed {
            path,
            position,
            message,
        },
        Severity::Incomplete | Severity::Cycle => EvaluationError::Incomplete {
            path,
            position,
            message,
        },
    }
}

impl Trail<'_> {
    fn describe(&self) -> String {
        let mut text = self.before.map(Self::describe).unwrap_or_default();
        match self.part {
            TrailPart::Item(index) => text.push_str(&format!("[{index}]")),
            TrailPart::Field(label) => {
                let is_plain = label
                    .chars()
                    .all(|character| character.is_ascii_alphanumeric() || character == '_');
                if !text.is_empty() {
                    text.push('.');
                }
                if is_plain {
                    text.push_str(label);
                } else {
                    text.push_str(&crate::quote(label));
                }
            }
        }
        text
    }

    fn error(&self, failure: &SharedFailure) -> EvaluationError {
        error(failure, &self.describe())
    }
}

impl<'a> Evaluation<'a, '_> {
    /// Lists the fields of a struct.
    pub(super) fn fields(
        &self,
        value: &CueValue<'a>,
    ) -> Evaluated<Vec<(SharedRef<'a, str>, ValuePlace<'a>)>> {
        match value {
            CueValue::Json(Value::Object(object)) => object
                .iter()
                .map(|(label, value)| {
                    let value = ValuePlace::Value(self.json(value)?);
                    Ok((SharedRef::Borrowed(label.as_str()), value))
                })
                .collect(),
            CueValue::Node(node) => {
                let fields = self.nodes[node.index()].fields.as_slice().iter();
                Ok(fields
                    .map(|(label, field)| (label.clone(), ValuePlace::Node(*field)))
                    .collect())
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Evaluates the whole program; an error anywhere fails it.
    pub(super) fn check(&mut self, root: NodeId) -> Result<(), EvaluationError> {
        let mut visits = vec![Visit::Not; self.nodes.len()];
        self.check_within(root, &mut visits, None)
    }

    fn check_place(
        &mut self,
        place: &ValuePlace<'a>,
        visits: &mut Vec<Visit>,
        trail: &Trail<'_>,
    ) -> Result<(), EvaluationError> {
        let ValuePlace::Node(node) = place else {
            return Ok(());
        };
        let value = match self.evaluate_node(*node) {
            Ok(CueValue::Node(value)) => value,
            Err(failure) if !failure.is_incomplete() => return Err(trail.error(&failure)),
            // The known part of an incomplete value may be an error.
            Err(_) => *node,
            Ok(_) => return Ok(()),
        };
        self.check_within(value, visits, Some(trail))
    }

    fn check_within(
        &mut self,
        node: NodeId,
        visits: &mut Vec<Visit>,
        trail: Option<&Trail<'_>>,
    ) -> Result<(), EvaluationError> {
        if visits.len() < self.nodes.len() {
            visits.resize(self.nodes.len(), Visit::Not);
        }
        match visits[node.index()] {
            Visit::Done => return Ok(()),
            Visit::Within => {
                let message = "a struct or list contains itself";
                let failure = EvaluationFailure::error(self.position, message);
                return Err(
                    trail.map_or_else(|| error(&failure, "the program"), |trail| trail.error(&failure))
                );
            }
            Visit::Not => visits[node.index()] = Visit::Within,
        }
        let path = |failure: SharedFailure| {
            trail.map_or_else(|| error(&failure, "the program"), |trail| trail.error(&failure))
        };
        self.spending.enter(self.position).map_err(path)?;
        let items = self.nodes[node.index()].items.as_ref().map_or(0, Vec::len);
        for index in 0..items {
            let item = self.nodes[node.index()]
                .items
                .as_ref()
                .and_then(|items| items.get(index));
            if let Some(item) = item.cloned() {
                let part = TrailPart::Item(index);
                let trail = Trail { before: trail, part };
                self.check_place(&item, visits, &trail)?;
            }
        }
        for index in 0..self.nodes[node.index()].fields.as_slice().len() {
            let field = self.nodes[node.index()].fields.as_slice().get(index).cloned();
            if let Some((label, field)) = field {
                let part = TrailPart::Field(&label);
                let trail = Trail { before: trail, part };
                self.check_place(&ValuePlace::Node(field), visits, &trail)?;
            }
        }
        self.spending.leave();
        visits[node.index()] = Visit::Done;
        Ok(())
    }

    /// Converts a field to JSON.
    pub(super) fn output(&mut self, node: NodeId, label: &str) -> Result<Value, EvaluationError> {
        let part = TrailPart::Field(label);
        let trail = Trail { before: None, part };
        self.json_of(&ValuePlace::Node(node), &trail)
    }

    fn json_of(&mut self, place: &ValuePlace<'a>, trail: &Trail<'_>) -> Result<Value, EvaluationError> {
        let at = |failure: SharedFailure| trail.error(&failure);
        self.step().map_err(at)?;
        self.take(size_of::<Value>()).map_err(at)?;
        let value = self.value_of(place).map_err(at)?;
        let value = self.decide(value).map_err(at)?;
        Ok(match &value {
            CueValue::Null => Value::Null,
            CueValue::Bool(value) => Value::Bool(*value),
            CueValue::Number(number) => {
                let json = number.to_json();
                let wrong = || at(self.error(format!("{} is out of the range of JSON numbers", **number)));
                Value::Number(json.ok_or_else(wrong)?)
            }
            CueValue::Text(text) => {
                self.take(text.len()).map_err(at)?;
                Value::String(String::from(&**text))
            }
            CueValue::Kind(_) | CueValue::Choice(_) => return Err(at(self.not_concrete(value))),
            CueValue::Json(_) | CueValue::Node(_) => {
                self.spending.enter(self.position).map_err(at)?;
                let json = self.composed(&value, trail);
                self.spending.leave();
                json?
            }
        })
    }

    fn not_concrete(&self, value: CueValue<'a>) -> SharedFailure {
        match self.require_concrete(value) {
            Err(failure) => failure,
            Ok(_) => self.incomplete("the value is undecided"),
        }
    }

    fn composed(&mut self, value: &CueValue<'a>, trail: &Trail<'_>) -> Result<Value, EvaluationError> {
        let at = |failure: SharedFailure| trail.error(&failure);
        if let Some(items) = self.list(value).map_err(at)? {
            let mut array = Vec::with_capacity(items.len());
            for (index, item) in items.iter().enumerate() {
                let trail = Trail {
                    before: Some(trail),
                    part: TrailPart::Item(index),
                };
                array.push(self.json_of(item, &trail)?);
            }
            return Ok(Value::Array(array));
        }
        let mut object = Map::new();
        for (label, field) in self.fields(value).map_err(at)? {
            self.take(label.len() + size_of::<String>()).map_err(at)?;
            let trail = Trail {
                before: Some(trail),
                part: TrailPart::Field(&label),
            };
            let value = self.json_of(&field, &trail)?;
            object.insert(String::from(&*label), value);
        }
        Ok(Value::Object(object))
    }
}
