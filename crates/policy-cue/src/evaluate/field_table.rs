//! The ordered fields of a struct, indexed by name.

use std::collections::HashMap;

use crate::evaluate::{node::NodeId, value::SharedRef};

/// Up to this number of fields, linear search is faster.
const FEW: usize = 32;

#[derive(Default)]
pub(super) struct FieldTable<'a> {
    fields: Vec<(SharedRef<'a, str>, NodeId)>,
    /// Index of fields by name; only if there are many fields.
    #[expect(
        clippy::box_collection,
        reason = "a table without one, the usual case, is smaller by five words"
    )]
    index: Option<Box<HashMap<SharedRef<'a, str>, NodeId>>>,
}

impl<'a> FieldTable<'a> {
    pub(super) fn get(&self, label: &str) -> Option<NodeId> {
        match &self.index {
            Some(index) => index.get(label).copied(),
            None => {
                let found = self.fields.iter().find(|(name, _)| &**name == label);
                found.map(|(_, node)| *node)
            }
        }
    }

    /// Appends a new field.
    pub(super) fn push(&mut self, label: SharedRef<'a, str>, node: NodeId) {
        if let Some(index) = &mut self.index {
            index.insert(label.clone(), node);
        } else if self.fields.len() == FEW {
            let fields = self.fields.iter().cloned();
            let index = fields.chain([(label.clone(), node)]).collect();
            self.index = Some(Box::new(index));
        }
        self.fields.push((label, node));
    }

    pub(super) fn as_slice(&self) -> &[(SharedRef<'a, str>, NodeId)] {
        &self.fields
    }

    pub(super) fn clear(&mut self) {
        self.fields.clear();
        self.index = None;
    }
}
