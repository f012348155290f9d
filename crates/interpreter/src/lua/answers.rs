//! Converts the results of a script to an answer.

use mlua::{MultiValue, Value as LuaValue};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{LuaError, LuaLimits, arguments::type_name, empty_fields::EmptyFields, from_lua::from_lua};
use crate::{
    Answer, Question,
    answer::{Component, DependentObjectReference, ReplicaRequirements, canonicalize_quantities},
};

/// Converts the values that the function of a question returned.
///
/// # Errors
///
/// When they are not a valid answer.
pub(super) fn read(
    question: Question<'_>,
    values: &MultiValue,
    limits: LuaLimits,
) -> Result<Answer, LuaError> {
    let function = question.operation().lua_function();
    let returned = Returned {
        function,
        values,
        limits,
    };
    match question {
        Question::Replica { .. } => Ok(Answer::Replica {
            replicas: returned.replicas()?,
            requirements: returned.requirements()?,
        }),
        Question::Component { .. } => match returned.first() {
            LuaValue::Nil => Ok(Answer::Component(Vec::new())),
            _ => Ok(Answer::Component(returned.typed_list::<Component>(true)?)),
        },
        Question::Retain { desired, observed } => returned.object(&[desired, observed]),
        Question::ReviseReplica { object, .. } => returned.object(&[object]),
        Question::AggregateStatus { .. } => returned.object(&[]),
        Question::Status { .. } => Ok(Answer::Status(Some(returned.table(&[], false)?))),
        Question::Health { .. } => match returned.first() {
            LuaValue::Boolean(is_healthy) => Ok(Answer::Health(is_healthy)),
            other => Err(returned.wrong_type("a boolean", &other)),
        },
        Question::Dependency { .. } => {
            let references = returned.typed_list::<DependentObjectReference>(false)?;
            for (index, reference) in references.iter().enumerate() {
                reference
                    .check()
                    .map_err(|problem| returned.wrong(format!("[{}]: {problem}", index + 1)))?;
            }
            Ok(Answer::Dependency(references))
        }
    }
}

struct Returned<'a> {
    function: &'static str,
    values: &'a MultiValue,
    limits: LuaLimits,
}

impl Returned<'_> {
    fn first(&self) -> LuaValue {
        self.values.front().cloned().unwrap_or(LuaValue::Nil)
    }

    fn replicas(&self) -> Result<i32, LuaError> {
        let number = match self.first() {
            LuaValue::Integer(number) => return i32::try_from(number).map_err(|_| self.too_many()),
            LuaValue::Number(number) => number,
            other => return Err(self.wrong_type("a number", &other)),
        };
        if !(f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&number) {
            return Err(self.too_many());
        }
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the number is in range, and its fraction is dropped as in Karmada"
        )]
        Ok(number as i32)
    }

    fn too_many(&self) -> LuaError {
        self.wrong("the number of replicas does not fit into 32 bits".to_owned())
    }

    fn requirements(&self) -> Result<Option<ReplicaRequirements>, LuaError> {
        match self.values.get(1) {
            None | Some(LuaValue::Nil) => Ok(None),
            Some(table @ LuaValue::Table(_)) => {
                let mut value = self.json(table)?;
                EmptyFields::default().restore(&mut value, false);
                self.quantities(&mut value)?;
                Ok(Some(self.decode(value)?))
            }
            Some(other) => Err(self.wrong_type("a table or nil as its second value", other)),
        }
    }

    fn table(&self, references: &[&Value], is_list: bool) -> Result<Value, LuaError> {
        let table = self.first();
        if !table.is_table() {
            return Err(self.wrong_type("a table", &table));
        }
        let mut value = self.json(&table)?;
        EmptyFields::collect(references).restore(&mut value, is_list);
        Ok(value)
    }

    fn object(&self, references: &[&Value]) -> Result<Answer, LuaError> {
        let object = self.table(references, false)?;
        match object.get("kind") {
            Some(Value::String(kind)) if !kind.is_empty() => Ok(Answer::Object(object)),
            _ => Err(self.wrong("kind: is missing".to_owned())),
        }
    }

    fn typed_list<T: DeserializeOwned>(&self, has_quantities: bool) -> Result<Vec<T>, LuaError> {
        let mut list = self.table(&[], true)?;
        for item in list
            .as_array_mut()
            .into_iter()
            .flatten()
            .filter(|_| has_quantities)
        {
            if let Some(requirements) = item.get_mut("replicaRequirements") {
                self.quantities(requirements)?;
            }
        }
        self.decode(list)
    }

    fn decode<T: DeserializeOwned>(&self, value: Value) -> Result<T, LuaError> {
        serde_path_to_error::deserialize(value).map_err(|error| self.wrong(error.to_string()))
    }

    fn quantities(&self, requirements: &mut Value) -> Result<(), LuaError> {
        let wrong = canonicalize_quantities(requirements);
        match wrong.is_empty() {
            true => Ok(()),
            false => Err(self.wrong(wrong.join("; "))),
        }
    }

    fn json(&self, value: &LuaValue) -> Result<Value, LuaError> {
        from_lua(value, self.limits.memory).map_err(|problem| self.wrong(problem))
    }

    fn wrong(&self, problem: String) -> LuaError {
        LuaError::Result {
            function: self.function,
            problem,
        }
    }

    fn wrong_type(&self, expected: &'static str, found: &LuaValue) -> LuaError {
        LuaError::Type {
            function: self.function,
            expected,
            found: type_name(found).to_owned(),
        }
    }
}
