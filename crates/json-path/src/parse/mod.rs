//! Parses a path into its steps.

mod filter;

use thiserror::Error;

use crate::path::{Path, PathStep};

/// Why a text is not a path.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text:?} is not a JSONPath: {problem} at column {column}")]
pub struct PathError {
    text: String,
    problem: String,
    column: usize,
}

/// The maximum length of a path, in bytes.
const LONGEST: usize = 4096;

/// The maximum number of `..` in a path.
const MOST_DESCENTS: usize = 4;

struct Parser<'t> {
    text: &'t str,
    position: usize,
    filters: usize,
}

type Parsed<T> = Result<T, Fault>;

/// A problem, and its byte offset.
struct Fault {
    problem: String,
    position: usize,
}

impl PathError {
    /// The column of the problem, in characters from 1.
    pub fn column(&self) -> usize {
        self.column
    }
}

impl Path {
    /// Parses a path.
    ///
    /// # Errors
    ///
    /// When the text is not a path, is longer than 4096 bytes, or has more than four `..` or filters nested
    /// more than eight deep.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        let mut parser = Parser {
            text,
            position: 0,
            filters: 0,
        };
        match parser.path() {
            Ok(steps) => Ok(Self {
                text: text.to_owned(),
                steps,
            }),
            Err(Fault { problem, position }) => {
                let before = text.char_indices().take_while(|(index, _)| *index < position);
                let shown = text.char_indices().nth(256).map_or(text, |(end, _)| &text[..end]);
                Err(PathError {
                    text: shown.to_owned(),
                    problem,
                    column: before.count() + 1,
                })
            }
        }
    }
}

