//! Applies a deployment configuration by the rules of OLM.

use serde_json::{Map, Value};
use windlass_object::{json, object};

use super::config::DeploymentConfig;

impl DeploymentConfig {
    /// Changes a Deployment. Init containers stay unchanged, as in OLM.
    pub fn apply(&self, deployment: &mut Value) {
        let pod_spec = json::fields(deployment, &["spec", "template", "spec"]);
        for container in json::list(pod_spec, "containers") {
            self.apply_to_container(json::fields(container, &[]));
        }
        replace_by_name(pod_spec, "volumes", &self.volumes);
        add_missing(pod_spec, "tolerations", &self.tolerations);
        if let Some(node_selector) = &self.node_selector {
            pod_spec.insert("nodeSelector".into(), node_selector.clone().into());
        }
        self.apply_affinity(pod_spec);
        if !self.annotations.is_empty() {
            for path in [
                &["metadata", "annotations"][..],
                &["spec", "template", "metadata", "annotations"],
            ] {
                let annotations = json::fields(deployment, path);
                for (name, value) in &self.annotations {
                    annotations.entry(name).or_insert_with(|| value.clone());
                }
            }
        }
    }

    /// Sets the configured replicas of a Deployment that serves webhooks.
    pub(in crate::render) fn scale(&self, deployment: &mut Value) {
        if let Some(replicas) = self.replicas {
            json::fields(deployment, &["spec"]).insert("replicas".into(), replicas.into());
        }
    }

    fn apply_to_container(&self, container: &mut Map<String, Value>) {
        replace_by_name(container, "env", &self.env);
        add_missing(container, "envFrom", &self.env_from);
        replace_by_name(container, "volumeMounts", &self.volume_mounts);
        if let Some(resources) = &self.resources {
            container.insert("resources".into(), resources.clone());
        }
    }

    fn apply_affinity(&self, pod_spec: &mut Map<String, Value>) {
        let Some(desired) = &self.affinity else {
            return;
        };
        let mut affinity = match pod_spec.shift_remove("affinity") {
            Some(Value::Object(affinity)) if !desired.is_empty() => affinity,
            _ => Map::new(),
        };
        for (name, part) in desired {
            if part.as_object().is_some_and(Map::is_empty) {
                affinity.shift_remove(name);
            } else {
                affinity.insert(name.clone(), part.clone());
            }
        }
        affinity.retain(|_, part| !part.as_object().is_some_and(Map::is_empty));
        if !affinity.is_empty() {
            pod_spec.insert("affinity".into(), affinity.into());
        }
    }
}

/// Replaces items of the same name by those in `desired`, and appends the rest.
fn replace_by_name(fields: &mut Map<String, Value>, list: &str, desired: &[Value]) {
    if desired.is_empty() {
        return;
    }
    let items = json::list(fields, list);
    for item in desired {
        let name = object::text(item, "/name");
        match items
            .iter_mut()
            .find(|known| object::text(known, "/name") == name)
        {
            Some(known) => *known = item.clone(),
            None => items.push(item.clone()),
        }
    }
}

