//! Owners of the fields of a live object, from `metadata.managedFields`.

use serde_json::{Map, Value};
use windlass_object::{names, object};

/// The default of an absent key field of list items. In Kubernetes' own kinds only the `protocol` of ports
/// can be absent.
const DEFAULT_KEY: &str = "TCP";

/// Owners of a value of a live object: the fields that installs have applied, and those that other managers
/// have written.
///
/// The sets of fields are those of kubernetes-sigs/structured-merge-diff: `f:` and the name of a field, `k:`
/// and the key of an item, `v:` and an item itself, `.` for the value that contains them.
#[derive(Clone, Debug, Default)]
pub(super) struct FieldManagers<'a> {
    ours: Option<&'a Value>,
    others: Vec<&'a Value>,
    /// Whether Windlass's entry refers to another version of the API, so its fields are unknown.
    untold: bool,
}

/// The parts of a value that the API server treats separately.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Granularity {
    /// None: the value is atomic, or its granularity is unknown.
    Whole,
    /// Each field of an object.
    Fields,
    /// Each item of a list, identified by these fields.
    Items(Vec<String>),
    /// Each item of a set.
    Set,
}

impl<'a> FieldManagers<'a> {
    /// Reads the owners of a live object's fields.
    pub(super) fn from_object(live: &'a Value) -> Self {
        let mut owners = Self::default();
        for entry in object::items(live, "/metadata/managedFields") {
            let Some(fields) = entry.get("fieldsV1") else {
                continue;
            };
            // An apply does not affect fields that the install manager has written by updates.
            let is_ours = object::text(entry, "/manager") == Some(names::INSTALL)
                && object::text(entry, "/operation") == Some("Apply")
                && object::text(entry, "/subresource").unwrap_or_default().is_empty();
            if !is_ours {
                owners.others.push(fields);
            } else if entry.get("apiVersion") == live.get("apiVersion") {
                owners.ours = Some(fields);
            } else {
                owners.untold = true;
            }
        }
        owners
    }

    /// Returns the owners of a field of an object.
    pub(super) fn field(&self, name: &str) -> Self {
        self.child(&format!("f:{name}"))
    }

    /// Returns the owners of a list item that is identified by the fields `keys`.
    pub(super) fn item(&self, item: &Map<String, Value>, keys: &[String]) -> Self {
        let known: Vec<_> = self
            .children()
            .filter_map(|name| Some((name, key_of(name)?)))
            .collect();
        let find = |is_same: fn(Option<&Value>, Option<&Value>) -> bool| {
            known
                .iter()
                .find(|(_, key)| keys.iter().all(|name| is_same(item.get(name), key.get(name))))
        };
        // A custom resource may have other defaults.
        let found = find(is_same_key).or_else(|| find(|item, key| item.is_none() || item == key));
        found.map_or_else(|| self.nothing(), |(name, _)| self.child(name))
    }

    /// Returns the owners of an item of a set.
    pub(super) fn element(&self, item: &Value) -> Self {
        self.child(&format!("v:{item}"))
    }

    /// Reports whether Windlass owns the value or a part of it, or may own it.
    pub(super) fn include_windlass(&self) -> bool {
        self.untold || self.ours.is_some()
    }

    /// Reports whether another manager owns the value or a part of it.
    pub(super) fn include_others(&self) -> bool {
        !self.others.is_empty()
    }

    /// Reports whether the value stays if Windlass no longer applies it.
    pub(super) fn remain_without_windlass(&self) -> bool {
        !self.untold && (self.ours.is_none() || self.include_others())
    }

    /// Returns the granularity of `value`, which these managers own.
    pub(super) fn granularity(&self, value: &Value) -> Granularity {
        match value {
            Value::Object(_) if self.children().any(|name| name.starts_with("f:")) => Granularity::Fields,
            Value::Array(_) => {
                if let Some(key) = self.children().find_map(key_of) {
                    return Granularity::Items(key.keys().cloned().collect());
                }
                match self.children().any(|name| name.starts_with("v:")) {
                    true => Granularity::Set,
                    false => Granularity::Whole,
                }
            }
            _ => Granularity::Whole,
        }
    }

    /// Reports whether an object with fields is owned as one value.
    pub(super) fn is_atomic(&self, value: &Value) -> bool {
        let has_fields = value.as_object().is_some_and(|fields| !fields.is_empty());
        let is_owned = self.ours.is_some() || self.include_others();
        has_fields && is_owned && self.children().next().is_none()
    }

