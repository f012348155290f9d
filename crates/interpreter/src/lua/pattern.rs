//! Patterns of Lua 5.1 (manual, §5.4.1) with a limit on steps: matching in the C library cannot be
//! interrupted, and a short pattern may backtrack without end.

/// Why a pattern has no result.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum PatternError {
    /// The pattern is malformed.
    #[error("{0}")]
    Malformed(&'static str),
    /// The search exceeded the budget.
    #[error(transparent)]
    Stopped(#[from] mlua::Error),
}

/// A capture of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Capture {
    /// The start and end of captured bytes.
    Text(usize, usize),
    /// A position in the text, from 1.
    Position(usize),
}

/// The position of a match, and its captures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Match {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) captures: Vec<Capture>,
}

/// A capture during matching.
#[derive(Clone, Copy, Debug)]
struct Part {
    start: usize,
    length: Length,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Length {
    Unfinished,
    Position,
    Known(usize),
}

struct Matcher<'a> {
    text: &'a [u8],
    pattern: &'a [u8],
    parts: Vec<Part>,
    depth: usize,
    /// Steps that are not yet counted in the budget.
    steps: u64,
    spend: &'a dyn Fn(u64) -> mlua::Result<()>,
}

/// `LUA_MAXCAPTURES`
const CAPTURES: usize = 32;

/// The maximum nesting of backtracking items, as `MAXCCALLS` of later versions.
const DEPTH: usize = 200;

/// The number of steps between two budget checks.
const PERIOD: u64 = 1024;

/// How many bytes of a set count as one step.
const SET: usize = 8;

const ENDS_WITH_PERCENT: PatternError = PatternError::Malformed("malformed pattern (ends with '%')");
const MISSING_BRACKET: PatternError = PatternError::Malformed("malformed pattern (missing ']')");
const TOO_COMPLEX: PatternError = PatternError::Malformed("pattern too complex");

type Matched = Result<Option<usize>, PatternError>;

/// Reports whether a pattern has no special characters.
pub(super) fn is_plain(pattern: &[u8]) -> bool {
    !pattern.iter().any(|byte| b"^$*+?.([%-".contains(byte))
}

/// Finds the first match from `start` on. `anchored`: whether a leading `^` matches only at `start`. `spend`
/// is called with steps from time to time and may end the search.
///
/// # Errors
///
/// When the pattern is malformed, or `spend` fails.
pub(super) fn search(
    text: &[u8],
    pattern: &[u8],
    start: usize,
    anchored: bool,
    spend: &dyn Fn(u64) -> mlua::Result<()>,
) -> Result<Option<Match>, PatternError> {
    let (pattern, is_anchored) = match pattern.strip_prefix(b"^") {
        Some(rest) if anchored => (rest, true),
        _ => (pattern, false),
    };
    let mut matcher = Matcher {
        text,
        pattern,
        parts: Vec::new(),
        depth: 0,
        steps: 0,
        spend,
    };
    for start in start..=text.len() {
        matcher.parts.clear();
        if let Some(end) = matcher.matches(start, 0)? {
            let captures = matcher.captures()?;
            return Ok(Some(Match { start, end, captures }));
        }
        if is_anchored {
            break;
        }
    }
    Ok(None)
}

