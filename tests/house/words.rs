//! Plain English: finds the worst patterns that `docs/style.md` names, in documents, messages, comments and identifiers.

use std::{ops::Range, path::Path};

use regex::{Regex, RegexBuilder};

use crate::files;

/// What to look for, and what to write.
const PATTERNS: &[(&str, &str)] = &[
    (r"nobody|somebody|whoever|whomever", "name the actor"),
    (r"anew", "again, or a verb with `re`"),
    (r"of before", "previous"),
    (r"(is|are) asked for", "name who requests it"),
    (r"(is|are|was|were) waited for", "name who waits"),
    (r"(is|are|was|were) looked at", "name who checks or reads it"),
    (r"(no|any) more", "no longer, at most, none"),
    (r"what (is|are|was) (said|called|there|wanted)", "a noun"),
    (r"(is|are) said", "name who reports it"),
    (r"by (itself|themselves)", "automatically, alone"),
    (r"beside (it|them|this|that|each)", "next to, besides, with"),
    (
        r"but for (the|a|an|what|its|that|those|these|it|them|one|this)",
        "except",
    ),
    (r"mend(s|ed|ing)?", "fix, repair"),
    (r"in vain", "say what fails"),
    (r"in the place of", "instead of"),
    (r"comes? to (its|their) end", "ends, finishes"),
    (r"speaks? against", "say what prevents it"),
    (r"(lets|letting) go|let go of", "release"),
];

/// Function names that do not say what the function returns or does.
const FUNCTION: &str = r"\bfn (?:of|said|told|tell|let go|keep beside|try out|makes way|given|asked)[(<]";

/// A noun is negated by "not a": "is no bundle".
const NEGATED_NOUN: &str = r"\b(?:\w+ )?(?:is|are|was|were) no \w+";

/// What these patterns find although it is good English.
const PLAIN: &[&str] = &[
    "there is",
    "there are",
    "there was",
    "there were",
    "no longer",
    "no more than",
];

/// Folders whose comments and names are rewritten together with their code. Their messages are checked where users see them.
const EXCLUDED: &[(&str, Checked)] = &[
    ("crates/operator/src/bundle_deployment", Checked::Messages),
    ("crates/operator/src/install", Checked::Messages),
    ("e2e/node", Checked::Nothing),
    ("e2e/bench", Checked::Nothing),
];

/// The files that quote the patterns, and texts of others.
const QUOTING: &[&str] = &["docs/style.md", "tests/house/words.rs", "LICENSE"];

#[derive(Clone, Copy, PartialEq)]
enum Checked {
    Everything,
    Messages,
    Nothing,
}

impl Checked {
    fn for_file(path: &Path) -> Self {
        if QUOTING.iter().any(|quoting| path == Path::new(quoting)) {
            return Self::Nothing;
        }
        EXCLUDED
            .iter()
            .find(|(folder, _)| path.starts_with(folder))
            .map_or(Self::Everything, |(_, checked)| *checked)
    }
}

/// A source as one line: sentences continue over line breaks and comment marks, and `_` separates words as a space does.
struct Text {
    joined: String,
    /// Where each line starts in `joined`.
    starts: Vec<usize>,
}

impl Text {
    fn read(source: &str) -> Self {
        let mut text = Self {
            joined: String::new(),
            starts: Vec::new(),
        };
        for line in source.lines() {
            text.starts.push(text.joined.len());
            let line = line.trim().trim_start_matches(['/', '!', '#', '>', '*']).trim();
            text.joined
                .push_str(&line.trim_end_matches('\\').replace('_', " "));
            text.joined.push(' ');
        }
        text
    }

    fn line(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset)
    }
}

struct Words {
    patterns: Vec<(Regex, &'static str)>,
    message: Regex,
}

impl Words {
    fn new() -> Self {
        let regex = |pattern: &str| RegexBuilder::new(pattern).case_insensitive(true).build().unwrap();
        let mut patterns: Vec<_> = PATTERNS
            .iter()
            .map(|(pattern, instead)| (regex(&format!(r"\b(?:{pattern})\b")), *instead))
            .collect();
        patterns.push((regex(NEGATED_NOUN), "is not a"));
        patterns.push((regex(FUNCTION), "name what it returns or does"));
        Self {
            patterns,
            message: regex(r#""(?:[^"\\]|\\.)*""#),
        }
    }

    /// A line for each hit in a file.
    fn hits(&self, path: &Path, source: &str, checked: Checked) -> Vec<String> {
        let text = Text::read(source);
        let is_checked = |hit: &Range<usize>| match checked {
            Checked::Everything => true,
            Checked::Messages => self
                .message
                .find_iter(&text.joined)
                .filter(|message| message.as_str().contains(' '))
                .any(|message| message.start() < hit.start && hit.end < message.end()),
            Checked::Nothing => false,
        };
        self.matches(&text.joined)
            .into_iter()
            .filter(|(hit, _)| is_checked(hit))
            .map(|(hit, instead)| {
                let line = text.line(hit.start);
                format!("{}:{line}: `{}`: {instead}", path.display(), &text.joined[hit])
            })
            .collect()
    }

    /// Where each hit is, and what to write instead.
    fn matches(&self, text: &str) -> Vec<(Range<usize>, &'static str)> {
        let patterns = self.patterns.iter();
        patterns
            .flat_map(|(pattern, instead)| pattern.find_iter(text).map(|hit| (hit.range(), *instead)))
            .filter(|(hit, _)| !is_plain(text, hit))
            .collect()
    }
}

/// Whether a hit, with the word after it, is good English.
fn is_plain(text: &str, hit: &Range<usize>) -> bool {
    let next_word = text[hit.end..].split(' ').nth(1).unwrap_or_default();
    let phrase = format!("{} {next_word}", &text[hit.clone()]).to_lowercase();
    PLAIN.iter().any(|plain| phrase.contains(plain))
}

/// Documents, code, scripts, and everything else that people write.
fn is_text(path: &Path) -> bool {
    const EXTENSIONS: &[&str] = &[
        "rs", "go", "md", "toml", "sh", "yaml", "yml", "html", "tpl", "lua", "js", "css",
    ];
    match path.extension() {
        Some(extension) => EXTENSIONS.iter().any(|text| extension == *text),
        None => path.starts_with(".ci") || path.starts_with("e2e") || path.starts_with("images"),
    }
}

#[test]
fn text_is_plain_english() {
    let words = Words::new();
    let hits: Vec<String> = files("", is_text)
        .iter()
        .flat_map(|(path, text)| words.hits(path, text, Checked::for_file(path)))
        .collect();
    assert!(
        hits.is_empty(),
        "{} hits, see docs/style.md:\n{}",
        hits.len(),
        hits.join("\n")
    );
}

#[test]
fn patterns_are_found_over_line_breaks_and_in_names() {
    let words = Words::new();
    let hits = |source: &str, checked| words.hits(Path::new("a.rs"), source, checked).len();
    assert_eq!(
        hits("// Nothing that is waited\n    // for.\n", Checked::Everything),
        1
    );
    assert_eq!(hits("fn nobody_answers() {}", Checked::Everything), 1);
    assert_eq!(hits("fn of(text: &str) {}", Checked::Everything), 1);
    assert_eq!(hits("it is no bundle", Checked::Everything), 1);
    assert_eq!(
        hits("there is no bundle; it is no longer served", Checked::Everything),
        0
    );
    assert_eq!(hits("at least one and no more than two", Checked::Everything), 0);
    assert_eq!(
        hits("// anew\nlet text = \"build it anew\";", Checked::Messages),
        1
    );
}
