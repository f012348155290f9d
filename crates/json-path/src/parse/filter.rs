//! Parses filter expressions: `[?(@.name == 'a')]`.

use serde_json::Value;

use super::{Fault, Parsed, Parser};
use crate::path::{PathFilter, PathOperand, PathOperator};

/// The maximum nesting of filters.
const DEEPEST_FILTER: usize = 8;

impl Parser<'_> {
    /// Parses a filter without its parentheses.
    pub(super) fn filter(&mut self) -> Parsed<PathFilter> {
        if self.filters == DEEPEST_FILTER {
            return self.fault("filters nested more than eight deep");
        }
        self.filters += 1;
        let filter = self.comparison()?;
        self.filters -= 1;
        Ok(filter)
    }

    fn comparison(&mut self) -> Parsed<PathFilter> {
        self.skip_space();
        let position = self.position;
        let left = self.operand()?;
        self.skip_space();
        if self.peek() == Some(')') {
            return match left {
                PathOperand::Steps(steps) => Ok(PathFilter::Exists(steps)),
                PathOperand::Literal(_) => {
                    let problem = "expected \"@\"".to_owned();
                    Err(Fault { problem, position })
                }
            };
        }
        let operator = self.operator()?;
        self.skip_space();
        let right = self.operand()?;
        self.skip_space();
        match self.peek() {
            Some('&' | '|') => self.fault("only one comparison is allowed"),
            _ => Ok(PathFilter::Compare(left, operator, right)),
        }
    }

    fn operator(&mut self) -> Parsed<PathOperator> {
        for (written, operator) in [
            ("==", PathOperator::Equal),
            ("!=", PathOperator::NotEqual),
            ("<=", PathOperator::LessOrEqual),
            (">=", PathOperator::GreaterOrEqual),
            ("<", PathOperator::Less),
            (">", PathOperator::Greater),
        ] {
            if self.take(written) {
                return Ok(operator);
            }
        }
        match self.peek() {
            Some('&' | '|') => self.fault("only one comparison is allowed"),
            _ => self.fault("expected \")\" or one of == != < <= > >="),
        }
    }

    fn operand(&mut self) -> Parsed<PathOperand> {
        match self.peek() {
            Some('@') => {
                self.position += 1;
                Ok(PathOperand::Steps(self.steps()?))
            }
            Some('\'' | '"') => Ok(PathOperand::Literal(Value::String(self.quoted()?))),
            _ => {
                let start = self.position;
                while self
                    .peek()
                    .is_some_and(|character| character.is_ascii_alphanumeric() || "+-.".contains(character))
                {
                    self.position += 1;
                }
                let written = &self.text[start..self.position];
                // JSON has no leading plus; it must be followed by a digit.
                let written = written.strip_prefix('+').unwrap_or(written);
                serde_json::from_str(written)
                    .map(PathOperand::Literal)
                    .map_err(|_| {
                        let problem = "expected \"@\", a number, true, false, null or a text in quotes";
                        let problem = problem.to_owned();
                        let position = start;
                        Fault { problem, position }
                    })
            }
        }
    }
}