/// Appends the items of `desired` that are missing.
fn add_missing(fields: &mut Map<String, Value>, list: &str, desired: &[Value]) {
    if desired.is_empty() {
        return;
    }
    let items = json::list(fields, list);
    for item in desired {
        if !items.contains(item) {
            items.push(item.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::{prelude::*, sample::subsequence};
    use serde_json::json;

    use super::*;

    fn applied(config: Value, pod_spec: Value) -> Value {
        let config = DeploymentConfig::from_value("config", &config).unwrap();
        let mut deployment = json!({"spec": {"template": {"spec": pod_spec}}});
        config.apply(&mut deployment);
        deployment["spec"]["template"]["spec"].take()
    }

    #[test]
    fn variables_of_the_same_name_are_replaced_in_every_container() {
        assert_eq!(
            applied(
                json!({
                    "env": [{"name": "A", "value": "new"}, {"name": "C", "value": ""}],
                    "envFrom": [{"configMapRef": {"name": "m"}}, {"secretRef": {"name": "s"}}],
                    "resources": {"limits": {"cpu": "1"}},
                }),
                json!({
                    "initContainers": [{"name": "i"}],
                    "containers": [
                        {"name": "a", "env": [{"name": "A", "valueFrom": {}}, {"name": "B"}], "resources": {"requests": {}}},
                        {"name": "b", "envFrom": [{"secretRef": {"name": "s"}}]},
                    ],
                }),
            ),
            json!({
                "initContainers": [{"name": "i"}],
                "containers": [
                    {
                        "name": "a",
                        "env": [{"name": "A", "value": "new"}, {"name": "B"}, {"name": "C", "value": ""}],
                        "resources": {"limits": {"cpu": "1"}},
                        "envFrom": [{"configMapRef": {"name": "m"}}, {"secretRef": {"name": "s"}}],
                    },
                    {
                        "name": "b",
                        "envFrom": [{"secretRef": {"name": "s"}}, {"configMapRef": {"name": "m"}}],
                        "env": [{"name": "A", "value": "new"}, {"name": "C", "value": ""}],
                        "resources": {"limits": {"cpu": "1"}},
                    },
                ],
            })
        );
    }

    #[test]
    fn volumes_and_mounts_of_the_same_name_are_replaced() {
        assert_eq!(
            applied(
                json!({
                    "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "emptyDir": {}}],
                    "volumeMounts": [{"name": "v", "mountPath": "/new"}],
                    "tolerations": [{"key": "k", "operator": "Exists"}],
                    "nodeSelector": {},
                }),
                json!({
                    "volumes": [{"name": "v", "secret": {"secretName": "s"}}],
                    "containers": [{"name": "a", "volumeMounts": [{"name": "v", "mountPath": "/old", "readOnly": true}]}],
                    "tolerations": [{"operator": "Exists", "key": "k"}],
                    "nodeSelector": {"zone": "a"},
                }),
            ),
            json!({
                "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "emptyDir": {}}],
                "containers": [{"name": "a", "volumeMounts": [{"name": "v", "mountPath": "/new"}]}],
                "tolerations": [{"key": "k", "operator": "Exists"}],
                "nodeSelector": {},
            })
        );
    }

    #[test]
    fn replicas_stay_those_of_the_bundle_by_default() {
        for (replicas, expected) in [(None, 1), (Some(3), 3)] {
            let mut deployment = json!({"spec": {"replicas": 1}});
            let config = DeploymentConfig {
                replicas,
                ..DeploymentConfig::default()
            };
            config.scale(&mut deployment);
            assert_eq!(deployment["spec"]["replicas"], expected);
        }
    }

    #[test]
    fn affinity_is_replaced_part_by_part() {
        let bundle = json!({"nodeAffinity": {"a": 1}, "podAffinity": {"b": 2}});
        for (desired, expected) in [
            (json!({}), json!({"containers": [], "affinity": bundle})),
            (
                json!({"affinity": null}),
                json!({"containers": [], "affinity": bundle}),
            ),
            (json!({"affinity": {}}), json!({"containers": []})),
            (
                json!({"affinity": {"nodeAffinity": {}, "podAffinity": {}}}),
                json!({"containers": []}),
            ),
            (
                json!({"affinity": {"nodeAffinity": {}, "podAntiAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": []
                }}}),
                json!({"containers": [], "affinity": {"podAffinity": {"b": 2}, "podAntiAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": []
                }}}),
            ),
        ] {
            assert_eq!(
                applied(desired, json!({"containers": [], "affinity": bundle})),
                expected
            );
        }
    }

    #[test]
    fn annotations_of_the_bundle_take_precedence() {
        let config =
            DeploymentConfig::from_value("config", &json!({"annotations": {"a": "new", "b": "new"}}))
                .unwrap();
        let mut deployment = json!({
            "metadata": {"annotations": {"a": "old"}},
            "spec": {"template": {"metadata": {"annotations": {"b": "old"}}}},
        });
        config.apply(&mut deployment);
        assert_eq!(
            deployment["metadata"]["annotations"],
            json!({"a": "old", "b": "new"})
        );
        assert_eq!(
            deployment["spec"]["template"]["metadata"]["annotations"],
            json!({"b": "old", "a": "new"})
        );
    }

    fn config() -> impl Strategy<Value = Value> {
        let keys = vec![
            (
                "env",
                json!([{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]),
            ),
            ("envFrom", json!([{"secretRef": {"name": "s"}}])),
            ("volumes", json!([{"name": "v", "emptyDir": {}}])),
            (
                "volumeMounts",
                json!([{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/b"}]),
            ),
            (
                "tolerations",
                json!([{"operator": "Exists"}, {"operator": "Exists"}]),
            ),
            ("resources", json!({})),
            ("nodeSelector", json!({"a": "b"})),
            (
                "affinity",
                json!({"nodeAffinity": {}, "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}),
            ),
            ("annotations", json!({"a": "b"})),
        ];
        let length = keys.len();
        subsequence(keys, 0..=length).prop_map(|keys| {
            keys.into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect::<Map<_, _>>()
                .into()
        })
    }

    proptest! {
        #[test]
        fn applying_is_idempotent(
            config in config(),
            env in subsequence(vec!["A", "B"], 0..=2),
            mounts in subsequence(vec!["v", "v", "w"], 0..=3),
            affinity in subsequence(vec!["nodeAffinity", "podAffinity"], 0..=2),
        ) {
            let names = |names: Vec<&str>| -> Vec<_> { names.into_iter().map(|name| json!({"name": name})).collect() };
            let affinity: Map<_, _> = affinity.into_iter().map(|name| (name.to_owned(), json!({"x": 1}))).collect();
            let config = DeploymentConfig::from_value("config", &config).unwrap();
            let mut once = json!({"spec": {"template": {"spec": {
                "containers": [{"env": names(env), "volumeMounts": names(mounts)}], "affinity": affinity
            }}}});
            config.apply(&mut once);
            let mut twice = once.clone();
            config.apply(&mut twice);
            prop_assert_eq!(once, twice);
        }
    }
}