impl Parser<'_> {
    fn path(&mut self) -> Parsed<Vec<PathStep>> {
        if self.text.len() > LONGEST {
            return self.fault("more than 4096 bytes");
        }
        self.skip_space();
        let is_braced = self.take("{");
        self.skip_space();
        let _ = self.take("$") || self.take("@");
        let steps = self.steps()?;
        self.skip_space();
        if is_braced {
            self.expect("}")?;
            self.skip_space();
        }
        match self.peek() {
            None => Ok(steps),
            Some(_) if is_braced => self.fault("text after \"}\""),
            Some(character) => self.fault(format!("unexpected {character:?}")),
        }
    }

    /// Parses as many steps as possible.
    fn steps(&mut self) -> Parsed<Vec<PathStep>> {
        let mut steps: Vec<PathStep> = Vec::new();
        let start = self.position;
        loop {
            if self.take("..") {
                self.check_descent(&steps)?;
                steps.push(PathStep::Descent);
                if self.is_name() {
                    steps.push(self.name()?);
                }
            } else if self.take(".") {
                // The root object, and the optional dot before a bracket.
                let is_object = steps.is_empty() && self.filters == 0;
                match self.peek() {
                    Some('[') => {}
                    _ if self.is_name() => steps.push(self.name()?),
                    _ if is_object && self.position == start + 1 => return Ok(steps),
                    _ => return self.fault("expected the name of a field"),
                }
            } else if self.take("[") {
                steps.push(self.bracket()?);
            } else if self.filters == 0 && steps.is_empty() && self.is_name() {
                steps.push(self.name()?);
            } else {
                return Ok(steps);
            }
        }
    }

    fn check_descent(&self, steps: &[PathStep]) -> Parsed<()> {
        let is_descent = |step: &&PathStep| matches!(step, PathStep::Descent);
        let problem = if self.filters > 0 {
            "\"..\" in a filter"
        } else if steps.last().as_ref().is_some_and(is_descent) {
            "\"..\" twice"
        } else if steps.iter().filter(is_descent).count() == MOST_DESCENTS {
            "more than four \"..\""
        } else {
            return Ok(());
        };
        let position = self.position - 2;
        let problem = problem.to_owned();
        Err(Fault { problem, position })
    }

    /// Reports whether a field name continues here.
    fn is_name(&self) -> bool {
        self.peek().is_some_and(|character| !self.ends_name(character))
    }

    fn ends_name(&self, character: char) -> bool {
        let always = character.is_whitespace() || ".,[]{}$@".contains(character);
        always || self.filters > 0 && "=!<>~()&|".contains(character)
    }

    /// Parses a field name; a backslash escapes the next character.
    fn name(&mut self) -> Parsed<PathStep> {
        let start = self.position;
        let mut name = String::new();
        while let Some(character) = self.peek().filter(|character| !self.ends_name(*character)) {
            self.position += character.len_utf8();
            if character == '\\' {
                let Some(escaped) = self.next() else {
                    return self.fault("expected a character after \"\\\"");
                };
                name.push(escaped);
            } else {
                name.push(character);
            }
        }
        let is_wildcard = &self.text[start..self.position] == "*";
        Ok(if is_wildcard {
            PathStep::Wildcard
        } else {
            PathStep::Field(name)
        })
    }

    /// Parses the rest of a bracket after its opening character.
    fn bracket(&mut self) -> Parsed<PathStep> {
        self.skip_space();
        if self.take("?") {
            self.skip_space();
            self.expect("(")?;
            let filter = self.filter()?;
            self.skip_space();
            self.expect(")")?;
            self.skip_space();
            self.expect("]")?;
            return Ok(PathStep::Filter(filter));
        }
        let mut steps = vec![self.selector()?];
        self.skip_space();
        while self.take(",") {
            self.skip_space();
            steps.push(self.selector()?);
            self.skip_space();
        }
        self.expect("]")?;
        Ok(if steps.len() == 1 {
            steps.remove(0)
        } else {
            PathStep::Union(steps)
        })
    }

    fn selector(&mut self) -> Parsed<PathStep> {
        match self.peek() {
            Some('*') => {
                self.position += 1;
                Ok(PathStep::Wildcard)
            }
            Some('\'' | '"') => Ok(PathStep::Field(self.quoted()?)),
            Some('-' | ':' | '0'..='9') => self.slice(),
            None => self.fault("expected \"]\""),
            Some(_) => self.fault("expected an index, a slice, \"*\", a filter or a name in quotes"),
        }
    }

    fn slice(&mut self) -> Parsed<PathStep> {
        let start = self.integer()?;
        self.skip_space();
        if !self.take(":") {
            return match start {
                Some(index) => Ok(PathStep::Index(index)),
                None => self.fault("expected an index"),
            };
        }
        self.skip_space();
        let end = self.integer()?;
        self.skip_space();
        let mut step = 1;
        if self.take(":") {
            self.skip_space();
            let position = self.position;
            let written = self.integer()?.unwrap_or(1);
            step = usize::try_from(written).unwrap_or_default();
            if step == 0 {
                let problem = "expected a step above 0".to_owned();
                return Err(Fault { problem, position });
            }
        }
        Ok(PathStep::Slice { start, end, step })
    }

    fn integer(&mut self) -> Parsed<Option<i64>> {
        let start = self.position;
        let _ = self.take("-");
        while self.peek().is_some_and(|character| character.is_ascii_digit()) {
            self.position += 1;
        }
        let written = &self.text[start..self.position];
        if written.is_empty() {
            return Ok(None);
        }
        match written.parse() {
            Ok(index) => Ok(Some(index)),
            Err(_) => {
                let problem = "expected an index".to_owned();
                let position = start;
                Err(Fault { problem, position })
            }
        }
    }

    /// Parses a string in quotes; a backslash escapes the next character, or stands for a line end or tab
    /// before n, r or t.
    fn quoted(&mut self) -> Parsed<String> {
        let quote = self.next();
        let mut text = String::new();
        loop {
            match self.next() {
                None => {
                    let quote = quote.unwrap_or('"');
                    return self.fault(format!("expected {quote:?}"));
                }
                end if end == quote => return Ok(text),
                Some('\\') => match self.next() {
                    Some('n') => text.push('\n'),
                    Some('r') => text.push('\r'),
                    Some('t') => text.push('\t'),
                    escaped => text.extend(escaped),
                },
                Some(character) => text.push(character),
            }
        }
    }

    fn peek(&self) -> Option<char> {
        self.text[self.position..].chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.position += next.len_utf8();
        Some(next)
    }

    fn take(&mut self, expected: &str) -> bool {
        let is_there = self.text[self.position..].starts_with(expected);
        if is_there {
            self.position += expected.len();
        }
        is_there
    }

    fn expect(&mut self, expected: &str) -> Parsed<()> {
        if self.take(expected) {
            return Ok(());
        }
        self.fault(format!("expected {expected:?}"))
    }

    fn skip_space(&mut self) {
        while let Some(space) = self.peek().filter(|character| character.is_whitespace()) {
            self.position += space.len_utf8();
        }
    }

    fn fault<T>(&self, problem: impl Into<String>) -> Parsed<T> {
        Err(Fault {
            problem: problem.into(),
            position: self.position,
        })
    }
}
