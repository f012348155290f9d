//! Regular expressions in Go's syntax, matched in linear time.

use std::fmt::Write;

use regex::{Regex, RegexBuilder};

/// The maximum size of a compiled pattern in bytes.
const LARGEST: usize = 256 << 10;

/// The maximum length of a matched text in bytes: the time of a match is its product with the size of the
/// pattern.
const LONGEST_TEXT: usize = 64 << 10;

/// The maximum repetition count, as in Go.
const MOST_REPETITIONS: u32 = 1000;

/// A compiled pattern.
#[derive(Debug)]
pub(crate) struct Pattern(Regex);

/// The previous element, which determines what may follow.
#[derive(PartialEq, Eq)]
enum Last {
    Start,
    Atom,
    Repetition,
    LazyRepetition,
}

/// Translates a pattern into the syntax of the crate `regex`.
struct Translation<'p> {
    rest: std::iter::Peekable<std::str::Chars<'p>>,
    written: String,
    last: Last,
}

impl Pattern {
    /// The number of bytes charged for a pattern that is compiled during an evaluation.
    pub(crate) const COST: usize = 256;
    /// The number of bytes that are matched per step.
    pub(crate) const BYTES_A_STEP: usize = 64;

    pub(crate) fn new(pattern: &str) -> Result<Self, String> {
        let translation = Translation {
            rest: pattern.chars().peekable(),
            written: String::with_capacity(pattern.len()),
            last: Last::Start,
        };
        RegexBuilder::new(&translation.translate()?)
            .size_limit(LARGEST)
            .dfa_size_limit(LARGEST)
            .nest_limit(64)
            .build()
            .map(Self)
            .map_err(|error| match error {
                regex::Error::CompiledTooBig(_) => "the pattern is too large; make it simpler".to_owned(),
                _ => "the pattern is not a regular expression of RE2".to_owned(),
            })
    }

    pub(crate) fn is_match(&self, text: &str) -> Result<bool, String> {
        if text.len() > LONGEST_TEXT {
            return Err(format!(
                "the string is longer than {LONGEST_TEXT} bytes, the limit for matching"
            ));
        }
        Ok(self.0.is_match(text))
    }
}

