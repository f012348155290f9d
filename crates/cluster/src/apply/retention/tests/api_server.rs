//! An API server of one object, with the server-side apply and managed fields that the tests need.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use http::{Method, Request, Response};
use http_body_util::BodyExt;
use kube::{Client, client::Body};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tower::{BoxError, service_fn};

use crate::Cluster;

/// A member of a set of fields: its path in `fieldsV1`.
type Member = Vec<String>;
type Members = BTreeSet<Member>;

/// A manager and its operation.
type Writer = (String, &'static str);

type Hook = Box<dyn FnOnce(&mut Stored) + Send>;

/// The stored object.
#[derive(Default)]
pub(super) struct Stored {
    pub(super) object: Value,
    pub(super) owned: BTreeMap<Writer, Members>,
    version: u64,
}

/// Requests and the stored object.
#[derive(Clone, Default)]
pub(super) struct ApiServer {
    pub(super) stored: Arc<Mutex<Stored>>,
    /// The applied bodies, in order.
    pub(super) applied: Arc<Mutex<Vec<Value>>>,
    pub(super) reads: Arc<Mutex<usize>>,
    /// Runs before the next apply is handled.
    pub(super) before_apply: Arc<Mutex<VecDeque<Hook>>>,
}

impl ApiServer {
    pub(super) fn cluster(&self) -> Cluster {
        let server = self.clone();
        let answering = service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect().await?.to_bytes();
                let (code, answer) = server.answer(&parts.method, &parts.uri, &body);
                let response = Response::builder().status(code);
                Ok::<_, BoxError>(response.body(Body::from(answer.to_string().into_bytes()))?)
            }
        });
        Cluster::new(Client::new(answering, "default"), Duration::from_secs(60))
    }

    fn answer(&self, method: &Method, uri: &http::Uri, body: &[u8]) -> (u16, Value) {
        if uri.path().ends_with("/v1") {
            let kind = |name: &str, kind: &str| json!({"name": name, "kind": kind, "namespaced": true});
            let kinds = [
                kind("deployments", "Deployment"),
                kind("statefulsets", "StatefulSet"),
                kind("services", "Service"),
            ];
            return (200, json!({ "resources": kinds }));
        }
        if method == Method::GET {
            *self.reads.lock() += 1;
            let shown = self.stored.lock().shown();
            return if shown.is_null() {
                status(404)
            } else {
                (200, shown)
            };
        }
        if let Some(hook) = self.before_apply.lock().pop_front() {
            hook(&mut self.stored.lock());
        }
        let body: Value = serde_json::from_slice(body).unwrap();
        self.applied.lock().push(body.clone());
        let query = uri.query().unwrap_or_default();
        if query.contains("dryRun") {
            return (200, body);
        }
        self.stored.lock().apply(body, query.contains("force=true"))
    }

    /// Returns the number of applies since the last call.
    pub(super) fn applies(&self) -> usize {
        self.applied.lock().drain(..).len()
    }
}

impl Stored {
    /// Returns the object as it is read.
    pub(super) fn shown(&self) -> Value {
        let mut shown = self.object.clone();
        if !shown.is_null() {
            let entries = self.owned.iter().filter(|(_, members)| !members.is_empty());
            let entries = entries.map(|((manager, operation), members)| {
                json!({"manager": manager, "operation": operation, "apiVersion": shown["apiVersion"],
                    "fieldsType": "FieldsV1", "fieldsV1": fields(members)})
            });
            let entries: Vec<_> = entries.collect();
            shown["metadata"]["managedFields"] = entries.into();
            shown["metadata"]["resourceVersion"] = self.version.to_string().into();
        }
        shown
    }

    /// Reports whether a manager owns the member at this path, or a part of it.
    pub(super) fn owns(&self, manager: &str, names: &[&str]) -> bool {
        let of = self.owned.iter().filter(|((name, _), _)| name == manager);
        of.flat_map(|(_, members)| members).any(|member| {
            member.len() >= names.len() && member.iter().zip(names).all(|(one, other)| one == other)
        })
    }

