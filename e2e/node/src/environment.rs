//! The environment of a container, and `$(VAR)` in its arguments.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, EnvVarSource};

use crate::{
    objects::{Entries, Sources},
    volume::content::{Ingredients, Missing},
};

/// Variables by name.
pub(crate) type Variables = BTreeMap<String, String>;

/// The variables of a container, on top of those that every container has.
///
/// In order: `envFrom`, then `env`, where a value may use what came before it.
///
/// # Errors
///
/// When a Secret, a ConfigMap or a key that is not optional is missing, or a field is unknown.
pub(crate) fn variables<S: Sources>(
    container: &Container,
    given: Variables,
    ingredients: &Ingredients<'_, S>,
) -> Result<Variables, Missing> {
    let mut variables = given;
    for source in container.env_from.iter().flatten() {
        let prefix = source.prefix.as_deref().unwrap_or_default();
        let mut entries = Entries::new();
        if let Some(map) = &source.config_map_ref {
            let found = ingredients.sources.config_map(ingredients.namespace, &map.name);
            let optional = map.optional.unwrap_or_default();
            entries = found
                .or(optional.then(Entries::new))
                .ok_or_else(|| Missing::ConfigMap(map.name.clone()))?;
        }
        if let Some(secret) = &source.secret_ref {
            let found = ingredients.sources.secret(ingredients.namespace, &secret.name);
            let optional = secret.optional.unwrap_or_default();
            entries = found
                .or(optional.then(Entries::new))
                .ok_or_else(|| Missing::Secret(secret.name.clone()))?;
        }
        variables.extend(
            entries
                .iter()
                .map(|(key, value)| (format!("{prefix}{key}"), text(value))),
        );
    }
    for variable in container.env.iter().flatten() {
        let value = match (&variable.value, &variable.value_from) {
            (Some(value), _) => Some(expand(value, &variables)),
            (None, Some(source)) => from_source(source, ingredients)?,
            (None, None) => Some(String::new()),
        };
        if let Some(value) = value {
            variables.insert(variable.name.clone(), value);
        }
    }
    Ok(variables)
}

/// Replaces `$(NAME)` by the variable's value, `$$` by `$`; a name that is no variable stays as it is.
///
/// The rules are those of Kubernetes: `third_party/forked/golang/expansion/expand.go`.
pub(crate) fn expand(text: &str, variables: &Variables) -> String {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        expanded.push_str(before);
        rest = after;
        if let Some(after) = rest.strip_prefix('$') {
            expanded.push('$');
            rest = after;
        } else if let Some((name, after)) = rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
            match variables.get(name) {
                Some(value) => expanded.push_str(value),
                None => expanded.extend(["$(", name, ")"]),
            }
            rest = after;
        } else {
            expanded.push('$');
        }
    }
    expanded.push_str(rest);
    expanded
}

/// The value that a source gives; `None` when it is optional and absent.
fn from_source<S: Sources>(
    source: &EnvVarSource,
    ingredients: &Ingredients<'_, S>,
) -> Result<Option<String>, Missing> {
    if let Some(field) = &source.field_ref {
        let value = ingredients.fields.resolve(&field.field_path);
        return value
            .map(Some)
            .ok_or_else(|| Missing::Field(field.field_path.clone()));
    }
    if let Some(key) = &source.secret_key_ref {
        let entries = ingredients.sources.secret(ingredients.namespace, &key.name);
        let absent = || Missing::Secret(key.name.clone());
        return entry(
            entries,
            "secret",
            &key.name,
            &key.key,
            key.optional,
            ingredients.namespace,
            absent,
        );
    }
    if let Some(key) = &source.config_map_key_ref {
        let entries = ingredients.sources.config_map(ingredients.namespace, &key.name);
        let absent = || Missing::ConfigMap(key.name.clone());
        return entry(
            entries,
            "configmap",
            &key.name,
            &key.key,
            key.optional,
            ingredients.namespace,
            absent,
        );
    }
    // The node has no resources to speak of: a container sees itself as unlimited, as on an empty machine.
    if let Some(resource) = &source.resource_field_ref {
        return Ok(Some(
            if resource.resource.ends_with("cpu") {
                "64"
            } else {
                "274877906944"
            }
            .to_owned(),
        ));
    }
    Err(Missing::Field("fileKeyRef".to_owned()))
}

