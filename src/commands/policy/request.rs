//! The admission request of `windlass policy`, from arguments.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::ValueEnum;
use policy::{AdmissionAttributes, AdmissionOperation, KnownData};
use serde_json::{Map, Value, json};
use windlass_object::object;

use super::data_files;
use crate::commands::documents;

/// The request: its operation, objects and user.
#[derive(Debug, clap::Args)]
pub(super) struct RequestArgs {
    /// File with the objects to write or delete; - is standard input.
    #[arg(long, value_name = "FILE")]
    object: PathBuf,

    /// File with the previous object, for UPDATE.
    #[arg(long, value_name = "FILE")]
    old_object: Option<PathBuf>,

    /// Operation [default: UPDATE with --old-object, else CREATE].
    #[arg(long, value_enum, ignore_case = true)]
    operation: Option<OperationArg>,

    /// Name of the user.
    #[arg(long, value_name = "NAME")]
    user: Option<String>,

    /// Group of the user, repeatable.
    #[arg(long, value_name = "NAME")]
    group: Vec<String>,

    /// File with the object's Namespace [default: from --data].
    #[arg(long, value_name = "FILE")]
    namespace_object: Option<PathBuf>,

    /// File with referenced objects and responses, repeatable.
    #[arg(long, value_name = "FILE")]
    data: Vec<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "UPPER")]
enum OperationArg {
    Create,
    Update,
    Delete,
}

/// Requests, one for each object.
#[derive(Debug)]
pub(super) struct PolicyRequests {
    operation: AdmissionOperation,
    pub(super) objects: Vec<Value>,
    old_object: Option<Value>,
    request: Value,
    namespace_object: Option<Value>,
    /// Data for policy references.
    pub(super) known: KnownData,
}

impl RequestArgs {
    /// Reads the files.
    ///
    /// # Errors
    ///
    /// When a file cannot be read or has other content, or an argument does not fit the operation.
    pub(super) fn read(&self) -> anyhow::Result<PolicyRequests> {
        let operation = match (self.operation, &self.old_object) {
            (Some(OperationArg::Update), None) => bail!("--operation UPDATE needs --old-object"),
            (Some(OperationArg::Create | OperationArg::Delete), Some(_)) => {
                bail!("--old-object is only valid with --operation UPDATE; the object to delete is --object")
            }
            (Some(OperationArg::Create), _) | (None, None) => AdmissionOperation::Create,
            (Some(OperationArg::Update), _) | (None, Some(_)) => AdmissionOperation::Update,
            (Some(OperationArg::Delete), _) => AdmissionOperation::Delete,
        };
        let shown = self.object.display();
        let objects = data_files::objects(&self.object)?;
        if objects.is_empty() {
            bail!("{shown} must contain an object");
        }
        for (index, object) in objects.iter().enumerate() {
            check(object).with_context(|| format!("{shown}: object {}", index + 1))?;
        }
        let old_object = self.old_object.as_deref().map(documents::object).transpose()?;
        if let (Some(old), Some(path)) = (&old_object, &self.old_object) {
            check(old).with_context(|| path.display().to_string())?;
            if objects.len() > 1 {
                bail!(
                    "{shown} must contain one object where --old-object is given, not {}",
                    objects.len()
                );
            }
        }
        let namespace_object = match self.namespace_object.as_deref() {
            Some(path) => Some(namespace(path)?),
            None => None,
        };
        let mut user = Map::new();
        if let Some(name) = &self.user {
            user.insert("username".into(), json!(name));
        }
        if !self.group.is_empty() {
            user.insert("groups".into(), json!(self.group));
        }
        Ok(PolicyRequests {
            operation,
            objects,
            old_object,
            request: json!({ "userInfo": user }),
            namespace_object,
            known: data_files::read(&self.data)?,
        })
    }
}

fn namespace(path: &std::path::Path) -> anyhow::Result<Value> {
    let namespace = documents::object(path)?;
    if object::text(&namespace, "/kind") != Some("Namespace") {
        bail!("{} must contain a Namespace", path.display());
    }
    Ok(namespace)
}

fn check(object: &Value) -> anyhow::Result<()> {
    if !object.is_object() {
        bail!("is not an object");
    }
    for field in ["apiVersion", "kind"] {
        if object
            .get(field)
            .and_then(Value::as_str)
            .is_none_or(str::is_empty)
        {
            bail!("{field} must not be empty");
        }
    }
    Ok(())
}

impl PolicyRequests {
    /// Returns the attributes of the request that writes `object`.
    pub(super) fn attributes<'a>(&'a self, object: &'a Value) -> AdmissionAttributes<'a> {
        let is_deleted = self.operation == AdmissionOperation::Delete;
        let mut attributes = AdmissionAttributes {
            operation: self.operation,
            object: (!is_deleted).then_some(object),
            old_object: match is_deleted {
                true => Some(object),
                false => self.old_object.as_ref(),
            },
            request: &self.request,
            namespace_object: None,
        };
        attributes.namespace_object = self
            .namespace_object
            .as_ref()
            .or_else(|| KnownData::namespace(&[&self.known], attributes.namespace()));
        attributes
    }
}
