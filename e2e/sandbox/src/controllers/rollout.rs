//! Computes the next step of a rolling update.

use serde_json::Value;

/// The replicas of one ReplicaSet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Set {
    /// The desired number of pods.
    pub(super) wanted: i64,
    /// The number of available pods.
    pub(super) available: i64,
}

/// The limits of a rollout.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// The Deployment's replicas.
    pub(super) replicas: i64,
    /// How many pods may exist in addition to `replicas`.
    pub(super) surge: i64,
    /// How many of `replicas` may be unavailable.
    pub(super) unavailable: i64,
}

impl Limits {
    /// Reads a Deployment's `spec`: absolute numbers and percentages (surge rounds up, unavailable rounds
    /// down).
    pub(super) fn new(spec: &Value) -> Self {
        let replicas = spec["replicas"].as_i64().unwrap_or(1);
        let resolve = |value: &Value, up: bool| match value.as_str().and_then(|text| text.strip_suffix('%')) {
            Some(percent) => {
                let hundredths = percent.parse::<i64>().unwrap_or(0) * replicas;
                if up {
                    (hundredths + 99) / 100
                } else {
                    hundredths / 100
                }
            }
            None => value.as_i64().unwrap_or(0),
        };
        let rolling = &spec["strategy"]["rollingUpdate"];
        let surge = resolve(&rolling["maxSurge"], true);
        let unavailable = resolve(&rolling["maxUnavailable"], false);
        // With both at zero, no rollout could progress.
        Self {
            replicas,
            surge,
            unavailable: if surge == 0 {
                unavailable.max(1)
            } else {
                unavailable
            },
        }
    }

    /// Returns the replicas of the new ReplicaSet for this step.
    pub(super) fn scale_up(&self, new: Set, old: &[Set]) -> i64 {
        let total = new.wanted + old.iter().map(|set| set.wanted).sum::<i64>();
        let room = (self.replicas + self.surge - total).max(0);
        if new.wanted > self.replicas {
            self.replicas
        } else {
            (new.wanted + room).min(self.replicas)
        }
    }

    /// Returns the replicas of each old ReplicaSet for this step. Unhealthy pods are removed first.
    pub(super) fn scale_down(&self, new: Set, old: &[Set]) -> Vec<i64> {
        let minimum = self.replicas - self.unavailable;
        let total = new.wanted + old.iter().map(|set| set.wanted).sum::<i64>();
        let mut spare = (total - minimum - (new.wanted - new.available)).max(0);
        let mut left: Vec<i64> = old.iter().map(|set| set.wanted).collect();
        for (wanted, set) in left.iter_mut().zip(old) {
            let unhealthy = (set.wanted - set.available).clamp(0, spare);
            *wanted -= unhealthy;
            spare -= unhealthy;
        }
        let available = new.available + old.iter().map(|set| set.available).sum::<i64>();
        let mut healthy = (available - minimum).max(0).min(spare);
        for wanted in &mut left {
            let step = (*wanted).min(healthy);
            *wanted -= step;
            healthy -= step;
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn limits(replicas: i64, surge: Value, unavailable: Value) -> Limits {
        Limits::new(
            &json!({"replicas": replicas, "strategy": {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}}),
        )
    }

    #[test]
    fn percentages_round_as_kubernetes_rounds_them() {
        let quarter = limits(3, json!("25%"), json!("25%"));
        assert_eq!((quarter.surge, quarter.unavailable), (1, 0));
        let neither = limits(3, json!(0), json!(0));
        assert_eq!((neither.surge, neither.unavailable), (0, 1));
    }

    #[test]
    fn a_rolling_update_never_falls_below_what_must_be_available() {
        for replicas in 1..5 {
            for (surge, unavailable) in [(1, 0), (0, 1), (2, 1), (1, 1)] {
                let limits = limits(replicas, json!(surge), json!(unavailable));
                let mut new = Set {
                    wanted: 0,
                    available: 0,
                };
                let mut old = vec![Set {
                    wanted: replicas,
                    available: replicas,
                }];
                for _ in 0..40 {
                    new.wanted = limits.scale_up(new, &old);
                    let left = limits.scale_down(new, &old);
                    for (set, wanted) in old.iter_mut().zip(left) {
                        set.wanted = wanted;
                        set.available = set.available.min(wanted);
                    }
                    assert!(new.available + old[0].available >= replicas - limits.unavailable);
                    assert!(new.wanted + old[0].wanted <= replicas + limits.surge);
                    // One pod becomes available in each round.
                    new.available = (new.available + 1).min(new.wanted);
                }
                assert_eq!((new.available, old[0].wanted), (replicas, 0), "{limits:?}");
            }
        }
    }
}
