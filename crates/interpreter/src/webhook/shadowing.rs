//! Which webhooks are not asked, since another one counts more.

use std::fmt;

use super::read::SharedWebhook;
use crate::Operation;

/// A webhook that is not asked about some objects that its rules are for, or only where another one's failure is ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShadowedWebhook {
    /// Which, by its name.
    pub webhook: String,
    /// By whom: `<configuration>/<webhook>`.
    pub by: String,
    /// What it is not asked.
    pub operations: Vec<Operation>,
}

// === impl ShadowedWebhook ===

/// For people.
impl fmt::Display for ShadowedWebhook {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operations: Vec<_> = self.operations.iter().map(|operation| operation.name()).collect();
        let operations = operations.join(", ");
        let Self { webhook, by, .. } = self;
        write!(
            formatter,
            "webhook {webhook} is not asked {operations} of objects that webhook {by} is asked about"
        )
    }
}

/// What is shadowed of `webhook` by those before it, of each operation by the first.
pub(super) fn shadowed(webhook: &SharedWebhook, earlier: &[SharedWebhook]) -> Vec<ShadowedWebhook> {
    let mut shadowed: Vec<ShadowedWebhook> = Vec::new();
    for operation in Operation::ALL {
        let own = webhook.rules.iter().filter(|rule| rule.has_operation(operation));
        let own: Vec<_> = own.collect();
        let overlaps = |other: &&SharedWebhook| {
            let mut rules = other.rules.iter().filter(|rule| rule.has_operation(operation));
            rules.any(|rule| own.iter().any(|own| own.overlaps(rule)))
        };
        let Some(by) = earlier.iter().find(overlaps).map(|other| other.uid.clone()) else {
            continue;
        };
        match shadowed.iter_mut().find(|known| known.by == by) {
            Some(known) => known.operations.push(operation),
            None => shadowed.push(ShadowedWebhook {
                webhook: webhook.name.clone(),
                by,
                operations: vec![operation],
            }),
        }
    }
    shadowed
}
