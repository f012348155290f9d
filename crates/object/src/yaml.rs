//! YAML to JSON, within a budget: bundles are untrusted.

use std::thread;

use serde_json::Value;
use serde_saphyr::options::{DuplicateKeyPolicy, NonFiniteFloatPolicy};
use serde_saphyr::{Error, Options};

/// The maximum depth of nested mappings and lists; API server clients reject deeper JSON.
const DEPTH: usize = 128;

/// The maximum number of values per file: the largest published CRDs have about a tenth of it.
const VALUES: usize = 500_000;

/// The maximum number of values in all files of a bundle.
pub const BUNDLE_VALUES: usize = 10 * VALUES;

/// The maximum number of parser events that aliases may add to a file.
const ALIASED: usize = 100_000;

/// Bytes of stack for a document of the maximum depth: parsing is recursive, and an unoptimised level takes
/// some 16 KiB, so 2 MiB, the default of a thread, are not enough.
const STACK: usize = 16 << 20;

/// Returns the documents of a file in YAML 1.2, with octal numbers of YAML 1.1 (`0400`), or in JSON. Empty
/// and `null` documents are omitted, as in Kubernetes.
///
/// # Errors
///
/// The first part that cannot be parsed, with its line and column, on one line.
pub fn documents(bytes: &[u8]) -> Result<Vec<Value>, String> {
    // OLM decodes UTF-8 only; YAML 1.2 §5.2 allows a byte order mark.
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
        // As OLM does: file modes are written in octal.
        legacy_octal_numbers: true,
        strict_booleans: true,
        non_finite_float_policy: NonFiniteFloatPolicy::Reject,
        with_snippet: false,
    }
}

/// Returns the number of values in `value`, including itself.
pub fn count(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(count).sum::<usize>(),
        Value::Object(fields) => 1 + fields.values().map(count).sum::<usize>(),
        _ => 1,
    }
}

/// Formats an error on one line, with its position.
fn message(error: &Error) -> String {
    let error = error.without_snippet();
    let what = match error {
        Error::DuplicateMappingKey { key: Some(key), .. } => format!("duplicate key '{key}'"),
        Error::Budget { breach, .. } => format!("is too large or nested too deep: {breach:?}"),
        // The text of other errors ends with the position.
        _ => return error.to_string().split_whitespace().collect::<Vec<_>>().join(" "),
    };
    error.location().map_or(what.clone(), |location| {
        format!("{what} at line {}, column {}", location.line(), location.column())
    })
}