    /// Writes by an update or a patch, as an autoscaler or an administrator does.
    pub(super) fn update(&mut self, manager: &str, change: impl FnOnce(&mut Value)) {
        let before = self.object.clone();
        change(&mut self.object);
        let (old, new) = (members_of(&before), members_of(&self.object));
        let changed: Members = new
            .iter()
            .filter(|member| get(&before, member) != get(&self.object, member))
            .cloned()
            .collect();
        for owned in self.owned.values_mut() {
            owned.retain(|member| {
                !changed.contains(member) && (new.contains(member) || !old.contains(member))
            });
        }
        let entry = self.owned.entry((manager.to_owned(), "Update")).or_default();
        entry.extend(changed);
        self.record_write(&before);
    }

    /// Writes as an admission webhook does: the fields have no owner.
    pub(super) fn inject(&mut self, change: impl FnOnce(&mut Value)) {
        let before = self.object.clone();
        change(&mut self.object);
        self.record_write(&before);
    }

    fn record_write(&mut self, before: &Value) {
        if *before != self.object {
            self.version += 1;
            let generation = self.object["metadata"]["generation"].as_u64().unwrap_or_default();
            self.object["metadata"]["generation"] = (generation + 1).into();
        }
    }

    fn apply(&mut self, mut body: Value, force: bool) -> (u16, Value) {
        let metadata = body["metadata"].as_object_mut().unwrap();
        let version = metadata.remove("resourceVersion");
        let uid = metadata.remove("uid");
        let is_new = self.object.is_null();
        let stale = version.is_some_and(|version| version != *self.version.to_string());
        if !is_new && stale || uid.is_some_and(|uid| uid != self.object["metadata"]["uid"]) {
            return status(409);
        }
        assert!(metadata.get("managedFields").is_none() && body.get("status").is_none());
        let writer: Writer = (windlass_object::names::INSTALL.to_owned(), "Apply");
        let set = members_of(&body);
        let previous = self.owned.remove(&writer).unwrap_or_default();
        for owned in self.owned.values_mut() {
            let conflicts =
                |member: &Member| set.contains(member) && get(&self.object, member) != get(&body, member);
            assert!(force || !owned.iter().any(conflicts), "conflict");
            owned.retain(|member| !conflicts(member));
        }
        let before = self.object.clone();
        merge(&mut self.object, &body, &mut Vec::new());
        let kept: Members = self.owned.values().flatten().chain(&set).cloned().collect();
        for given_up in previous.difference(&kept) {
            // Fields without owner are removed with the last owned field next to them.
            let names = (2..=given_up.len()).map(|length| &given_up[..length]);
            let gone = names
                .into_iter()
                .find(|names| !kept.iter().any(|member| member.starts_with(names)));
            remove(&mut self.object, gone.unwrap_or(given_up));
        }
        default(&mut self.object);
        self.object["metadata"]["uid"] = "u".into();
        self.owned.insert(writer, set);
        self.record_write(&before);
        (200, self.shown())
    }
}

fn status(code: u16) -> (u16, Value) {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": "", "reason": ""});
    (code, status)
}

/// Sets defaults, and normalizes values.
fn default(object: &mut Value) {
    if object["kind"] != "Service" && object["spec"].get("replicas").is_none() {
        object["spec"]["replicas"] = 1.into();
    }
    for container in object
        .pointer_mut("/spec/template/spec/containers")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        container["terminationMessagePath"] = "/dev/termination-log".into();
        if container["cpu"] == "1000m" {
            container["cpu"] = "1".into();
        }
    }
}

/// The fields that identify the items of a list, from the schemas of Kubernetes.
fn keys(list: &str) -> Option<&'static [&'static str]> {
    match list {
        "f:containers" => Some(&["name"]),
        "f:ports" => Some(&["port", "protocol"]),
        _ => None,
    }
}

fn key(item: &Value, keys: &[&str]) -> String {
    let key: Map<_, _> = keys
        .iter()
        .map(|name| {
            (
                (*name).to_owned(),
                item.get(name).cloned().unwrap_or_else(|| "TCP".into()),
            )
        })
        .collect();
    format!("k:{}", Value::from(key))
}

