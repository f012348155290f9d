//! Renders references as expressions.

use crate::{
    api::{ValueReference, ValueSource},
    patch::Pointer,
    problem::PolicyProblems,
};

use super::{
    cue_text::{CueInput, CueText, ValueText, comprehension, expression},
    quote::label,
};

/// The role of a reference in a template. Each role has its own inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReferenceRole {
    /// `dataRef`: the value to compare.
    Data,
    /// `valueRef`: the value to compare with, or to write.
    Value,
}

/// A step of a path.
#[derive(Debug, PartialEq, Eq)]
enum PathPart {
    Name(String),
    Index(String),
}

/// The maximum number of parts in a path.
const MOST_PARTS: usize = 100;

/// Maps of strings: any part below them is a name, even if it looks like an index.
const MAPS: [&str; 8] = [
    "annotations",
    "labels",
    "matchLabels",
    "nodeSelector",
    "data",
    "stringData",
    "limits",
    "requests",
];

/// Declares the input of a reference and returns its expression; adds problems of its fields.
pub(super) fn expression_of(
    reference: &ValueReference,
    role: ReferenceRole,
    program: &mut CueText,
    problems: &mut PolicyProblems,
) -> Option<String> {
    let may_be_whole = role == ReferenceRole::Data && reference.from == ValueSource::Owner;
    if reference.path.is_empty() && !may_be_whole {
        problems.note("path", "is missing: name a field, for example /metadata/name");
        return None;
    }
    let parts = match parse(&reference.path) {
        _ if reference.path.is_empty() => Vec::new(),
        Ok(parts) => parts,
        Err(message) => {
            problems.note("path", message);
            return None;
        }
    };
    let input = program.input(input_of(reference.from, role));
    Some(
        parts
            .iter()
            .fold(input.to_owned(), |expression, part| match part {
                PathPart::Name(name) => format!("{expression}.{}", label(name)),
                PathPart::Index(index) => format!("{expression}[{index}]"),
            }),
    )
}

/// Adds a list with a value, if it exists, to the program.
pub(super) fn list_value(comment: &'static str, name: &str, from: &str, program: &mut CueText) {
    let clauses = format!("if {from} != _|_ if {from} != null");
    program.section(
        comment,
        name,
        ValueText::List(vec![comprehension(clauses, expression(from))]),
    );
}

fn input_of(from: ValueSource, role: ReferenceRole) -> CueInput {
    match (from, role) {
        (ValueSource::Current, _) => CueInput::Object,
        (ValueSource::Old, _) => CueInput::OldObject,
        (ValueSource::K8s | ValueSource::Owner, ReferenceRole::Value) => CueInput::OtherObject,
        (ValueSource::K8s | ValueSource::Owner, ReferenceRole::Data) => CueInput::OtherObjectOfData,
        (ValueSource::Http, ReferenceRole::Value) => CueInput::Http,
        (ValueSource::Http, ReferenceRole::Data) => CueInput::HttpOfData,
    }
}

/// Parses `/spec/containers/0/image`, `spec/replicas`, `body.items[0].name` or
/// `metadata.annotations.example.com/owner`.
fn parse(path: &str) -> Result<Vec<PathPart>, String> {
    let is_pointer = path
        .find(['/', '.', '[', '"'])
        .is_some_and(|at| path[at..].starts_with('/'));
    let parts = if is_pointer { pointer(path)? } else { dotted(path)? };
    if parts.len() > MOST_PARTS {
        return Err(format!("has more than {MOST_PARTS} levels"));
    }
    let is_empty = |part: &PathPart| matches!(part, PathPart::Name(name) if name.is_empty());
    if parts.iter().any(is_empty) {
        return Err(format!(
            "{path:?} has an empty name in it: name a field, for example /metadata/name"
        ));
    }
    Ok(parts)
}

fn pointer(path: &str) -> Result<Vec<PathPart>, String> {
    let slash = if path.starts_with('/') { "" } else { "/" };
    let pointer = Pointer::parse(&format!("{slash}{path}"))?;
    let mut parts = Vec::new();
    let tokens = pointer.tokens();
    for (place, token) in tokens.iter().enumerate() {
        let parent = place.checked_sub(1).and_then(|place| tokens.get(place));
        let is_below = |names: &[&str]| parent.is_some_and(|parent| names.contains(&parent.as_str()));
        let grandparent = place.checked_sub(2).and_then(|place| tokens.get(place));
        if is_below(&["annotations", "labels"]) && grandparent.is_some_and(|name| name == "metadata") {
            // Names of annotations contain slashes, and have no fields below them.
            parts.push(PathPart::Name(tokens[place..].join("/")));
            return Ok(parts);
        }
        parts.push(if is_index(token) && !is_below(&MAPS) {
            PathPart::Index(token.clone())
        } else {
            PathPart::Name(token.clone())
        });
    }
    Ok(parts)
}