fn entry(
    entries: Option<Entries>,
    kind: &'static str,
    name: &str,
    key: &str,
    optional: Option<bool>,
    namespace: &str,
    absent: impl FnOnce() -> Missing,
) -> Result<Option<String>, Missing> {
    let optional = optional.unwrap_or_default();
    let Some(entries) = entries else {
        return if optional { Ok(None) } else { Err(absent()) };
    };
    match entries.get(key) {
        Some(value) => Ok(Some(text(value))),
        None if optional => Ok(None),
        None => Err(Missing::Key {
            kind,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            key: key.to_owned(),
        }),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use k8s_openapi::api::core::v1::Pod;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::fields::PodFields;

    struct Fixed;

    impl Sources for Fixed {
        fn secret(&self, _: &str, name: &str) -> Option<Entries> {
            (name == "s").then(|| [("key".to_owned(), b"secret".to_vec())].into())
        }

        fn config_map(&self, _: &str, name: &str) -> Option<Entries> {
            (name == "m").then(|| [("A".to_owned(), b"1".to_vec())].into())
        }
    }

    fn made(container: &Value) -> Result<Variables, Missing> {
        let pod: Pod = serde_json::from_value(json!({"metadata": {"name": "p", "namespace": "n"}})).unwrap();
        let container: Container = serde_json::from_value(container.clone()).unwrap();
        let fields = PodFields {
            pod: &pod,
            address: None,
            host: Ipv4Addr::LOCALHOST,
            node: "node",
        };
        let ingredients = Ingredients {
            fields,
            namespace: "n",
            sources: &Fixed,
            tokens: &BTreeMap::new(),
        };
        variables(
            &container,
            Variables::from([("POD_IP".to_owned(), "127.0.0.9".to_owned())]),
            &ingredients,
        )
    }

    #[test]
    fn every_source_of_a_variable_works_and_later_ones_win() {
        let made = made(&json!({"name": "c",
            "envFrom": [{"configMapRef": {"name": "m"}, "prefix": "P_"}, {"secretRef": {"name": "none", "optional": true}}],
            "env": [
                {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "s", "key": "key"}}},
                {"name": "ABSENT", "valueFrom": {"secretKeyRef": {"name": "s", "key": "no", "optional": true}}},
                {"name": "URL", "value": "https://$(POD_IP)/$(NAME)/$(LATER)/$$(NAME)"},
                {"name": "LATER", "value": "x"},
                {"name": "P_A", "value": "2"},
            ]}))
        .unwrap();
        let expected = [
            ("LATER", "x"),
            ("NAME", "p"),
            ("POD_IP", "127.0.0.9"),
            ("P_A", "2"),
            ("SECRET", "secret"),
            ("URL", "https://127.0.0.9/p/$(LATER)/$(NAME)"),
        ];
        let made: Vec<_> = made
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(made, expected);
    }

    #[test]
    fn what_is_missing_is_named() {
        for (source, message) in [
            (
                json!({"secretKeyRef": {"name": "x", "key": "k"}}),
                "secret \"x\" not found",
            ),
            (
                json!({"secretKeyRef": {"name": "s", "key": "k"}}),
                "couldn't find key k in secret n/s",
            ),
            (
                json!({"configMapKeyRef": {"name": "m", "key": "k"}}),
                "couldn't find key k in configmap n/m",
            ),
            (
                json!({"fieldRef": {"fieldPath": "spec.x"}}),
                "unsupported fieldPath: spec.x",
            ),
        ] {
            let container = json!({"name": "c", "env": [{"name": "X", "valueFrom": source}]});
            assert_eq!(made(&container).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn dollars_that_expand_nothing_stay() {
        let variables = Variables::from([("A".to_owned(), "1".to_owned())]);
        for (text, expected) in [
            ("$(A)", "1"),
            ("$A", "$A"),
            ("$(A", "$(A"),
            ("$$", "$"),
            ("$$$(A)", "$1"),
            ("$()", "$()"),
            ("$", "$"),
        ] {
            assert_eq!(expand(text, &variables), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_text_without_dollars_stays(text in "[^$]{0,20}") {
            prop_assert_eq!(expand(&text, &Variables::new()), text);
        }

        #[test]
        fn a_text_with_doubled_dollars_comes_out_as_it_was(text in "[$()a]{0,20}") {
            prop_assert_eq!(expand(&text.replace('$', "$$"), &Variables::new()), text);
        }
    }
}
