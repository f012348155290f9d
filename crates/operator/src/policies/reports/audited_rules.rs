//! The latest result of each rule for an object.

use std::collections::{BTreeMap, btree_map::Entry};

use jiff::Timestamp;

/// The latest result of each auditing rule for an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AuditedRules(BTreeMap<AuditedRule, RuleJudgement>);

/// A rule of a ClusterValidatePolicy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct AuditedRule {
    /// The name of the policy.
    pub(super) policy: String,
    /// The field path of the rule; empty for a result of the whole policy.
    pub(super) rule: String,
}

/// The result of a rule. The later one is greater. Results with equal times have an arbitrary order that all
/// replicas share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RuleJudgement {
    pub(super) at: Timestamp,
    pub(super) verdict: RuleVerdict,
    pub(super) policy_uid: String,
}

/// The verdict of a rule on an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RuleVerdict {
    /// The rule is met, or does not select the object.
    Passed,
    /// The object violates the rule, with this message.
    Failed(String),
    /// The evaluation failed, with this cause.
    Errored(String),
}

impl AuditedRules {
    /// Records a result, unless a later one is known.
    pub(super) fn record(&mut self, rule: AuditedRule, judgement: RuleJudgement) {
        match self.0.entry(rule) {
            Entry::Vacant(entry) => {
                entry.insert(judgement);
            }
            Entry::Occupied(mut entry) => {
                if *entry.get() < judgement {
                    entry.insert(judgement);
                }
            }
        }
    }

    /// Records all results of `others`.
    pub(super) fn fold(&mut self, others: Self) {
        for (rule, judgement) in others.0 {
            self.record(rule, judgement);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&AuditedRule, &RuleJudgement)> {
        self.0.iter()
    }

    pub(super) fn find(&self, rule: &AuditedRule) -> Option<&RuleJudgement> {
        self.0.get(rule)
    }

    pub(super) fn retain(&mut self, mut keeps: impl FnMut(&AuditedRule, &RuleJudgement) -> bool) {
        self.0.retain(|rule, judgement| keeps(rule, judgement));
    }

    /// Reports whether any rule is violated or failed.
    pub(super) fn has_violations(&self) -> bool {
        self.0.values().any(RuleJudgement::is_reportable)
    }

    /// Removes the oldest results beyond `most`, and returns how many it removed.
    pub(super) fn keep_latest(&mut self, most: usize) -> usize {
        let left_out = self.0.len().saturating_sub(most);
        if left_out > 0 {
            let mut ages: Vec<_> = self
                .0
                .iter()
                .map(|(rule, results)| (results.at, rule.clone()))
                .collect();
            ages.sort();
            for (_, rule) in ages.drain(..left_out) {
                self.0.remove(&rule);
            }
        }
        left_out
    }
}

impl RuleJudgement {
    /// Reports whether the verdict belongs in a report.
    pub(super) fn is_reportable(&self) -> bool {
        self.verdict != RuleVerdict::Passed
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn results() -> impl Strategy<Value = (AuditedRule, RuleJudgement)> {
        let verdict = prop_oneof![
            Just(RuleVerdict::Passed),
            "[ab]".prop_map(RuleVerdict::Failed),
            "[ab]".prop_map(RuleVerdict::Errored),
        ];
        ("[pq]", "[0-9]", 0..20_i64, verdict).prop_map(|(policy, rule, second, verdict)| {
            let at = Timestamp::from_second(second).unwrap();
            let policy_uid = format!("u-{policy}");
            (
                AuditedRule { policy, rule },
                RuleJudgement {
                    at,
                    verdict,
                    policy_uid,
                },
            )
        })
    }

    fn recorded(results: &[(AuditedRule, RuleJudgement)]) -> AuditedRules {
        let mut rules = AuditedRules::default();
        for (rule, judgement) in results {
            rules.record(rule.clone(), judgement.clone());
        }
        rules
    }

    proptest! {
        #[test]
        fn the_latest_results_win_in_every_order_of_folding(
            results in prop::collection::vec(results(), 0..40).prop_flat_map(|results| (Just(results.clone()), Just(results).prop_shuffle())),
            split in 0..40_usize,
        ) {
            let (results, shuffled) = results;
            let all = recorded(&results);
            let (one, other) = shuffled.split_at(split.min(shuffled.len()));
            let mut folded = recorded(one);
            folded.fold(recorded(other));
            prop_assert_eq!(&folded, &all);
            folded.fold(all.clone());
            prop_assert_eq!(&folded, &all, "folding again changes nothing");
            for (rule, judgement) in all.iter() {
                let later = results.iter().filter(|(other, _)| other == rule).map(|(_, results)| results.at).max();
                prop_assert_eq!(Some(judgement.at), later);
            }
        }

        #[test]
        fn only_the_oldest_results_beyond_the_limit_are_removed(results in prop::collection::vec(results(), 0..40), most in 0..12_usize) {
            let all = recorded(&results);
            let mut kept = all.clone();
            let left_out = kept.keep_latest(most);
            prop_assert_eq!(kept.iter().count(), all.iter().count().min(most));
            prop_assert_eq!(kept.iter().count() + left_out, all.iter().count());
            let oldest = kept.iter().map(|(_, results)| results.at).min();
            for (_, judgement) in all.iter().filter(|(rule, _)| kept.find(rule).is_none()) {
                prop_assert!(oldest.is_none_or(|oldest| judgement.at <= oldest));
            }
        }
    }
}
