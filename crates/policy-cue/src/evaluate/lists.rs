//! Lists: evaluates items and unifies lists.

use crate::{
    evaluate::{
        Evaluation,
        failure::{Evaluated, EvaluationFailure, SharedFailure},
        node::{Conjunct, NodeId, ScopeId},
        unification::{PendingList, Unification},
        value::ValuePlace,
    },
    kind::KindSet,
    syntax::Element,
};

impl<'a> Evaluation<'a, '_> {
    pub(super) fn add_lists(&mut self, id: NodeId, so_far: &mut Unification<'a>) -> Evaluated<()> {
        let mut pending = std::mem::take(&mut so_far.lists);
        pending.sort_by_key(|list| matches!(list, PendingList::Literal(..)));
        let mut merged: Option<Vec<ValuePlace<'a>>> = None;
        let mut length = None;
        for list in pending {
            let items = match list {
                PendingList::Items(items) => items,
                PendingList::Literal(elements, scope) => {
                    let (items, failure) = self.items(elements, scope, length)?;
                    if let Some(failure) = failure {
                        so_far.fail(failure);
                        // The known part of an incomplete list may be an error.
                        merged = Some(self.merge(merged, items)?);
                        continue;
                    }
                    items
                }
            };
            let count = items.len();
            merged = Some(self.merge(merged, items)?);
            if !so_far.restrict(KindSet::LIST, self.position) {
                break;
            }
            match length {
                Some(length) if length != count => {
                    let message = format!("the list cannot have both {length} and {count} items");
                    so_far.fail(EvaluationFailure::error(self.position, message));
                }
                _ => length = Some(count),
            }
        }
        self.nodes[id.index()].items = merged;
        Ok(())
    }

    /// Unifies two lists item by item.
    fn merge(
        &mut self,
        first: Option<Vec<ValuePlace<'a>>>,
        second: Vec<ValuePlace<'a>>,
    ) -> Evaluated<Vec<ValuePlace<'a>>> {
        let Some(mut merged) = first else {
            return Ok(second);
        };
        for (index, place) in second.into_iter().enumerate() {
            match merged.get_mut(index) {
                Some(item) => {
                    let node = self.new_node(Conjunct::Place(item.clone()))?;
                    let conjuncts = &mut self.nodes[node.index()].conjuncts;
                    conjuncts.push(Conjunct::Place(place));
                    *item = ValuePlace::Node(node);
                }
                None => merged.push(place),
            }
        }
        Ok(merged)
    }

    /// Returns the items of a list literal, up to the first failing `if` or `for`, or the first item in
    /// excess.
    fn items(
        &mut self,
        elements: &'a [Element],
        scope: ScopeId,
        most: Option<usize>,
    ) -> Evaluated<(Vec<ValuePlace<'a>>, Option<SharedFailure>)> {
        let mut items = Vec::with_capacity(elements.len());
        for element in elements {
            match element {
                Element::Item(item) => {
                    let node = self.new_node(Conjunct::Expression(item, scope))?;
                    items.push(ValuePlace::Node(node));
                }
                Element::Comprehension(comprehension) => match self.scopes_of(comprehension, scope) {
                    Ok(scopes) => {
                        for scope in scopes {
                            let body = Conjunct::Expression(&comprehension.body, scope);
                            items.push(ValuePlace::Node(self.new_node(body)?));
                        }
                    }
                    Err(found) if found.is_final() => return Err(found),
                    Err(found) => return Ok((items, Some(found))),
                },
            }
            if let Some(most) = most
                && items.len() > most
            {
                let message = format!("the list cannot have both {} and {most} items", items.len());
                let failure = self.error(message);
                return Ok((items, Some(failure)));
            }
        }
        Ok((items, None))
    }
}
