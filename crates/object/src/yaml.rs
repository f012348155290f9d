//! YAML to JSON values, within a budget: bundles are files of strangers.

use std::thread;

use serde_json::Value;
use serde_saphyr::options::{DuplicateKeyPolicy, NonFiniteFloatPolicy};
use serde_saphyr::{Error, Options};

/// How deep mappings and lists may be nested; deeper JSON is refused by every API server client.
const DEPTH: usize = 128;

/// How many values one file may hold: the largest published CRDs hold about a tenth of it.
const VALUES: usize = 500_000;

/// How many values all files of a bundle may hold.
pub const BUNDLE_VALUES: usize = 10 * VALUES;

/// How many parser events aliases may add to one file.
const ALIASED: usize = 100_000;

/// Bytes of stack for a document of that depth: parsing recurses, and an unoptimised level takes some 16 KiB, so that
/// the 2 MiB of an ordinary thread are not enough.
const STACK: usize = 16 << 20;

/// The documents of a file in YAML 1.2, with octal numbers of YAML 1.1 (`0400`), or JSON; empty and `null` documents are left out, as Kubernetes does.
///
/// # Errors
///
/// What is wrong with the first part that cannot be read, with its line and column, on one line.
pub fn documents(bytes: &[u8]) -> Result<Vec<Value>, String> {
    // OLM decodes UTF-8 only; a byte order mark is allowed by YAML 1.2 §5.2.
    let text = str::from_utf8(bytes).map_err(|error| {
        format!(
            "is neither YAML nor JSON: byte {} is not UTF-8",
            error.valid_up_to()
        )
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    thread::scope(|scope| {
        let parser = thread::Builder::new()
            .stack_size(STACK)
            .spawn_scoped(scope, || {
                serde_saphyr::from_multiple_with_options(text, options())
            })
            .map_err(|error| format!("cannot be parsed: {error}"))?;
        let documents = parser
            .join()
            .map_err(|_| "cannot be parsed: the parser failed".to_owned())?;
        documents.map_err(|error| message(&error))
    })
}

fn options() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: DEPTH,
            flow_nesting_limit: DEPTH,
            max_events: 2 * VALUES,
            max_nodes: VALUES,
            max_documents: 10_000,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: ALIASED,
        },
        duplicate_keys: DuplicateKeyPolicy::Error,
        // As OLM reads them: a mode of files is written so.
        legacy_octal_numbers: true,
        strict_booleans: true,
        non_finite_float_policy: NonFiniteFloatPolicy::Reject,
        with_snippet: false,
    }
}

/// How many values are in `value`, itself counted.
pub fn count(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(count).sum::<usize>(),
        Value::Object(fields) => 1 + fields.values().map(count).sum::<usize>(),
        _ => 1,
    }
}

/// The error on one line, with its place.
fn message(error: &Error) -> String {
    let error = error.without_snippet();
    let what = match error {
        Error::DuplicateMappingKey { key: Some(key), .. } => format!("duplicate key '{key}'"),
        Error::Budget { breach, .. } => format!("is too large or nested too deep: {breach:?}"),
        // The text of the others ends with the place.
        _ => return error.to_string().split_whitespace().collect::<Vec<_>>().join(" "),
    };
    error.location().map_or(what.clone(), |location| {
        format!("{what} at line {}, column {}", location.line(), location.column())
    })
}
