//! What becomes of stored objects: each is tried against the new schema as the API server serves it, pruned, filled with
//! defaults and validated in the order in which the API server does it when it is written.

use std::{collections::BTreeMap, fmt};

use serde_json::Value;
use structural_schema::{Structural, Validation};
use windlass_object::{object, text::shortened};

use super::{
    Finding, Policy, UpgradeRule,
    finding::Findings,
    place::field_of,
    schema::canonical_schema,
    versions::{schema, versions},
};
use crate::is_served;

/// The objects of one version of a CustomResourceDefinition, tried one after the other.
pub struct Trial {
    version: String,
    old: Side,
    new: Side,
    tried: u64,
    harms: BTreeMap<Place, Harmed>,
}

/// What trying objects has found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    version: String,
    tried: u64,
    extent: Extent,
    harms: BTreeMap<Place, Harmed>,
}

/// How many of the objects of a version were tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Each of them.
    All,
    /// The first in the order of the API server.
    Sample {
        /// How many there are, where the API server says it.
        of: Option<u64>,
    },
}

/// A schema, and whether the CRD around it wants unknown fields to be removed.
struct Side {
    schema: Value,
    structural: Structural,
    prunes: bool,
}

/// A kind of harm at a field.
type Place = (Harm, String);

/// What becomes of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Harm {
    /// It becomes invalid.
    Invalid,
    /// It loses a field.
    Loss,
    /// Only an API server can know.
    Undecided,
}

/// The objects that come to one harm at one field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Harmed {
    count: u64,
    /// The first of them, each with what is wrong.
    first: Vec<String>,
}

/// How many objects a message names.
const SHOWN: usize = 3;

/// The longest text about one object, in bytes.
const LONGEST: usize = 256;

// === impl Trial ===

impl Trial {
    /// Tries objects of `version`, which both CRDs have: `old` is as it is in the cluster.
    pub fn new(version: &str, old: &Value, new: &Value) -> Self {
        Self {
            version: version.to_owned(),
            old: Side::new(old, version),
            new: Side::new(new, version),
            tried: 0,
            harms: BTreeMap::new(),
        }
    }

    /// The version whose objects are tried.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// How many objects were tried.
    pub fn tried(&self) -> u64 {
        self.tried
    }

    /// Tries an object as the API server serves it in this version. What was wrong with it before is passed over.
    pub fn add(&mut self, object: &Value) {
        self.tried += 1;
        let (becomes, lost) = self.new.written(object);
        let verdict = self.new.structural.validate_offline(&becomes);
        if lost.is_empty() && verdict == Validation::default() {
            return;
        }
        let (was, lost_before) = self.old.written(object);
        let before = self.old.structural.validate_offline(&was);
        let mut harms: BTreeMap<Place, String> = BTreeMap::new();
        let mut note = |harm, schema: &Value, path: &str, words: String| {
            let place = (harm, field_of(schema, object, path));
            harms.entry(place).or_insert(words);
        };
        for path in lost.iter().filter(|path| !lost_before.contains(path)) {
            note(Harm::Loss, &self.old.schema, path, path.clone());
        }
        for (harm, errors, known) in [
            (Harm::Invalid, verdict.errors, before.errors),
            (Harm::Undecided, verdict.undecided, before.undecided),
        ] {
            for error in errors.iter().filter(|error| !known.contains(error)) {
                // Others may read the status than may read the object.
                note(harm, &self.new.schema, &error.field, error.without_value());
            }
        }
        for (place, words) in harms {
            let harmed = self.harms.entry(place).or_default();
            harmed.count += 1;
            if harmed.first.len() < SHOWN {
                let words = shortened(words, LONGEST);
                harmed.first.push(format!("{} ({words})", name(object)));
            }
        }
    }

    /// What was found out, when no more objects are tried.
    pub fn finish(self, extent: Extent) -> Tried {
        Tried {
            version: self.version,
            tried: self.tried,
            extent,
            harms: self.harms,
        }
    }
}

// === impl Tried ===

impl Tried {
    /// The findings about the CustomResourceDefinition `crd`, one for each field; and how many objects were tried, if
    /// those were not all.
    pub fn findings(&self, crd: &str, policy: &Policy) -> Vec<Finding> {
        let version = Some(self.version.as_str());
        let mut findings = Findings::new(crd, policy);
        for ((harm, field), harmed) in &self.harms {
            let message = self.words(*harm, harmed);
            let field = Some(field.as_str());
            match harm {
                Harm::Invalid | Harm::Loss => {
                    findings.add(version, field, UpgradeRule::StoredObjects, message);
                }
                Harm::Undecided => findings.warn(version, field, UpgradeRule::StoredObjects, message),
            }
        }
        if matches!(self.extent, Extent::Sample { .. }) {
            let message = format!("only {self} were tried");
            findings.warn(version, None, UpgradeRule::StoredObjects, message);
        }
        findings.finish()
    }

    fn words(&self, harm: Harm, harmed: &Harmed) -> String {
        let Harmed { count, first } = harmed;
        let what = match harm {
            Harm::Invalid => "would become invalid",
            Harm::Loss => "would lose the value of this field",
            Harm::Undecided => "are subject to a rule that only the API server can evaluate",
        };
        let mut named = first.join(", ");
        let more = count.saturating_sub(SHOWN as u64);
        if more > 0 {
            named += &format!(", and {more} more");
        }
        format!("{count} of {self} {what}: {named}")
    }
}

impl fmt::Display for Tried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tried = self.tried;
        match self.extent {
            Extent::All => write!(f, "{tried} objects"),
            Extent::Sample { of: Some(all) } => write!(f, "the first {tried} of {all} objects"),
            Extent::Sample { of: None } => write!(f, "the first {tried} objects"),
        }
    }
}

// === impl Side ===

impl Side {
    fn new(crd: &Value, version: &str) -> Self {
        let schema = crate::version(crd, version).map_or(&Value::Null, schema);
        Self {
            schema: schema.clone(),
            structural: Structural::new(schema),
            prunes: prunes(crd),
        }
    }

    /// What an object becomes when it is written, and the paths of the fields that it loses.
    fn written(&self, object: &Value) -> (Value, Vec<String>) {
        let mut becomes = object.clone();
        let lost = if self.prunes {
            self.structural.prune(&mut becomes)
        } else {
            Vec::new()
        };
        self.structural.default(&mut becomes);
        (becomes, lost)
    }
}

/// The versions of `old`, as it is in the cluster, whose objects are to be tried, since they are served and `new` has
/// another schema for them.
pub fn versions_to_try<'a>(old: &'a Value, new: &Value) -> Vec<&'a str> {
    let successors = versions(new);
    versions(old)
        .into_iter()
        .filter(|(name, version)| {
            is_served(version)
                && successors.get(name).is_some_and(|successor| {
                    prunes(old) != prunes(new)
                        || canonical_schema(schema(version)) != canonical_schema(schema(successor))
                })
        })
        .map(|(name, _)| name)
        .collect()
}

fn prunes(crd: &Value) -> bool {
    crd.pointer("/spec/preserveUnknownFields") != Some(&Value::Bool(true))
}

fn name(object: &Value) -> String {
    let name = object::text(object, "/metadata/name").unwrap_or_default();
    match object::text(object, "/metadata/namespace") {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name.to_owned(),
    }
}
