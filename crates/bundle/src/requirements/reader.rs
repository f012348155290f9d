//! Reads the requirements of a bundle.

use serde_json::Value;
use windlass_object::{JsonPath, Problem, object};

use super::{
    constraint::{Dependency, RequiredApi, Requirement},
    dependency::{self, Wrong},
};
use crate::parse::{Bundle, Manifest, rule};

/// The annotation that contains the properties of a ClusterServiceVersion, as a JSON list.
const OLM_PROPERTIES: &str = "olm.properties";

/// What a bundle requires of the cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Requirements {
    /// The minimum version of Kubernetes.
    pub min_kube_version: Option<String>,
    /// All other requirements.
    pub constraints: Vec<Dependency>,
    /// The kinds and served versions that the bundle itself contains, which the cluster does not need to
    /// serve.
    pub provided: Vec<RequiredApi>,
}

impl Requirements {
    /// Reads the requirements of `bundle`, and the problems in them.
    pub fn read(bundle: &Bundle) -> (Self, Vec<Problem>) {
        let mut reader = Reader {
            constraints: Vec::new(),
            problems: Vec::new(),
        };
        reader.read_csv(&bundle.csv);
        reader.read_properties(&bundle.csv);
        if let Some(file) = &bundle.dependencies {
            reader.read_dependencies(file);
        }
        let min_kube_version = object::text(&bundle.csv.object, "/spec/minKubeVersion");
        let requirements = Self {
            min_kube_version: min_kube_version
                .filter(|version| !version.is_empty())
                .map(str::to_owned),
            constraints: reader.constraints,
            provided: bundle.crds.iter().flat_map(defined_apis).collect(),
        };
        (requirements, reader.problems)
    }

    /// Reports whether the bundle requires nothing.
    pub fn is_empty(&self) -> bool {
        self.min_kube_version.is_none() && self.constraints.is_empty()
    }

    /// The required kinds that the bundle does not contain.
    pub fn apis(&self) -> Vec<&RequiredApi> {
        let mut apis = Vec::new();
        for constraint in &self.constraints {
            constraint.requirement.each_api(&mut |api| {
                if !apis.contains(&api) && !self.provided.contains(api) {
                    apis.push(api);
                }
            });
        }
        apis
    }
}

/// The kinds that a CustomResourceDefinition serves.
fn defined_apis(manifest: &Manifest) -> Vec<RequiredApi> {
    let text = |pointer| object::text(&manifest.object, pointer).unwrap_or_default();
    object::items(&manifest.object, "/spec/versions")
        .iter()
        .filter(|version| version.get("served") == Some(&Value::Bool(true)))
        .map(|version| RequiredApi {
            group: text("/spec/group").to_owned(),
            version: object::text(version, "/name").unwrap_or_default().to_owned(),
            kind: text("/spec/names/kind").to_owned(),
        })
        .collect()
}

/// Reads every place in which a bundle can declare requirements.
struct Reader {
    constraints: Vec<Dependency>,
    problems: Vec<Problem>,
}

impl Reader {
    fn add(&mut self, source: &str, message: Option<String>, requirement: Requirement) {
        self.constraints.push(Dependency {
            source: source.to_owned(),
            failure_message: message,
            requirement,
        });
    }

    fn refuse(&mut self, manifest: &Manifest, path: &JsonPath, (inner, message): Wrong) {
        let problem = manifest.problem(&path.join(&inner), rule::DEPENDENCY, message);
        self.problems.push(problem);
    }

    /// Reads `customresourcedefinitions.required`, `apiservicedefinitions.required` and `nativeAPIs`.
    fn read_csv(&mut self, csv: &Manifest) {
        for field in [
            "customresourcedefinitions.required",
            "apiservicedefinitions.required",
            "nativeAPIs",
        ] {
            let pointer = format!("/spec/{}", field.replace('.', "/"));
            let list = JsonPath::from_fields("spec").join(&JsonPath::from_fields(field));
            for (index, entry) in object::items(&csv.object, &pointer).iter().enumerate() {
                let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
                // A CustomResourceDefinition is named PLURAL.GROUP.
                let group = if field.starts_with("custom") {
                    text("name").split_once('.').map_or("", |(_, group)| group)
                } else {
                    text("group")
                };
                let api = RequiredApi {
                    group: group.to_owned(),
                    version: text("version").to_owned(),
                    kind: text("kind").to_owned(),
                };
                if api.version.is_empty() || api.kind.is_empty() {
                    let message = "must have a kind and a version".to_owned();
                    self.refuse(csv, &list.item(index), (JsonPath::root(), message));
                } else {
                    self.add(&format!("spec.{field}"), None, Requirement::Api(api));
                }
            }
        }
    }

    fn read_properties(&mut self, csv: &Manifest) {
        let text = object::annotation(&csv.object, OLM_PROPERTIES).unwrap_or_default();
        let path = JsonPath::from_fields("metadata.annotations").field(OLM_PROPERTIES);
        // OLM ignores a value that is not a list.
        let properties: Vec<Value> = serde_json::from_str(text).unwrap_or_default();
        for (index, property) in properties.iter().enumerate() {
            match dependency::property(property) {
                Ok(Some(requirement)) => {
                    let message = dependency::failure_message(&property["value"]);
                    self.add(OLM_PROPERTIES, message, requirement);
                }
                Ok(None) => {}
                Err(wrong) => self.refuse(csv, &path.item(index), wrong),
            }
        }
    }

    fn read_dependencies(&mut self, file: &Manifest) {
        let list = JsonPath::from_fields("dependencies");
        let entries = object::items(&file.object, "/dependencies");
        for (index, entry) in entries.iter().enumerate() {
            match dependency::entry(entry) {
                Ok(Some(requirement)) => {
                    let message = dependency::failure_message(&entry["value"]);
                    self.add(&file.file, message, requirement);
                }
                Ok(None) => {}
                Err(wrong) => self.refuse(file, &list.item(index), wrong),
            }
        }
    }
}
