//! Blue-green: of the two Services of a serving Deployment, which one webhooks are to call.

use std::collections::BTreeSet;

/// One of the two Services of a Deployment that serves webhooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Color {
    /// The Service with the name that OLM gives it. It is always there.
    Blue,
    /// The other one: there while webhooks call it, or are about to.
    Green,
}

/// What is there of one of the two Services.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServiceObservation {
    /// A webhook configuration or a conversion calls it.
    pub called: bool,
    /// It is the Service that is desired, at least as it was applied last.
    pub desired: bool,
}

/// What is there of both Services of a Deployment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pair {
    /// The one with OLM's name.
    pub blue: ServiceObservation,
    /// The other one.
    pub green: ServiceObservation,
}

impl Color {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::Blue, Self::Green];

    /// Returns the Service that webhooks are to call.
    ///
    /// A Service that is called and selects the desired pods stays. A called Service that selects other pods
    /// is left unchanged until it is no longer called, and webhooks move to the other one. Returns `None` if
    /// both are called and neither selects the desired pods: then an interrupted change must finish first.
    pub fn choose(pair: &Pair) -> Option<Self> {
        let both = || Self::BOTH.into_iter();
        both()
            .find(|color| pair.of(*color).called && pair.of(*color).desired)
            .or_else(|| both().find(|color| !pair.of(*color).called))
    }
}

impl Pair {
    /// What is there of one of them.
    pub fn of(&self, color: Color) -> ServiceObservation {
        match color {
            Color::Blue => self.blue,
            Color::Green => self.green,
        }
    }

    /// Whether webhooks call one of them that is not `target`.
    pub fn is_called_besides(&self, target: Color) -> bool {
        Color::BOTH
            .into_iter()
            .any(|color| color != target && self.of(color).called)
    }
}

/// What is there, from the names that are called and those whose Service is as desired.
pub fn observe(blue: &str, green: &str, called: &BTreeSet<String>, desired: impl Fn(Color) -> bool) -> Pair {
    Pair {
        blue: ServiceObservation {
            called: called.contains(blue),
            desired: desired(Color::Blue),
        },
        green: ServiceObservation {
            called: called.contains(green),
            desired: desired(Color::Green),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_called_and_leads_elsewhere_is_never_chosen() {
        let one = |called, desired| ServiceObservation { called, desired };
        for called in [(false, false), (false, true), (true, false), (true, true)] {
            for desired in [(false, false), (false, true), (true, false), (true, true)] {
                let pair = Pair {
                    blue: one(called.0, desired.0),
                    green: one(called.1, desired.1),
                };
                let Some(chosen) = Color::choose(&pair) else {
                    assert_eq!((called, desired), ((true, true), (false, false)));
                    continue;
                };
                let is_free = !pair.of(chosen).called;
                assert!(is_free || pair.of(chosen).desired, "{pair:?}");
                let settled = Color::BOTH
                    .into_iter()
                    .any(|color| pair.of(color) == one(true, true));
                assert_eq!(!is_free, settled, "{pair:?}");
            }
        }
    }

    #[test]
    fn a_first_install_has_the_name_that_olm_gives() {
        assert_eq!(Color::choose(&Pair::default()), Some(Color::Blue));
    }

    #[test]
    fn two_changes_in_a_row_come_back_to_the_same_service() {
        let mut called: BTreeSet<String> = ["s".to_owned()].into();
        for expected in [Color::Green, Color::Blue, Color::Green] {
            let next = Color::choose(&observe("s", "s-green", &called, |_| false));
            assert_eq!(next, Some(expected));
            called = [if expected == Color::Green { "s-green" } else { "s" }.to_owned()].into();
            let settled = Color::choose(&observe("s", "s-green", &called, |color| color == expected));
            assert_eq!(settled, Some(expected));
        }
    }
}