fn is_index(token: &str) -> bool {
    let is_padded = token.len() > 1 && token.starts_with('0');
    let is_short = (1..=9).contains(&token.len());
    is_short && !is_padded && token.bytes().all(|digit| digit.is_ascii_digit())
}

fn dotted(path: &str) -> Result<Vec<PathPart>, String> {
    let error = || {
        let example = "write for example /spec/containers/0/image, or body.items[0].name";
        format!("{path:?} is not a path: {example}")
    };
    let mut parts = Vec::new();
    let mut rest = path.strip_prefix('.').unwrap_or(path);
    loop {
        if let Some(quoted) = rest.strip_prefix('"') {
            let (name, after) = quoted.split_once('"').ok_or_else(error)?;
            parts.push(PathPart::Name(name.to_owned()));
            rest = after;
        } else if is_text_map(&parts) {
            parts.push(PathPart::Name(rest.to_owned()));
            rest = "";
        } else {
            let end = rest.find(['.', '[', '"']).unwrap_or(rest.len());
            parts.push(PathPart::Name(rest[..end].to_owned()));
            rest = &rest[end..];
        }
        while let Some(inner) = rest.strip_prefix('[') {
            let (inner, after) = inner.split_once(']').ok_or_else(error)?;
            let unquoted = ['"', '\'']
                .into_iter()
                .find_map(|mark| inner.strip_prefix(mark)?.strip_suffix(mark));
            parts.push(match unquoted {
                Some(name) => PathPart::Name(name.to_owned()),
                None if is_index(inner) => PathPart::Index(inner.to_owned()),
                None => return Err(error()),
            });
            rest = after;
        }
        match rest.strip_prefix('.') {
            Some(after) => rest = after,
            None if rest.is_empty() => return Ok(parts),
            None => return Err(error()),
        }
    }
}

/// Reports whether the next name is the key of an annotation or label, which may contain dots.
fn is_text_map(parts: &[PathPart]) -> bool {
    let [.., PathPart::Name(metadata), PathPart::Name(map)] = parts else {
        return false;
    };
    metadata == "metadata" && matches!(map.as_str(), "annotations" | "labels")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Result<String, String> {
        let parts = parse(text)?;
        let part = |part: &PathPart| match part {
            PathPart::Name(name) => format!(".{}", label(name)),
            PathPart::Index(index) => format!("[{index}]"),
        };
        Ok(parts.iter().map(part).collect())
    }

    #[test]
    fn keys_with_slashes_and_tildes_are_parsed() {
        for (text, written) in [
            (
                "/metadata/annotations/a.io~1b",
                r#".metadata.annotations."a.io/b""#,
            ),
            (
                "/metadata/annotations/a.io/b",
                r#".metadata.annotations."a.io/b""#,
            ),
            ("/metadata/labels/a~0b", r#".metadata.labels."a~b""#),
            ("metadata.annotations.a.io/b", r#".metadata.annotations."a.io/b""#),
            (
                r#"metadata.annotations."a.io/b""#,
                r#".metadata.annotations."a.io/b""#,
            ),
            (
                r#"metadata.annotations["a.io/b"]"#,
                r#".metadata.annotations."a.io/b""#,
            ),
            ("/data/a~1b/c", r#".data."a/b".c"#),
        ] {
            assert_eq!(path(text).as_deref(), Ok(written), "{text}");
        }
    }

    #[test]
    fn paths_are_pointers_or_have_dots() {
        for (text, written) in [
            ("/spec/containers/0/key-1", r#".spec.containers[0]."key-1""#),
            ("spec/replicas", ".spec.replicas"),
            ("body.name", ".body.name"),
            ("body.items[0].name", ".body.items[0].name"),
            ("name", ".name"),
            ("/data/0", r#".data."0""#),
            ("/metadata/labels/0", r#".metadata.labels."0""#),
            (
                "/spec/template/metadata/labels/a.b/c",
                r#".spec.template.metadata.labels."a.b/c""#,
            ),
            (r#"a."x\(y)".b"#, r#".a."x\\(y)".b"#),
        ] {
            assert_eq!(path(text).as_deref(), Ok(written), "{text}");
        }
        for text in [
            "/", "//", "/a/", "a..b", "a.", "a[", "a[x]", "a[-1]", "a[0]b", r#"a."b"#, "/a~2", "~",
        ] {
            let deepest = path(text);
            assert!(deepest.is_err() || text == "~", "{text}: {deepest:?}");
        }
        assert!(path(&"/a".repeat(101)).is_err());
        assert!(path(&".a".repeat(101)).is_err());
    }
}
