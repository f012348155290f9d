//! Reading a deployment configuration.

use k8s_openapi::api::core::v1::{
    EnvFromSource, EnvVar, NodeAffinity, PodAffinity, PodAntiAffinity, ResourceRequirements, Toleration,
    Volume, VolumeMount,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{DeploymentConfig, Serving};
use crate::domain::{bundle::Problem, render::json};

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

/// Keys of `windlass`.
const SERVING_KEYS: [&str; 3] = ["readinessProbe", "preStop", "rollingUpdate"];

/// Reads one configuration, and collects what is wrong with it.
struct Reader<'a> {
    file: &'a str,
    problems: Vec<Problem>,
}

// === impl DeploymentConfig ===

impl DeploymentConfig {
    /// Reads a configuration from YAML or JSON. An empty text changes nothing.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it, as problems of `file`.
    pub fn parse(file: &str, text: &str) -> Result<Self, Vec<Problem>> {
        match serde_saphyr::from_str(text) {
            Ok(value) => Self::from_value(file, &value),
            Err(error) => {
                let mut reader = Reader::new(file);
                reader.report("$", format!("cannot read YAML: {error}"));
                Err(reader.problems)
            }
        }
    }

    /// Reads a configuration; null changes nothing.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it, as problems of `file`.
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

// === impl Reader ===

impl<'a> Reader<'a> {
    fn new(file: &'a str) -> Self {
        Self {
            file,
            problems: Vec::new(),
        }
    }

    fn report(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.problems.push(Problem {
            file: self.file.to_owned(),
            path: path.into(),
            rule: RULE,
            message: message.into(),
        });
    }

    fn config(&mut self, value: &Value) -> DeploymentConfig {
        let fields = self.object("$", Some(value)).unwrap_or_default();
        self.refuse_unknown("$", &fields, &KEYS);
        DeploymentConfig {
            env: self.list::<EnvVar>(&fields, "env", &["name"]),
            env_from: self.list::<EnvFromSource>(&fields, "envFrom", &[]),
            volumes: self.list::<Volume>(&fields, "volumes", &["name"]),
            volume_mounts: self.list::<VolumeMount>(&fields, "volumeMounts", &["name", "mountPath"]),
            tolerations: self.list::<Toleration>(&fields, "tolerations", &[]),
            resources: self.typed::<ResourceRequirements>("$.resources", fields.get("resources")),
            node_selector: self.strings("$.nodeSelector", fields.get("nodeSelector")),
            affinity: self.affinity(fields.get("affinity")),
            annotations: self
                .strings("$.annotations", fields.get("annotations"))
                .unwrap_or_default(),
            serving: self.serving(fields.get("windlass")),
        }
    }

    fn affinity(&mut self, value: Option<&Value>) -> Option<Map<String, Value>> {
        let fields = self.object("$.affinity", value)?;
        self.refuse_unknown(
            "$.affinity",
            &fields,
            &["nodeAffinity", "podAffinity", "podAntiAffinity"],
        );
        self.typed::<NodeAffinity>("$.affinity.nodeAffinity", fields.get("nodeAffinity"));
        self.typed::<PodAffinity>("$.affinity.podAffinity", fields.get("podAffinity"));
        self.typed::<PodAntiAffinity>("$.affinity.podAntiAffinity", fields.get("podAntiAffinity"));
        Some(fields)
    }

    fn serving(&mut self, value: Option<&Value>) -> Serving {
        let fields = self.object("$.windlass", value).unwrap_or_default();
        self.refuse_unknown("$.windlass", &fields, &SERVING_KEYS);
        let [readiness_probe, pre_stop, rolling_update] = SERVING_KEYS.map(|name| match fields.get(name) {
            None => true,
            Some(Value::Bool(wanted)) => *wanted,
            Some(other) => {
                self.report(
                    format!("$.windlass.{name}"),
                    format!("must be true or false, not {other}"),
                );
                true
            }
        });
        Serving {
            readiness_probe,
            pre_stop,
            rolling_update,
        }
    }

    fn object(&mut self, path: &str, value: Option<&Value>) -> Option<Map<String, Value>> {
        match value? {
            Value::Object(fields) => Some(fields.clone()),
            _ => {
                self.report(path, "must be an object");
                None
            }
        }
    }

