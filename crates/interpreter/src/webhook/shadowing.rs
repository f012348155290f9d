//! Webhooks that are not called because another one has precedence.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
};

use super::{rule::RuleMatcher, webhook_configuration::SharedWebhook};
use crate::Operation;

/// A webhook that is not called for some objects of its rules, or only if another one's failure is ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShadowedWebhook {
    /// The name of the webhook.
    pub webhook: String,
    /// The webhook that is called: `<configuration>/<webhook>`.
    pub by: String,
    /// The affected operations.
    pub operations: Vec<Operation>,
}

/// Webhooks, added in the order of precedence.
#[derive(Default)]
pub(super) struct Shadowing<'a> {
    by_operation: BTreeMap<Operation, EarlierRules<'a>>,
}

/// The rules of added webhooks for one operation.
#[derive(Default)]
struct EarlierRules<'a> {
    all: Vec<EarlierRule<'a>>,
    by_kind: HashMap<&'a str, Vec<EarlierRule<'a>>>,
    any_kind: Vec<EarlierRule<'a>>,
}

#[derive(Clone, Copy)]
struct EarlierRule<'a> {
    /// The position among all rules.
    place: usize,
    webhook: &'a SharedWebhook,
    rule: &'a RuleMatcher,
}

/// Formats a log message.
impl fmt::Display for ShadowedWebhook {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operations: Vec<_> = self.operations.iter().map(|operation| operation.name()).collect();
        let operations = operations.join(", ");
        let Self { webhook, by, .. } = self;
        write!(
            formatter,
            "webhook {webhook} is not called for {operations} of objects that webhook {by} also selects"
        )
    }
}

impl<'a> Shadowing<'a> {
    /// Adds a webhook; returns the earlier webhooks that shadow it, for each operation the first one.
    pub(super) fn add(&mut self, webhook: &'a SharedWebhook) -> Vec<ShadowedWebhook> {
        let mut shadowed: Vec<ShadowedWebhook> = Vec::new();
        for operation in Operation::ALL {
            let own = webhook.rules.iter().filter(|rule| rule.has_operation(operation));
            let own: Vec<_> = own.collect();
            let known = self.by_operation.entry(operation).or_default();
            if let Some(by) = known.first_that_overlaps(&own) {
                let by = by.uid.clone();
                match shadowed.iter_mut().find(|known| known.by == by) {
                    Some(known) => known.operations.push(operation),
                    None => shadowed.push(ShadowedWebhook {
                        webhook: webhook.name.clone(),
                        by,
                        operations: vec![operation],
                    }),
                }
            }
            known.add(webhook, &own);
        }
        shadowed
    }
}

impl<'a> EarlierRules<'a> {
    /// Returns the first webhook with an overlapping rule. Only rules for a common kind are compared.
    fn first_that_overlaps(&self, own: &[&RuleMatcher]) -> Option<&'a SharedWebhook> {
        let first = |earlier: &'_ [EarlierRule<'a>], own: &RuleMatcher| {
            let overlapping = earlier.iter().find(|earlier| earlier.rule.overlaps(own));
            overlapping.map(|earlier| (earlier.place, earlier.webhook))
        };
        let found = own.iter().flat_map(|own| {
            let of_kinds: Vec<_> = match &own.kinds {
                Some(kinds) => kinds
                    .iter()
                    .filter_map(|kind| self.by_kind.get(&**kind))
                    .collect(),
                None => vec![&self.all],
            };
            let any_kind = own.kinds.is_some().then_some(&self.any_kind);
            of_kinds
                .into_iter()
                .chain(any_kind)
                .filter_map(|earlier| first(earlier, own))
        });
        found.min_by_key(|(place, _)| *place).map(|(_, webhook)| webhook)
    }

    fn add(&mut self, webhook: &'a SharedWebhook, own: &[&'a RuleMatcher]) {
        for rule in own {
            let earlier = EarlierRule {
                place: self.all.len(),
                webhook,
                rule,
            };
            self.all.push(earlier);
            match &rule.kinds {
                None => self.any_kind.push(earlier),
                Some(kinds) => {
                    for kind in kinds {
                        self.by_kind.entry(kind).or_default().push(earlier);
                    }
                }
            }
        }
    }
}
