//! Parses a deployment configuration.

use k8s_openapi::api::core::v1::{
    EnvFromSource, EnvVar, NodeAffinity, PodAffinity, PodAntiAffinity, ResourceRequirements, Toleration,
    Volume, VolumeMount,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use windlass_object::{JsonPath, Problem, json, yaml};

use super::config::{DeploymentConfig, ServingDefaults};

const RULE: &str = "deployment-config";

/// Keys of a configuration, in the order in which OLM documents them.
const KEYS: [&str; 10] = [
    "env",
    "envFrom",
    "volumes",
    "volumeMounts",
    "tolerations",
    "resources",
    "nodeSelector",
    "affinity",
    "annotations",
    "windlass",
];

const AFFINITY_KEYS: [&str; 3] = ["nodeAffinity", "podAffinity", "podAntiAffinity"];

/// Keys of `windlass`: booleans, except the last, which is a number.
const SERVING_KEYS: [&str; 5] = ["readinessProbe", "preStop", "rollingUpdate", "canary", REPLICAS];
const REPLICAS: &str = "replicas";

type Field<'a> = (JsonPath, Option<&'a Value>);

/// Parses one configuration and collects its problems.
struct Reader<'a> {
    file: &'a str,
    problems: Vec<Problem>,
}

impl DeploymentConfig {
    /// Reads the only document of a YAML or JSON file; null if the file is empty.
    ///
    /// # Errors
    ///
    /// A syntax error, or several documents.
    pub fn document(file: &str, bytes: &[u8]) -> Result<Value, Vec<Problem>> {
        let message = match yaml::documents(bytes).as_deref() {
            Ok([]) => return Ok(Value::Null),
            Ok([value]) => return Ok(value.clone()),
            Ok(several) => format!("must contain exactly one document, not {}", several.len()),
            Err(message) => message.clone(),
        };
        let mut reader = Reader::new(file);
        reader.report(&JsonPath::root(), message);
        Err(reader.problems)
    }

    /// Parses a configuration; null changes nothing.
    ///
    /// # Errors
    ///
    /// Every problem in it, as problems of `file`.
    pub fn from_value(file: &str, value: &Value) -> Result<Self, Vec<Problem>> {
        let mut value = value.clone();
        json::drop_nulls(&mut value);
        let mut reader = Reader::new(file);
        let config = match &value {
            Value::Null => Self::default(),
            value => reader.config(value),
        };
        if reader.problems.is_empty() {
            Ok(config)
        } else {
            Err(reader.problems)
        }
    }
}

impl<'a> Reader<'a> {
    fn new(file: &'a str) -> Self {
        Self {
            file,
            problems: Vec::new(),
        }
    }

    fn report(&mut self, path: &JsonPath, message: impl Into<String>) {
        self.problems.push(Problem {
            file: self.file.to_owned(),
            path: format!("${path}"),
            rule: RULE,
            message: message.into(),
        });
    }

    fn config(&mut self, value: &Value) -> DeploymentConfig {
        let root = JsonPath::root();
        let fields = self.object(&root, Some(value)).unwrap_or_default();
        self.refuse_unknown(&root, &fields, &KEYS);
        let at = |name: &str| (root.field(name), fields.get(name));
        DeploymentConfig {
            env: self.list::<EnvVar>(at("env"), &["name"]),
            env_from: self.list::<EnvFromSource>(at("envFrom"), &[]),
            volumes: self.list::<Volume>(at("volumes"), &["name"]),
            volume_mounts: self.list::<VolumeMount>(at("volumeMounts"), &["name", "mountPath"]),
            tolerations: self.list::<Toleration>(at("tolerations"), &[]),
            resources: self.typed::<ResourceRequirements>(at("resources")),
            node_selector: self.strings(at("nodeSelector")),
            affinity: self.affinity(at("affinity")),
            annotations: self.strings(at("annotations")).unwrap_or_default(),
            replicas: self.replicas(at("windlass")),
            serving: self.serving(at("windlass")),
        }
    }

    fn affinity(&mut self, (path, value): Field<'_>) -> Option<Map<String, Value>> {
        let fields = self.object(&path, value)?;
        self.refuse_unknown(&path, &fields, &AFFINITY_KEYS);
        let at = |name: &str| (path.field(name), fields.get(name));
        self.typed::<NodeAffinity>(at("nodeAffinity"));
        self.typed::<PodAffinity>(at("podAffinity"));
        self.typed::<PodAntiAffinity>(at("podAntiAffinity"));
        Some(fields)
    }

    fn serving(&mut self, (path, value): Field<'_>) -> ServingDefaults {
        let fields = self.object(&path, value).unwrap_or_default();
        self.refuse_unknown(&path, &fields, &SERVING_KEYS);
        let [switches @ .., _] = SERVING_KEYS;
        let [readiness_probe, pre_stop, rolling_update, canary] =
            switches.map(|name| match fields.get(name) {
                None => true,
                Some(Value::Bool(desired)) => *desired,
                Some(other) => {
                    self.report(&path.field(name), format!("must be true or false, not {other}"));
                    true
                }
            });
        ServingDefaults {
            readiness_probe,
            pre_stop,
            rolling_update,
            canary,
        }
    }

    fn replicas(&mut self, (path, value): Field<'_>) -> Option<u32> {
        let value = value?.get(REPLICAS)?;
        self.count(&path.field(REPLICAS), value)
    }

    /// Parses a whole number from 1 to the maximum of the API server.
    fn count(&mut self, path: &JsonPath, value: &Value) -> Option<u32> {
        let count = value.as_i64().and_then(|count| i32::try_from(count).ok());
        let count = count.filter(|count| *count > 0).map(i32::unsigned_abs);
        if count.is_none() {
            self.report(path, format!("must be a whole number of at least 1, not {value}"));
        }
        count
    }

