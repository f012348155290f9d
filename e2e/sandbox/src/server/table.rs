//! Representations of objects: whole objects, metadata only, or a table.

use serde_json::{Value, json};

use super::{call::Call, cells::cell, columns::columns, kinds::ServedResource};

/// The representation that a client requests.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Whole,
    Metadata,
    Table,
}

fn form(call: &Call) -> Form {
    for part in call.accept.split(',') {
        let mut form = None;
        for parameter in part.split(';').map(str::trim) {
            match parameter {
                "as=Table" => form = Some(Form::Table),
                "as=PartialObjectMetadata" | "as=PartialObjectMetadataList" => form = Some(Form::Metadata),
                _ => {}
            }
        }
        if let Some(form) = form {
            return form;
        }
        if part.trim().starts_with("application/json") || part.trim() == "*/*" {
            return Form::Whole;
        }
    }
    Form::Whole
}

/// Returns one object in the requested representation.
pub(super) fn object(call: &Call, served: &ServedResource, object: Value) -> Value {
    match form(call) {
        Form::Whole => object,
        Form::Metadata => metadata_only(&object),
        Form::Table => {
            let metadata = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
            table(call, served, &[object], &metadata)
        }
    }
}

/// Returns a list in the requested representation.
pub(super) fn list(call: &Call, served: &ServedResource, mut items: Vec<Value>, metadata: &Value) -> Value {
    match form(call) {
        Form::Whole => {
            if served.definition.is_none() {
                for fields in items.iter_mut().filter_map(Value::as_object_mut) {
                    fields.remove("apiVersion");
                    fields.remove("kind");
                }
            }
            let kind = match &served.definition {
                Some(definition) => definition.names.list_kind.clone(),
                None => format!("{}List", served.kind),
            };
            json!({"apiVersion": served.api_version(), "kind": kind, "metadata": metadata, "items": items})
        }
        Form::Metadata => {
            let items: Vec<Value> = items.iter().map(metadata_only).collect();
            json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList", "metadata": metadata,
                   "items": items})
        }
        Form::Table => table(call, served, &items, metadata),
    }
}

fn metadata_only(object: &Value) -> Value {
    json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": object["metadata"]})
}

fn table(call: &Call, served: &ServedResource, objects: &[Value], metadata: &Value) -> Value {
    let columns = columns(served);
    let definitions: Vec<Value> = columns
        .iter()
        .map(|column| {
            json!({"name": column.name, "type": column.column_type, "format": if column.name == "Name" { "name" } else { "" },
                   "description": column.name, "priority": column.priority})
        })
        .collect();
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| {
            let cells: Vec<Value> = columns.iter().map(|column| cell(object, column)).collect();
            let shown = match call.query("includeObject") {
                "None" => Value::Null,
                "Object" => object.clone(),
                _ => metadata_only(object),
            };
            json!({"cells": cells, "object": shown})
        })
        .collect();
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "columnDefinitions": definitions,
           "rows": rows})
}
