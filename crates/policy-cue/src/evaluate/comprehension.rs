//! `if` and `for` clauses, and the scopes of their bodies.

use serde_json::Value;
use smallvec::{SmallVec, smallvec};

use crate::{
    evaluate::{
        Evaluation,
        failure::Evaluated,
        node::{ScopeId, ScopeNames},
        value::{CueValue, SharedRef, ValuePlace},
    },
    kind::KindSet,
    syntax::{Clause, Comprehension, Expression},
};

impl<'a> Evaluation<'a, '_> {
    /// Returns one scope for each iteration of the body.
    pub(super) fn scopes_of(
        &mut self,
        comprehension: &'a Comprehension,
        scope: ScopeId,
    ) -> Evaluated<SmallVec<[ScopeId; 4]>> {
        self.position = comprehension.position;
        let mut scopes: SmallVec<[ScopeId; 4]> = smallvec![scope];
        for clause in &comprehension.clauses {
            match clause {
                Clause::If(condition) => {
                    let mut kept = 0;
                    for index in 0..scopes.len() {
                        let scope = scopes[index];
                        if self.condition(condition, scope)? {
                            scopes[kept] = scope;
                            kept += 1;
                        }
                    }
                    scopes.truncate(kept);
                }
                Clause::For { source, .. } => {
                    let mut inner = SmallVec::new();
                    for scope in scopes {
                        for (key, item) in self.pairs(source, scope)? {
                            inner.push(self.new_scope(scope, ScopeNames::For { key, item })?);
                        }
                    }
                    scopes = inner;
                }
            }
        }
        Ok(scopes)
    }

    fn condition(&mut self, condition: &'a Expression, scope: ScopeId) -> Evaluated<bool> {
        let value = self.evaluate_decided(condition, scope)?;
        self.position = condition.position;
        match value {
            CueValue::Bool(value) => Ok(value),
            other => Err(self.wrong_kind(&other, KindSet::BOOL)),
        }
    }

    /// The keys and items that a `for` iterates over.
    fn pairs(
        &mut self,
        source: &'a Expression,
        scope: ScopeId,
    ) -> Evaluated<Vec<(CueValue<'a>, ValuePlace<'a>)>> {
        let value = self.evaluate_decided(source, scope)?;
        self.position = source.position;
        let mut pairs = Vec::new();
        match value {
            CueValue::Json(Value::Object(object)) => {
                for (key, item) in object {
                    self.step()?;
                    let item = ValuePlace::Value(self.json(item)?);
                    pairs.push((CueValue::Text(SharedRef::Borrowed(key.as_str())), item));
                }
            }
            CueValue::Node(node) if self.nodes[node.index()].items.is_none() => {
                for (label, field) in self.nodes[node.index()].fields.as_slice().to_vec() {
                    self.step()?;
                    pairs.push((CueValue::Text(label), ValuePlace::Node(field)));
                }
            }
            value => {
                let Some(items) = self.list(&value)? else {
                    return Err(self.not_a_container(&value));
                };
                for (index, item) in (0..).zip(items) {
                    self.step()?;
                    pairs.push((CueValue::integer(index), item));
                }
            }
        }
        Ok(pairs)
    }
}
