//! Validates the channels of a package, by the rules of `opm validate`.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    package::{CatalogChannel, CatalogPackage},
    problem::CatalogProblem,
    text::join_names,
};

impl CatalogPackage {
    /// Returns every problem of the package as a whole.
    pub fn check(&self) -> Vec<CatalogProblem> {
        let mut problems = Vec::new();
        let problem = |place: &str, channel: Option<&str>, message: String| CatalogProblem {
            place: place.to_owned(),
            package: Some(self.name.clone()),
            channel: channel.map(str::to_owned),
            message,
        };
        let mut in_channels = BTreeSet::new();
        for (name, channel) in &self.channels {
            in_channels.extend(channel.entries.keys());
            let place = &channel.place;
            let missing: Vec<_> = channel
                .entries
                .keys()
                .filter(|entry| !self.bundles.contains_key(*entry))
                .collect();
            if !missing.is_empty() {
                let missing = join_names(missing.into_iter().map(String::as_str));
                let message = format!("olm.bundle is missing or invalid for {missing}");
                problems.push(problem(place, Some(name), message));
            }
            problems.extend(
                channel
                    .check()
                    .into_iter()
                    .map(|message| problem(place, Some(name), message)),
            );
        }
        if self.place.is_empty() {
            let of_channels = self.channels.values().map(|channel| &channel.place);
            let mut places = of_channels.chain(self.bundles.values().map(|bundle| &bundle.place));
            let place = places.next().map_or("the catalog", String::as_str);
            problems.push(problem(place, None, "olm.package is missing".to_owned()));
        } else if !self.channels.contains_key(&self.default_channel) {
            let message = format!("the default channel {} is missing", self.default_channel);
            problems.push(problem(&self.place, None, message));
        }
        let stray = self
            .bundles
            .iter()
            .filter(|(name, _)| !in_channels.contains(name));
        for (name, bundle) in stray {
            problems.push(problem(
                &bundle.place,
                None,
                format!("the bundle {name} is in no channel"),
            ));
        }
        problems
    }
}

impl CatalogChannel {
    /// The bundles that no other in the channel replaces or skips: exactly one in a valid channel.
    pub fn heads(&self) -> Vec<&str> {
        let mut followed = BTreeSet::new();
        for (name, entry) in &self.entries {
            let before = entry.replaces.iter().chain(&entry.skips);
            followed.extend(before.filter(|before| *before != name));
        }
        self.entries
            .keys()
            .filter(|name| !followed.contains(name))
            .map(String::as_str)
            .collect()
    }

    fn check(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let cycles = self.cycles();
        for cycle in &cycles {
            problems.push(format!("bundles replace each other in a cycle: {cycle}"));
        }
        match self.heads().as_slice() {
            [] if cycles.is_empty() => {
                problems.push("every bundle is replaced or skipped by another: none is the head".to_owned());
            }
            [] => {}
            [head] => problems.extend(self.stranded(head)),
            heads => problems.push(format!(
                "there are several heads, which no other bundle replaces or skips: {}",
                join_names(heads.iter().copied())
            )),
        }
        problems
    }

    /// Returns the problem of bundles that are neither on the chain of replacements from the head nor skipped
    /// by a bundle on it.
    fn stranded(&self, head: &str) -> Option<String> {
        let mut reached = BTreeSet::new();
        let mut skipped = BTreeSet::new();
        let mut at = Some(head);
        while let Some(name) = at
            && reached.insert(name)
        {
            let entry = self.entries.get(name);
            skipped.extend(entry.iter().flat_map(|entry| &entry.skips).map(String::as_str));
            at = entry.and_then(|entry| entry.replaces.as_deref());
        }
        let names = self.entries.keys().map(String::as_str);
        let stranded: Vec<_> = names
            .filter(|name| !reached.contains(name) && !skipped.contains(name))
            .collect();
        (!stranded.is_empty()).then(|| {
            format!(
                "no chain of replacements from the head {head} leads to {}",
                join_names(stranded)
            )
        })
    }

    /// Returns each cycle of replacements once.
    fn cycles(&self) -> Vec<String> {
        // The walk that visited a bundle first.
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        let mut cycles = Vec::new();
        for (walk, start) in self.entries.keys().enumerate() {
            let mut at = Some(start.as_str());
            while let Some(name) = at {
                match seen.get(name) {
                    Some(other) if *other == walk => {
                        cycles.push(join_names(self.cycle_from(name)));
                        break;
                    }
                    Some(_) => break,
                    None => seen.insert(name, walk),
                };
                at = self.entries.get(name).and_then(|entry| entry.replaces.as_deref());
            }
        }
        cycles
    }

    fn cycle_from<'a>(&'a self, start: &'a str) -> Vec<&'a str> {
        let next = |name: &&'a str| self.entries.get(*name)?.replaces.as_deref();
        let rest = std::iter::successors(next(&start), next).take_while(|name| *name != start);
        std::iter::once(start).chain(rest).collect()
    }
}