    fn refuse_unknown(&mut self, path: &str, fields: &Map<String, Value>, known: &[&str]) {
        for name in fields.keys().filter(|name| !known.contains(&name.as_str())) {
            let message = format!("unknown field \"{name}\"; known are {}", known.join(", "));
            self.report(format!("{path}.{name}"), message);
        }
    }

    /// A list whose items have the shape of `T` and the fields `required`.
    fn list<T: DeserializeOwned>(
        &mut self,
        fields: &Map<String, Value>,
        name: &str,
        required: &[&str],
    ) -> Vec<Value> {
        let items = match fields.get(name) {
            None => return Vec::new(),
            Some(Value::Array(items)) => items,
            Some(_) => {
                self.report(format!("$.{name}"), "must be a list");
                return Vec::new();
            }
        };
        for (index, item) in items.iter().enumerate() {
            let path = format!("$.{name}[{index}]");
            let Some(item) = self.typed::<T>(&path, Some(item)) else {
                continue;
            };
            for field in required {
                if item.get(*field).and_then(Value::as_str).is_none_or(str::is_empty) {
                    self.report(format!("{path}.{field}"), "must not be empty");
                }
            }
        }
        items.clone()
    }

    /// A value, if it has the shape of `T`.
    fn typed<T: DeserializeOwned>(&mut self, path: &str, value: Option<&Value>) -> Option<Value> {
        let value = value?;
        if let Err(error) = T::deserialize(value) {
            self.report(path, error.to_string());
            return None;
        }
        Some(value.clone())
    }

    fn strings(&mut self, path: &str, value: Option<&Value>) -> Option<Map<String, Value>> {
        let fields = self.object(path, value)?;
        for (name, value) in fields.iter().filter(|(_, value)| !value.is_string()) {
            self.report(format!("{path}.{name}"), format!("must be a string, not {value}"));
        }
        Some(fields)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_empty_configuration_changes_nothing() {
        for text in ["", "# nothing\n", "{}", "env: null\naffinity:\n"] {
            assert_eq!(
                DeploymentConfig::parse("f", text),
                Ok(DeploymentConfig::default()),
                "{text:?}"
            );
        }
    }

    #[test]
    fn each_part_for_serving_can_be_turned_off() {
        let config = DeploymentConfig::parse("f", "windlass: {preStop: false}").unwrap();
        assert_eq!(
            config.serving,
            Serving {
                readiness_probe: true,
                pre_stop: false,
                rolling_update: true
            }
        );
    }

    #[test]
    fn every_problem_is_named_with_its_path() {
        let text = "
env: [{name: A, value: 1}, {value: b}]
volumes: {}
volumeMounts: [{name: v}]
nodeSelector: {zone: 3}
affinity: {zoneAffinity: {}, podAffinity: []}
windlass: {preStop: maybe, canary: true}
selector: {}
";
        let problems = DeploymentConfig::parse("config.yaml", text).unwrap_err();
        let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "config.yaml: $.selector: unknown field \"selector\"; known are env, envFrom, volumes, volumeMounts, tolerations, resources, nodeSelector, affinity, annotations, windlass",
                "config.yaml: $.env[0]: invalid type: integer `1`, expected a string",
                "config.yaml: $.env[1].name: must not be empty",
                "config.yaml: $.volumes: must be a list",
                "config.yaml: $.volumeMounts[0].mountPath: must not be empty",
                "config.yaml: $.nodeSelector.zone: must be a string, not 3",
                "config.yaml: $.affinity.zoneAffinity: unknown field \"zoneAffinity\"; known are nodeAffinity, podAffinity, podAntiAffinity",
                "config.yaml: $.affinity.podAffinity: invalid type: sequence, expected PodAffinity",
                "config.yaml: $.windlass.canary: unknown field \"canary\"; known are readinessProbe, preStop, rollingUpdate",
                "config.yaml: $.windlass.preStop: must be true or false, not \"maybe\"",
            ]
        );
    }

    #[test]
    fn what_is_no_yaml_is_one_problem() {
        for text in ["env: [", "- a\n- b", "text"] {
            assert_eq!(DeploymentConfig::parse("f", text).unwrap_err().len(), 1, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "((env|volumes|affinity|windlass|a)?[:\\[\\]{}, \\n&*!|>-]){0,12}") {
            if let Err(problems) = DeploymentConfig::parse("f", &text) {
                prop_assert!(!problems.is_empty());
            }
        }
    }
}
