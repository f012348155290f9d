//! The durations of scenarios, to see where `.ci/run` spends its time.

use std::{
    fmt,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use crate::scenarios::Scenario;

/// The number of scenarios to show.
const SHOWN: usize = 20;

/// The durations of the completed scenarios. Displays the slowest.
#[derive(Debug, Default)]
pub struct ScenarioDurations(Mutex<Vec<(Duration, &'static str)>>);

impl ScenarioDurations {
    /// Records the duration of a scenario.
    pub(crate) fn ended(&self, scenario: &Scenario, took: Duration) {
        let mut durations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        durations.push((took, scenario.name));
    }
}

impl fmt::Display for ScenarioDurations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut durations = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        durations.sort_unstable_by(|one, other| other.cmp(one));
        let all: Duration = durations.iter().map(|(took, _)| *took).sum();
        write!(
            f,
            "{} scenarios, one after the other: {:.0} s. The slowest:",
            durations.len(),
            all.as_secs_f32()
        )?;
        for (took, name) in durations.iter().take(SHOWN) {
            write!(f, "\n{:6.1} s  {name}", took.as_secs_f32())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenarios::SCENARIOS;

    #[test]
    fn the_slowest_is_shown_first() {
        let durations = ScenarioDurations::default();
        durations.ended(&SCENARIOS[0], Duration::from_millis(1500));
        durations.ended(&SCENARIOS[1], Duration::from_secs(12));
        let expected = format!(
            "2 scenarios, one after the other: 14 s. The slowest:\n  12.0 s  {}\n   1.5 s  {}",
            SCENARIOS[1].name, SCENARIOS[0].name
        );
        assert_eq!(durations.to_string(), expected);
    }

    #[test]
    fn the_number_of_shown_scenarios_is_limited() {
        let durations = ScenarioDurations::default();
        for scenario in SCENARIOS {
            durations.ended(scenario, Duration::from_secs(1));
        }
        assert_eq!(durations.to_string().lines().count(), 1 + SHOWN);
    }
}