impl Translation<'_> {
    fn translate(mut self) -> Result<String, String> {
        while let Some(character) = self.rest.next() {
            match character {
                '\\' => {
                    self.escape(false)?;
                    self.last = Last::Atom;
                }
                '[' => {
                    self.class()?;
                    self.last = Last::Atom;
                }
                '(' => {
                    self.written.push('(');
                    self.group()?;
                    self.last = Last::Start;
                }
                '*' | '+' | '?' => self.repetition(character)?,
                '{' => self.counted_repetition()?,
                '|' => {
                    self.written.push('|');
                    self.last = Last::Start;
                }
                // Go treats a closing brace as a literal.
                '}' => {
                    self.written.push_str("\\}");
                    self.last = Last::Atom;
                }
                _ => {
                    self.written.push(character);
                    self.last = Last::Atom;
                }
            }
        }
        Ok(self.written)
    }

    fn repetition(&mut self, character: char) -> Result<(), String> {
        self.last = match (&self.last, character) {
            (Last::Start, _) => return Err(format!("{character:?} repeats nothing; remove or escape it")),
            (Last::Atom, _) => Last::Repetition,
            (Last::Repetition, '?') => Last::LazyRepetition,
            _ => {
                return Err(format!(
                    "{character:?} repeats a repetition; put it in parentheses"
                ));
            }
        };
        self.written.push(character);
        Ok(())
    }

    /// `{2}`, `{2,}`, `{2,5}`; any other brace is a literal.
    fn counted_repetition(&mut self) -> Result<(), String> {
        let ahead: String = self
            .rest
            .clone()
            .take_while(|character| *character != '}')
            .take(16)
            .collect();
        let is_closed = self.rest.clone().nth(ahead.chars().count()) == Some('}');
        let (least, most) = ahead.split_once(',').unwrap_or((&ahead, &ahead));
        let is_count = |text: &str| !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
        if !is_closed || !is_count(least) || !most.is_empty() && !is_count(most) {
            self.written.push_str("\\{");
            self.last = Last::Atom;
            return Ok(());
        }
        for count in [least, most].into_iter().filter(|count| !count.is_empty()) {
            if count
                .parse::<u32>()
                .ok()
                .is_none_or(|count| count > MOST_REPETITIONS)
            {
                return Err(format!("a part is repeated at most {MOST_REPETITIONS} times"));
            }
        }
        self.repetition('{')?;
        self.written.push_str(&ahead);
        self.written.push('}');
        for _ in 0..=ahead.len() {
            self.rest.next();
        }
        Ok(())
    }

    /// The groups after `(?` that Go supports.
    fn group(&mut self) -> Result<(), String> {
        if self.rest.peek() != Some(&'?') {
            return Ok(());
        }
        let flags: String = self
            .rest
            .clone()
            .skip(1)
            .take_while(|character| !matches!(character, ':' | ')' | '<'))
            .collect();
        let is_name = flags == "P";
        if !is_name && !flags.chars().all(|flag| "imsU-".contains(flag)) {
            return Err("only the flags i, m, s and U may follow \"(?\"".to_owned());
        }
        let is_closed = self.rest.clone().nth(1 + flags.chars().count()) == Some(')');
        self.written.push('?');
        self.written.push_str(&flags);
        for _ in 0..=flags.chars().count() {
            self.rest.next();
        }
        if is_name {
            for character in self.rest.by_ref() {
                self.written.push(character);
                if character == '>' {
                    break;
                }
            }
        } else if !is_closed && self.rest.next_if_eq(&':').is_some() {
            self.written.push(':');
        }
        Ok(())
    }

    /// Escapes; Go's character classes are ASCII only.
    fn escape(&mut self, in_class: bool) -> Result<(), String> {
        let Some(character) = self.rest.next() else {
            return Err("a backslash ends the pattern; double it".to_owned());
        };
        let class = match character {
            'd' | 'D' => "0-9",
            'w' | 'W' => "0-9A-Za-z_",
            's' | 'S' => "\\t\\n\\f\\r ",
            'b' | 'B' | 'A' | 'z' if !in_class => {
                let group = match character {
                    'b' => "(?-u:\\b)",
                    'B' => "(?-u:\\B)",
                    'A' => "\\A",
                    _ => "\\z",
                };
                self.written.push_str(group);
                return Ok(());
            }
            'Q' if !in_class => return self.quoted_literal(),
            'a' | 'f' | 't' | 'n' | 'r' | 'v' | 'p' | 'P' | 'x' => {
                self.written.push('\\');
                self.written.push(character);
                // The text in braces belongs to the escape.
                if matches!(character, 'p' | 'P' | 'x') && self.rest.next_if_eq(&'{').is_some() {
                    self.written.push('{');
                    for character in self.rest.by_ref() {
                        self.written.push(character);
                        if character == '}' {
                            break;
                        }
                    }
                }
                return Ok(());
            }
            punctuation if punctuation.is_ascii_punctuation() => {
                let _ = write!(self.written, "\\x{{{:x}}}", u32::from(punctuation));
                return Ok(());
            }
            other => {
                return Err(format!(
                    "\\{other} is not an escape of regular expressions of RE2"
                ));
            }
        };
        let negation = if character.is_ascii_uppercase() { "^" } else { "" };
        match (in_class, negation) {
            (true, "") => self.written.push_str(class),
            _ => {
                let _ = write!(self.written, "[{negation}{class}]");
            }
        }
        Ok(())
    }

    fn quoted_literal(&mut self) -> Result<(), String> {
        while let Some(character) = self.rest.next() {
            if character == '\\' && self.rest.next_if_eq(&'E').is_some() {
                return Ok(());
            }
            self.written
                .push_str(&regex::escape(character.encode_utf8(&mut [0; 4])));
        }
        Ok(())
    }

    /// A bracket expression: no nesting except named classes, and no set operations.
    fn class(&mut self) -> Result<(), String> {
        self.written.push('[');
        if self.rest.next_if_eq(&'^').is_some() {
            self.written.push('^');
        }
        let mut is_first = true;
        while let Some(character) = self.rest.next() {
            match character {
                ']' if !is_first => {
                    self.written.push(']');
                    return Ok(());
                }
                '\\' => self.escape(true)?,
                '[' if self.rest.peek() == Some(&':') => {
                    self.written.push('[');
                    for character in self.rest.by_ref() {
                        self.written.push(character);
                        if character == ']' {
                            break;
                        }
                    }
                }
                '[' | ']' | '&' | '~' => {
                    self.written.push('\\');
                    self.written.push(character);
                }
                '-' if self.rest.peek() == Some(&'-') => self.written.push_str("\\-"),
                _ => self.written.push(character),
            }
            is_first = false;
        }
        Err("a bracket is not closed".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        Pattern::new(pattern).unwrap().is_match(text).unwrap()
    }

    #[test]
    fn classes_are_ascii_only_as_in_go() {
        assert!(matches(r"^\d+$", "12"));
        assert!(!matches(r"^\d$", "٣"));
        assert!(!matches(r"^\w$", "é"));
        assert!(matches(r"^[^\W\d]$", "a"));
        assert!(matches(r"^[\D]$", "é"));
    }

    #[test]
    fn brackets_have_no_set_operators() {
        assert!(matches("^[a&&b]$", "&"));
        assert!(matches("^[[a]$", "["));
        assert!(matches("^[]a]$", "]"));
        assert!(matches("^[[:alpha:]]$", "x"));
        assert!(matches("^[a-z~~]$", "~"));
    }

    #[test]
    fn quotes_and_braces_are_as_in_go() {
        assert!(matches(r"^\Qa.b\E$", "a.b"));
        assert!(!matches(r"^\Qa.b\E$", "axb"));
        assert!(matches("^a{2}$", "aa"));
        assert!(matches("^a{,2}$", "a{,2}"));
        assert!(matches(r"^\x{41}\x42$", "AB"));
        assert!(matches(r"(?i)^AbC$", "aBc"));
        assert!(matches(r"(?i:a)B", "AB"));
        assert!(matches(r"^(?P<name>a)$", "a"));
    }

    #[test]
    fn patterns_that_go_rejects_are_refused() {
        for pattern in [
            "a**", "*a", "(?x)a", "a{1001}", r"\k", "[a", "(", "(?=a)", r"\", "a{2}{3}",
        ] {
            assert!(Pattern::new(pattern).is_err(), "{pattern}");
        }
        assert!(Pattern::new("((a{900}){900}){900}").is_err());
    }
}
