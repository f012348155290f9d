//! What was said last of an object, rule by rule.

use std::collections::{BTreeMap, btree_map::Entry};

use jiff::Timestamp;

/// What was said last of an object, by each rule that audits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AuditedRules(BTreeMap<AuditedRule, RuleJudgement>);

/// A rule of a ClusterValidatePolicy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct AuditedRule {
    /// The name of the policy.
    pub(super) policy: String,
    /// Its field; empty for what is of the policy as a whole.
    pub(super) rule: String,
}

/// What a rule said. The later one is greater: of what was said at one moment any order will do, if it is the same for all.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RuleJudgement {
    pub(super) at: Timestamp,
    pub(super) verdict: RuleVerdict,
    /// The uid of the policy that it was said by.
    pub(super) policy_uid: String,
}

/// What a rule makes of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RuleVerdict {
    /// It objects to nothing, or is not for the object.
    Passed,
    /// It objects, and says why.
    Failed(String),
    /// It could not be evaluated, and at what it failed.
    Errored(String),
}

// === impl AuditedRules ===

impl AuditedRules {
    /// Notes what a rule said, unless something later is known.
    pub(super) fn note(&mut self, rule: AuditedRule, judgement: RuleJudgement) {
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

    /// Notes all of these.
    pub(super) fn fold(&mut self, others: Self) {
        for (rule, judgement) in others.0 {
            self.note(rule, judgement);
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

    /// Whether any rule objects or could not be evaluated.
    pub(super) fn have_objections(&self) -> bool {
        self.0.values().any(RuleJudgement::objects)
    }

    /// Leaves out the oldest, so that so many stay at the most. How many were left out.
    pub(super) fn keep_latest(&mut self, most: usize) -> usize {
        let left_out = self.0.len().saturating_sub(most);
        if left_out > 0 {
            let mut ages: Vec<_> = self
                .0
                .iter()
                .map(|(rule, said)| (said.at, rule.clone()))
                .collect();
            ages.sort();
            for (_, rule) in ages.drain(..left_out) {
                self.0.remove(&rule);
            }
        }
        left_out
    }
}

// === impl RuleJudgement ===

impl RuleJudgement {
    /// Whether there is something to tell.
    pub(super) fn objects(&self) -> bool {
        self.verdict != RuleVerdict::Passed
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn said() -> impl Strategy<Value = (AuditedRule, RuleJudgement)> {
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

    fn noted(said: &[(AuditedRule, RuleJudgement)]) -> AuditedRules {
        let mut rules = AuditedRules::default();
        for (rule, judgement) in said {
            rules.note(rule.clone(), judgement.clone());
        }
        rules
    }

    proptest! {
        #[test]
        fn what_was_said_last_counts_in_whatever_order_replicas_fold_it(
            said in prop::collection::vec(said(), 0..40).prop_flat_map(|said| (Just(said.clone()), Just(said).prop_shuffle())),
            split in 0..40_usize,
        ) {
            let (said, shuffled) = said;
            let all = noted(&said);
            let (one, other) = shuffled.split_at(split.min(shuffled.len()));
            let mut folded = noted(one);
            folded.fold(noted(other));
            prop_assert_eq!(&folded, &all);
            folded.fold(all.clone());
            prop_assert_eq!(&folded, &all, "folding again changes nothing");
            for (rule, judgement) in all.iter() {
                let later = said.iter().filter(|(other, _)| other == rule).map(|(_, said)| said.at).max();
                prop_assert_eq!(Some(judgement.at), later);
            }
        }

        #[test]
        fn the_oldest_are_left_out_and_no_more_than_need_be(said in prop::collection::vec(said(), 0..40), most in 0..12_usize) {
            let all = noted(&said);
            let mut kept = all.clone();
            let left_out = kept.keep_latest(most);
            prop_assert_eq!(kept.iter().count(), all.iter().count().min(most));
            prop_assert_eq!(kept.iter().count() + left_out, all.iter().count());
            let oldest = kept.iter().map(|(_, said)| said.at).min();
            for (_, judgement) in all.iter().filter(|(rule, _)| kept.find(rule).is_none()) {
                prop_assert!(oldest.is_none_or(|oldest| judgement.at <= oldest));
            }
        }
    }
}