fn members_of(object: &Value) -> Members {
    let mut object = object.clone();
    let mut members = Members::new();
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|name, _| !["apiVersion", "kind", "status"].contains(&&**name));
        if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|name, _| ["labels", "annotations", "finalizers"].contains(&&**name));
        }
        collect(&object, &mut Vec::new(), &mut members);
    }
    members
}

fn collect(value: &Value, path: &mut Member, members: &mut Members) {
    let last = path.last().cloned().unwrap_or_default();
    match value {
        Value::Object(fields) if !fields.is_empty() && last != "f:selector" => {
            for (name, value) in fields {
                path.push(format!("f:{name}"));
                collect(value, path, members);
                path.pop();
            }
        }
        Value::Array(items) if keys(&last).is_some() => {
            for item in items {
                path.push(key(item, keys(&last).unwrap()));
                members.insert([&path[..], &[".".to_owned()]].concat());
                collect(item, path, members);
                path.pop();
            }
        }
        Value::Array(items) if last == "f:finalizers" => {
            members.extend(
                items
                    .iter()
                    .map(|item| [&path[..], &[format!("v:{item}")]].concat()),
            );
        }
        _ => {
            members.insert(path.clone());
        }
    }
}

fn fields(members: &Members) -> Value {
    let mut fields = json!({});
    for member in members {
        let mut at = &mut fields;
        for name in member {
            at = at
                .as_object_mut()
                .unwrap()
                .entry(name.clone())
                .or_insert_with(|| json!({}));
        }
    }
    fields
}

fn position(items: &[Value], list: &str, name: &str) -> Option<usize> {
    items.iter().position(|item| match keys(list) {
        Some(keys) => key(item, keys) == name,
        None => format!("v:{item}") == name,
    })
}

fn get<'a>(value: &'a Value, member: &[String]) -> Option<&'a Value> {
    let mut at = value;
    for (index, name) in member.iter().enumerate() {
        at = match name.strip_prefix("f:") {
            Some(field) => at.get(field)?,
            None if name == "." => return Some(&Value::Null),
            None => {
                let items = at.as_array()?;
                &items[position(items, &member[index - 1], name)?]
            }
        };
    }
    Some(at)
}

fn remove(value: &mut Value, member: &[String]) {
    let mut at = value;
    for (index, name) in member.iter().enumerate() {
        let is_last = index + 1 == member.len() || member[index + 1] == ".";
        if let Some(field) = name.strip_prefix("f:") {
            let Some(fields) = at.as_object_mut() else { return };
            if is_last {
                fields.shift_remove(field);
                return;
            }
            let Some(next) = fields.get_mut(field) else { return };
            at = next;
        } else {
            let Some(items) = at.as_array_mut() else { return };
            let Some(found) = position(items, &member[index - 1], name) else {
                return;
            };
            if is_last {
                items.remove(found);
                return;
            }
            at = &mut items[found];
        }
    }
}

fn merge(value: &mut Value, applied: &Value, path: &mut Member) {
    let last = path.last().cloned().unwrap_or_default();
    match applied {
        Value::Object(fields) if last != "f:selector" => {
            if !value.is_object() {
                *value = json!({});
            }
            for (name, applied) in fields {
                path.push(format!("f:{name}"));
                merge(&mut value[name.as_str()], applied, path);
                path.pop();
            }
        }
        Value::Array(items) if keys(&last).is_some() || last == "f:finalizers" => {
            if !value.is_array() {
                *value = json!([]);
            }
            let known = value.as_array_mut().unwrap();
            for item in items {
                let name = keys(&last).map_or_else(|| format!("v:{item}"), |keys| key(item, keys));
                let found = position(known, &last, &name).unwrap_or_else(|| {
                    known.push(item.clone());
                    known.len() - 1
                });
                path.push(name);
                merge(&mut known[found], item, path);
                path.pop();
            }
        }
        _ => *value = applied.clone(),
    }
}