impl Matcher<'_> {
    fn step(&mut self) -> Result<(), PatternError> {
        self.steps += 1;
        if self.steps >= PERIOD {
            (self.spend)(std::mem::take(&mut self.steps))?;
        }
        Ok(())
    }

    /// Returns the end of a match at `at` of the pattern's rest from `from`.
    fn matches(&mut self, at: usize, from: usize) -> Matched {
        self.depth += 1;
        let matched = match self.depth > DEPTH {
            true => Err(TOO_COMPLEX),
            false => self.matches_items(at, from),
        };
        self.depth -= 1;
        matched
    }

    fn matches_items(&mut self, mut at: usize, mut from: usize) -> Matched {
        loop {
            self.step()?;
            let Some(item) = self.pattern.get(from) else {
                return Ok(Some(at));
            };
            let next = self.pattern.get(from + 1);
            match (item, next) {
                (b'(', Some(b')')) => return self.begin(at, from + 2, Length::Position),
                (b'(', _) => return self.begin(at, from + 1, Length::Unfinished),
                (b')', _) => return self.end(at, from + 1),
                (b'$', None) => return Ok((at == self.text.len()).then_some(at)),
                (b'%', Some(b'b')) => match self.balanced(at, from + 2)? {
                    Some(end) => (at, from) = (end, from + 4),
                    None => return Ok(None),
                },
                (b'%', Some(b'f')) => match self.is_frontier(at, from + 2)? {
                    Some(end) => from = end,
                    None => return Ok(None),
                },
                (b'%', Some(digit)) if digit.is_ascii_digit() => match self.repeated(at, *digit)? {
                    Some(end) => (at, from) = (end, from + 2),
                    None => return Ok(None),
                },
                _ => {
                    let end = self.class_end(from)?;
                    self.steps += ((end - from) / SET) as u64;
                    let is_single = self.is_single(at, from, end);
                    match self.pattern.get(end) {
                        Some(b'?') => {
                            if is_single && let Some(matched) = self.matches(at + 1, end + 1)? {
                                return Ok(Some(matched));
                            }
                            from = end + 1;
                        }
                        Some(b'*') => return self.match_most(at, from, end),
                        Some(b'+') if is_single => return self.match_most(at + 1, from, end),
                        Some(b'+') => return Ok(None),
                        Some(b'-') => return self.match_least(at, from, end),
                        _ if is_single => (at, from) = (at + 1, end),
                        _ => return Ok(None),
                    }
                }
            }
        }
    }

    fn match_most(&mut self, at: usize, from: usize, end: usize) -> Matched {
        let mut count = 0;
        while self.is_single(at + count, from, end) {
            self.step()?;
            count += 1;
        }
        for count in (0..=count).rev() {
            if let Some(matched) = self.matches(at + count, end + 1)? {
                return Ok(Some(matched));
            }
        }
        Ok(None)
    }

    fn match_least(&mut self, mut at: usize, from: usize, end: usize) -> Matched {
        loop {
            if let Some(matched) = self.matches(at, end + 1)? {
                return Ok(Some(matched));
            }
            if !self.is_single(at, from, end) {
                return Ok(None);
            }
            at += 1;
        }
    }

    fn begin(&mut self, at: usize, from: usize, length: Length) -> Matched {
        if self.parts.len() >= CAPTURES {
            return Err(PatternError::Malformed("too many captures"));
        }
        self.parts.push(Part { start: at, length });
        let matched = self.matches(at, from)?;
        if matched.is_none() {
            self.parts.pop();
        }
        Ok(matched)
    }

    fn end(&mut self, at: usize, from: usize) -> Matched {
        let open = |part: &Part| part.length == Length::Unfinished;
        let index = self
            .parts
            .iter()
            .rposition(open)
            .ok_or(PatternError::Malformed("invalid pattern capture"))?;
        self.parts[index].length = Length::Known(at - self.parts[index].start);
        let matched = self.matches(at, from)?;
        if matched.is_none() {
            self.parts[index].length = Length::Unfinished;
        }
        Ok(matched)
    }

    fn balanced(&mut self, at: usize, from: usize) -> Matched {
        let [Some(&opens), Some(&closes)] = [self.pattern.get(from), self.pattern.get(from + 1)] else {
            return Err(PatternError::Malformed("unbalanced pattern"));
        };
        if self.text.get(at) != Some(&opens) {
            return Ok(None);
        }
        let mut depth = 1;
        for end in at + 1..self.text.len() {
            self.step()?;
            let byte = self.text[end];
            if byte == closes {
                depth -= 1;
                if depth == 0 {
                    return Ok(Some(end + 1));
                }
            } else if byte == opens {
                depth += 1;
            }
        }
        Ok(None)
    }

    /// Returns the end of a frontier's set if `at` is a frontier.
    fn is_frontier(&mut self, at: usize, from: usize) -> Matched {
        if self.pattern.get(from) != Some(&b'[') {
            return Err(PatternError::Malformed("missing '[' after '%f' in pattern"));
        }
        let end = self.class_end(from)?;
        self.steps += ((end - from) / SET) as u64;
        let byte = |at: Option<usize>| at.and_then(|at| self.text.get(at)).copied().unwrap_or(0);
        let is_before = self.is_in_set(byte(at.checked_sub(1)), from, end - 1);
        let is_here = self.is_in_set(byte(Some(at)), from, end - 1);
        Ok((!is_before && is_here).then_some(end))
    }

    fn repeated(&mut self, at: usize, digit: u8) -> Matched {
        let index = usize::from(digit).checked_sub(usize::from(b'1'));
        let part = index.and_then(|index| self.parts.get(index));
        let Some(Part {
            start,
            length: Length::Known(length),
        }) = part.copied()
        else {
            return Err(PatternError::Malformed("invalid capture index"));
        };
        self.steps += length as u64;
        let is_same = self.text[at..].starts_with(&self.text[start..start + length]);
        Ok(is_same.then_some(at + length))
    }

    /// Returns the end of the class that starts at `from`.
    fn class_end(&self, from: usize) -> Result<usize, PatternError> {
        match self.pattern[from] {
            b'%' if from + 1 >= self.pattern.len() => Err(ENDS_WITH_PERCENT),
            b'%' => Ok(from + 2),
            b'[' => {
                let mut at = from + 1;
                if self.pattern.get(at) == Some(&b'^') {
                    at += 1;
                }
                // A leading bracket is part of the set.
                loop {
                    let byte = self.pattern.get(at).ok_or(MISSING_BRACKET)?;
                    at += match byte {
                        b'%' => 2,
                        _ => 1,
                    };
                    if self.pattern.get(at).ok_or(MISSING_BRACKET)? == &b']' {
                        return Ok(at + 1);
                    }
                }
            }
            _ => Ok(from + 1),
        }
    }

    fn is_single(&mut self, at: usize, from: usize, end: usize) -> bool {
        let Some(&byte) = self.text.get(at) else {
            return false;
        };
        match self.pattern[from] {
            b'.' => true,
            b'%' => is_in_class(byte, self.pattern[from + 1]),
            b'[' => self.is_in_set(byte, from, end - 1),
            expected => expected == byte,
        }
    }

    /// Reports whether a byte is in the set between the brackets at `from` and `end`.
    fn is_in_set(&mut self, byte: u8, from: usize, end: usize) -> bool {
        self.steps += ((end - from) / SET) as u64;
        let mut at = from + 1;
        let is_in = match self.pattern.get(at) {
            Some(b'^') => {
                at += 1;
                false
            }
            _ => true,
        };
        while at < end {
            let first = self.pattern[at];
            if first == b'%' {
                if is_in_class(byte, self.pattern[at + 1]) {
                    return is_in;
                }
                at += 2;
            } else if self.pattern[at + 1] == b'-' && at + 2 < end {
                if (first..=self.pattern[at + 2]).contains(&byte) {
                    return is_in;
                }
                at += 3;
            } else {
                if first == byte {
                    return is_in;
                }
                at += 1;
            }
        }
        !is_in
    }

    fn captures(&self) -> Result<Vec<Capture>, PatternError> {
        let capture = |part: &Part| match part.length {
            Length::Known(length) => Ok(Capture::Text(part.start, part.start + length)),
            Length::Position => Ok(Capture::Position(part.start + 1)),
            Length::Unfinished => Err(PatternError::Malformed("unfinished capture")),
        };
        self.parts.iter().map(capture).collect()
    }
}

fn is_in_class(byte: u8, class: u8) -> bool {
    let is_in = match class.to_ascii_lowercase() {
        b'a' => byte.is_ascii_alphabetic(),
        b'c' => byte.is_ascii_control(),
        b'd' => byte.is_ascii_digit(),
        b'l' => byte.is_ascii_lowercase(),
        b'p' => byte.is_ascii_punctuation(),
        // `isspace` of C includes the vertical tab.
        b's' => byte.is_ascii_whitespace() || byte == 0x0b,
        b'u' => byte.is_ascii_uppercase(),
        b'w' => byte.is_ascii_alphanumeric(),
        b'x' => byte.is_ascii_hexdigit(),
        b'z' => byte == 0,
        _ => return class == byte,
    };
    is_in != class.is_ascii_uppercase()
}