    fn children(&self) -> impl Iterator<Item = &'a str> {
        let sets = self.ours.into_iter().chain(self.others.iter().copied());
        let sets: Vec<_> = sets.filter_map(Value::as_object).collect();
        sets.into_iter().flatten().map(|(name, _)| &**name)
    }

    fn child(&self, name: &str) -> Self {
        Self {
            ours: self.ours.and_then(|fields| fields.get(name)),
            others: self.others.iter().filter_map(|fields| fields.get(name)).collect(),
            untold: self.untold,
        }
    }

    fn nothing(&self) -> Self {
        Self {
            untold: self.untold,
            ..Self::default()
        }
    }
}

/// Parses the key of an item from the name of a child.
fn key_of(name: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(name.strip_prefix("k:")?).ok()
}

/// Reports whether two keys of items are equal.
pub(super) fn is_same_key(one: Option<&Value>, other: Option<&Value>) -> bool {
    let is = |value: Option<&Value>, default| value.is_none_or(|value| value == default);
    one == other || (one.is_none() || other.is_none()) && is(one, DEFAULT_KEY) && is(other, DEFAULT_KEY)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn live(ours: &Value, others: &Value) -> Value {
        json!({"apiVersion": "apps/v1", "metadata": {"managedFields": [
            {"manager": names::INSTALL, "operation": "Apply", "apiVersion": "apps/v1", "fieldsV1": ours},
            {"manager": "kubectl", "operation": "Update", "apiVersion": "apps/v1", "fieldsV1": others},
        ]}})
    }

    #[test]
    fn ports_are_identified_by_number_and_protocol() {
        let ours = json!({"f:ports": {
            "k:{\"port\":53,\"protocol\":\"UDP\"}": {"f:port": {}},
            "k:{\"port\":53,\"protocol\":\"TCP\"}": {"f:name": {}},
            "k:{\"port\":80,\"protocol\":\"SCTP\"}": {"f:nodePort": {}},
        }});
        let live = live(&ours, &json!({}));
        let ports = FieldManagers::from_object(&live).field("ports");
        let Granularity::Items(keys) = ports.granularity(&json!([])) else {
            panic!("{ports:?}");
        };
        assert_eq!(keys, ["port", "protocol"]);
        for (port, field, expected) in [
            (json!({"port": 53}), "name", true),
            (json!({"port": 53, "protocol": "UDP"}), "port", true),
            (json!({"port": 53, "protocol": "UDP"}), "name", false),
            (json!({"port": 80}), "nodePort", true),
            (json!({"port": 81}), "nodePort", false),
        ] {
            let owners = ports.item(port.as_object().unwrap(), &keys);
            assert_eq!(owners.field(field).include_windlass(), expected, "{port}");
        }
    }

    #[test]
    fn the_owners_show_which_values_are_atomic() {
        let ours = json!({"f:selector": {}, "f:template": {"f:spec": {}}, "f:args": {}});
        let theirs = json!({"f:finalizers": {".": {}, "v:\"a\"": {}}});
        let live = live(&ours, &theirs);
        let owners = FieldManagers::from_object(&live);
        let fields = json!({"a": "b"});
        assert!(owners.field("selector").is_atomic(&fields));
        assert!(!owners.field("selector").is_atomic(&json!({})));
        assert!(!owners.field("template").is_atomic(&fields));
        assert!(!owners.field("unowned").is_atomic(&fields));
        assert_eq!(owners.field("template").granularity(&fields), Granularity::Fields);
        assert_eq!(
            owners.field("args").granularity(&json!(["a"])),
            Granularity::Whole
        );
        assert_eq!(
            owners.field("finalizers").granularity(&json!(["a"])),
            Granularity::Set
        );
        assert!(owners.field("finalizers").element(&json!("a")).include_others());
        assert!(!owners.field("finalizers").element(&json!("b")).include_others());
    }

    #[test]
    fn entries_of_another_version_have_unknown_fields() {
        let mut live = live(&json!({}), &json!({"f:a": {}}));
        assert!(
            FieldManagers::from_object(&live)
                .field("a")
                .remain_without_windlass()
        );
        live["apiVersion"] = "apps/v2".into();
        let owners = FieldManagers::from_object(&live);
        assert!(owners.include_windlass() && !owners.field("a").remain_without_windlass());
    }

    #[test]
    fn updates_by_the_install_manager_are_not_ours() {
        let mut live = live(&json!({"f:a": {}}), &json!({}));
        live["metadata"]["managedFields"][0]["operation"] = "Update".into();
        assert!(!FieldManagers::from_object(&live).field("a").include_windlass());
        assert!(FieldManagers::from_object(&live).field("a").include_others());
    }
}
