//! Tries stored objects against the new schema. Each object, as the API server serves it, is pruned,
//! defaulted and validated in the order in which the API server does so on a write.

use std::{collections::BTreeMap, fmt};

use serde_json::Value;
use structural_schema::{Structural, Validation};
use windlass_object::{object, text::shortened};

use super::{
    Finding, Policy, UpgradeRule,
    finding::Findings,
    schema::canonical_schema,
    schema_field::field_of,
    versions::{schema, versions},
};
use crate::is_served;

/// Tries whether a new CustomResourceDefinition makes stored objects of one version invalid or removes their
/// fields, one object at a time.
pub struct Trial {
    version: String,
    old: Side,
    new: Side,
    tried: u64,
    harms: BTreeMap<Place, Harmed>,
}

/// The result of trying the objects of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrialResult {
    version: String,
    tried: u64,
    extent: Extent,
    harms: BTreeMap<Place, Harmed>,
}

/// Which objects of a version were tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All objects.
    All,
    /// The first ones in the order of the API server.
    Sample {
        /// The total number, if the API server reports it.
        of: Option<u64>,
    },
}

/// A schema, and whether its CRD prunes unknown fields.
struct Side {
    schema: Value,
    structural: Structural,
    prunes: bool,
}

/// A kind of harm at a field.
type Place = (Harm, String);

/// How an object is harmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Harm {
    /// It becomes invalid.
    Invalid,
    /// It loses a field.
    Loss,
    /// Unknown, because only the API server can evaluate the rule.
    Undecided,
}

/// The objects with one harm at one field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Harmed {
    count: u64,
    /// The first harmed objects, each with its problem.
    first: Vec<String>,
}

/// How many objects a message names.
const MAX_NAMED: usize = 3;

/// Size limit of the text about one object, in bytes.
const MAX_TEXT_BYTES: usize = 256;

impl Trial {
    /// Creates a trial for the objects of `version`, which both CRDs have; `old` is the CRD in the cluster.
    pub fn new(version: &str, old: &Value, new: &Value) -> Self {
        Self {
            version: version.to_owned(),
            old: Side::new(old, version),
            new: Side::new(new, version),
            tried: 0,
            harms: BTreeMap::new(),
        }
    }

    /// Returns the version of the objects.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns how many objects were tried.
    pub fn object_count(&self) -> u64 {
        self.tried
    }

    /// Tries an object as the API server serves it in this version. Existing problems are ignored.
    pub fn add(&mut self, object: &Value) {
        self.tried += 1;
        let (becomes, lost) = self.new.after_write(object);
        let verdict = self.new.structural.validate_offline(&becomes);
        if lost.is_empty() && verdict == Validation::default() {
            return;
        }
        let (was, lost_before) = self.old.after_write(object);
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
                // More users can read the status than the object, so it must not contain values.
                note(harm, &self.new.schema, &error.field, error.without_value());
            }
        }
        for (place, words) in harms {
            let harmed = self.harms.entry(place).or_default();
            harmed.count += 1;
            if harmed.first.len() < MAX_NAMED {
                let words = shortened(words, MAX_TEXT_BYTES);
                harmed.first.push(format!("{} ({words})", name(object)));
            }
        }
    }

    /// Returns the result once all objects were tried.
    pub fn finish(self, extent: Extent) -> TrialResult {
        TrialResult {
            version: self.version,
            tried: self.tried,
            extent,
            harms: self.harms,
        }
    }
}

impl TrialResult {
    /// Returns the findings about the CustomResourceDefinition `crd`, one per field. If not all objects were
    /// tried, the messages say how many.
    pub fn findings(&self, crd: &str, policy: &Policy) -> Vec<Finding> {
        let version = Some(self.version.as_str());
        let mut findings = Findings::new(crd, policy);
        for ((harm, field), harmed) in &self.harms {
            let message = self.message(*harm, harmed);
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

    fn message(&self, harm: Harm, harmed: &Harmed) -> String {
        let Harmed { count, first } = harmed;
        let what = match harm {
            Harm::Invalid => "would become invalid",
            Harm::Loss => "would lose the value of this field",
            Harm::Undecided => "are subject to a rule that only the API server can evaluate",
        };
        let mut named = first.join(", ");
        let more = count.saturating_sub(MAX_NAMED as u64);
        if more > 0 {
            named += &format!(", and {more} more");
        }
        format!("{count} of {self} {what}: {named}")
    }
}

impl fmt::Display for TrialResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tried = self.tried;
        match self.extent {
            Extent::All => write!(f, "{tried} objects"),
            Extent::Sample { of: Some(all) } => write!(f, "the first {tried} of {all} objects"),
            Extent::Sample { of: None } => write!(f, "the first {tried} objects"),
        }
    }
}

impl Side {
    fn new(crd: &Value, version: &str) -> Self {
        let schema = crate::version(crd, version).map_or(&Value::Null, schema);
        Self {
            schema: schema.clone(),
            structural: Structural::new(schema),
            prunes: prunes(crd),
        }
    }

    /// Returns the object after a write, and the paths of the fields that it lost.
    fn after_write(&self, object: &Value) -> (Value, Vec<String>) {
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

/// Returns the versions of `old` (in the cluster) whose objects must be tried: they are served, and `new`
/// changes their schema.
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
