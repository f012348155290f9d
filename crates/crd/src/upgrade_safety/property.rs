//! Compares two schemas property by property.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    UpgradeRule,
    constraints::{CONSTRAINTS, KeywordChange},
    finding::Findings,
    schema::{Schema, SchemaPath, canonical},
};

/// Depth limit of properties. API servers reject deeper nesting, which is JSON of twice that depth.
const DEPTH: usize = 128;

/// A comparison of two schemas.
pub(super) struct Comparison<'a, 'p> {
    /// The version in findings.
    pub(super) version: &'a str,
    /// The version with the new schema.
    pub(super) new_version: &'a str,
    pub(super) findings: &'a mut Findings<'p>,
}

impl Comparison<'_, '_> {
    /// Compares two schemas recursively. Properties that only the new one has are ignored.
    pub(super) fn compare(&mut self, old: &Value, new: &Value) {
        self.compare_at(&SchemaPath::Root, old, new, 0);
    }

    fn compare_at(&mut self, path: &SchemaPath<'_>, old: &Value, new: &Value, depth: usize) {
        if !self.findings.may_compare() {
            return;
        }
        if depth == DEPTH {
            let message =
                format!("unhandled changes are possible below this field: it is nested {DEPTH} fields deep");
            self.report(path, UpgradeRule::Unhandled, message);
            return;
        }
        let (Some(old_schema), Some(new_schema)) = (Schema::parse(old), Schema::parse(new)) else {
            let (old, new) = (canonical("schema", old), canonical("schema", new));
            if old != new {
                let change = KeywordChange::new("schema", Some(&old), Some(&new));
                self.report(path, UpgradeRule::Unhandled, unhandled([change]));
            }
            return;
        };
        self.compare_keywords(path, &old_schema, &new_schema);
        for (step, old) in old_schema.children {
            let path = SchemaPath::Below(path, step);
            match new_schema.children.get(&step) {
                Some(new) => self.compare_at(&path, old, new, depth + 1),
                // Fields below a removed field are not reported separately.
                None => {
                    let message = format!("removed field : {}.{path}", self.new_version);
                    self.report(&path, UpgradeRule::ExistingFieldRemoval, message);
                }
            }
        }
    }

    fn compare_keywords(&mut self, path: &SchemaPath<'_>, old: &Schema<'_>, new: &Schema<'_>) {
        let mut rest = Vec::new();
        let keywords: BTreeSet<&str> = old.keywords.keys().chain(new.keywords.keys()).copied().collect();
        for keyword in keywords {
            let (old, new) = (old.keywords.get(keyword), new.keywords.get(keyword));
            if old == new {
                continue;
            }
            let old = old.map(|value| canonical(keyword, value));
            let new = new.map(|value| canonical(keyword, value));
            if old == new {
                continue;
            }
            let constraint = CONSTRAINTS
                .iter()
                .find(|constraint| constraint.keyword == keyword);
            let messages = constraint.and_then(|constraint| {
                let change = KeywordChange::new(keyword, old.as_ref(), new.as_ref());
                let messages = (constraint.compare)(change).ok()?;
                Some((constraint.rule, messages))
            });
            match messages {
                Some((rule, messages)) => {
                    for message in messages {
                        self.report(path, rule, message);
                    }
                }
                None => rest.push((keyword, old, new)),
            }
        }
        if !rest.is_empty() {
            let changes = rest
                .iter()
                .map(|(keyword, old, new)| KeywordChange::new(keyword, old.as_ref(), new.as_ref()));
            self.report(path, UpgradeRule::Unhandled, unhandled(changes));
        }
    }

    fn report(&mut self, path: &SchemaPath<'_>, rule: UpgradeRule, message: String) {
        let field = path.to_string();
        self.findings.add(Some(self.version), Some(&field), rule, message);
    }
}

/// Describes changes that no rule covers.
pub(super) fn unhandled<'a>(changes: impl IntoIterator<Item = KeywordChange<'a>>) -> String {
    let changes: Vec<String> = changes
        .into_iter()
        .map(|change| format!("{} {}", change.keyword, change.shown()))
        .collect();
    format!("unhandled changes found ({})", changes.join("; "))
}