    fn object(&mut self, path: &JsonPath, value: Option<&Value>) -> Option<Map<String, Value>> {
        let Value::Object(fields) = value? else {
            self.report(path, "must be an object");
            return None;
        };
        Some(fields.clone())
    }

    fn refuse_unknown(&mut self, path: &JsonPath, fields: &Map<String, Value>, known: &[&str]) {
        for name in fields.keys().filter(|name| !known.contains(&name.as_str())) {
            let message = format!("unknown field \"{name}\"; known fields: {}", known.join(", "));
            self.report(&path.field(name), message);
        }
    }

    /// Parses a list whose items decode as `T` and have the fields `required`.
    fn list<T: DeserializeOwned>(&mut self, (path, value): Field<'_>, required: &[&str]) -> Vec<Value> {
        let items = match value {
            None => return Vec::new(),
            Some(Value::Array(items)) => items,
            Some(_) => {
                self.report(&path, "must be a list");
                return Vec::new();
            }
        };
        for (index, item) in items.iter().enumerate() {
            let path = path.item(index);
            let Some(item) = self.typed::<T>((path.clone(), Some(item))) else {
                continue;
            };
            for field in required {
                if item.get(*field).and_then(Value::as_str).is_none_or(str::is_empty) {
                    self.report(&path.field(field), "must not be empty");
                }
            }
        }
        items.clone()
    }

    /// Returns the value if it decodes as `T`.
    fn typed<T: DeserializeOwned>(&mut self, (path, value): Field<'_>) -> Option<Value> {
        let value = value?;
        if let Err(error) = T::deserialize(value) {
            self.report(&path, error.to_string());
            return None;
        }
        Some(value.clone())
    }

    fn strings(&mut self, (path, value): Field<'_>) -> Option<Map<String, Value>> {
        let fields = self.object(&path, value)?;
        for (name, value) in fields.iter().filter(|(_, value)| !value.is_string()) {
            self.report(&path.field(name), format!("must be a string, not {value}"));
        }
        Some(fields)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(file: &str, bytes: &[u8]) -> Result<DeploymentConfig, Vec<Problem>> {
        DeploymentConfig::from_value(file, &DeploymentConfig::document(file, bytes)?)
    }

    #[test]
    fn an_empty_configuration_changes_nothing() {
        for text in ["", "# nothing\n", "{}", "env: null\naffinity:\n"] {
            assert_eq!(
                parse("f", text.as_bytes()),
                Ok(DeploymentConfig::default()),
                "{text:?}"
            );
        }
    }

    #[test]
    fn each_serving_default_can_be_turned_off() {
        let config = parse("f", b"windlass: {preStop: false}").unwrap();
        assert_eq!(
            config.serving,
            ServingDefaults {
                readiness_probe: true,
                pre_stop: false,
                rolling_update: true,
                canary: true,
            }
        );
    }

    #[test]
    fn replicas_are_a_whole_number_of_at_least_one() {
        for (text, expected) in [
            ("3", Ok(Some(3))),
            ("2147483647", Ok(Some(2_147_483_647))),
            ("null", Ok(None)),
            ("0", Err("0")),
            ("-1", Err("-1")),
            ("1.5", Err("1.5")),
            ("2147483648", Err("2147483648")),
            ("\"2\"", Err("\"2\"")),
        ] {
            let config = parse("f", format!("windlass: {{replicas: {text}}}").as_bytes());
            let replicas = config.map(|config| config.replicas);
            let expected = expected.map_err(|value| {
                format!("f: $.windlass.replicas: must be a whole number of at least 1, not {value}")
            });
            assert_eq!(
                replicas.map_err(|problems| problems[0].to_string()),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn every_problem_is_named_with_its_path() {
        let text = "
env: [{name: A, value: 1}, {value: b}]
volumes: {}
volumeMounts: [{name: v}]
nodeSelector: {zone: 3}
affinity: {zoneAffinity: {}, podAffinity: []}
windlass: {preStop: maybe, budget: true}
selector: {}
";
        let problems = parse("config.yaml", text.as_bytes()).unwrap_err();
        let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "config.yaml: $.selector: unknown field \"selector\"; known fields: env, envFrom, volumes, volumeMounts, tolerations, resources, nodeSelector, affinity, annotations, windlass",
                "config.yaml: $.env[0]: invalid type: integer `1`, expected a string",
                "config.yaml: $.env[1].name: must not be empty",
                "config.yaml: $.volumes: must be a list",
                "config.yaml: $.volumeMounts[0].mountPath: must not be empty",
                "config.yaml: $.nodeSelector.zone: must be a string, not 3",
                "config.yaml: $.affinity.zoneAffinity: unknown field \"zoneAffinity\"; known fields: nodeAffinity, podAffinity, podAntiAffinity",
                "config.yaml: $.affinity.podAffinity: invalid type: sequence, expected PodAffinity",
                "config.yaml: $.windlass.budget: unknown field \"budget\"; known fields: readinessProbe, preStop, rollingUpdate, canary, replicas",
                "config.yaml: $.windlass.preStop: must be true or false, not \"maybe\"",
            ]
        );
    }

    #[test]
    fn invalid_yaml_is_one_problem() {
        for text in [
            "env: [",
            "- a\n- b",
            "text",
            "env: []\n---\nenv: []",
            "env: []\nenv: []",
        ] {
            assert_eq!(parse("f", text.as_bytes()).unwrap_err().len(), 1, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(text in "((env|volumes|affinity|windlass|a)?[:\\[\\]{}, \\n&*!|>-]){0,12}") {
            if let Err(problems) = parse("f", text.as_bytes()) {
                prop_assert!(!problems.is_empty());
            }
        }
    }
}
