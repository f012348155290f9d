//! Random Lua expressions with a single correct result: none depends on an order, an address or a clock.

use rand::{Rng, rngs::StdRng, seq::IndexedRandom};

/// The maximal nesting of expressions.
const DEEPEST: u32 = 4;

const NUMBERS: [&str; 14] = [
    "0",
    "1",
    "2",
    "3",
    "7",
    "-1",
    "-2.5",
    "0.1",
    "0.5",
    "10",
    "255",
    "1e15",
    "9007199254740992",
    "123456.5",
];

const TEXTS: [&str; 13] = [
    "''",
    "'a'",
    "'abc'",
    "'Hello World'",
    "'key=value'",
    "'10'",
    "' 12 '",
    "'1.5'",
    "'a.b/c-d'",
    "'äö€'",
    "'v1.23.4-rc.1'",
    "'a,b,,c'",
    "'  x  '",
];

/// Parts of patterns, each of which can be repeated.
const CLASSES: [&str; 17] = [
    ".", "%a", "%d", "%s", "%w", "%u", "%l", "%p", "%A", "%D", "%.", "%-", "[abc]", "[^a]", "[a-z]",
    "[%w_-]", "b",
];

/// Generates expressions from a source of randomness.
pub(crate) struct Expressions<'a> {
    chance: &'a mut StdRng,
}

impl<'a> Expressions<'a> {
    pub(crate) fn new(chance: &'a mut StdRng) -> Self {
        Self { chance }
    }

    /// Returns an expression of any type that JSON supports.
    pub(crate) fn any(&mut self) -> String {
        self.any_below(DEEPEST)
    }

    fn any_below(&mut self, depth: u32) -> String {
        match self.chance.random_range(0..10) {
            0..3 => self.number(depth),
            3..7 => self.text(depth),
            7 => self.truth(depth),
            _ => self.list(depth),
        }
    }

    fn one_of(&mut self, from: &[&str]) -> String {
        (*from.choose(self.chance).unwrap_or(&"nil")).to_owned()
    }

    fn place(&mut self) -> i32 {
        self.chance.random_range(-6..9)
    }

    fn number(&mut self, depth: u32) -> String {
        if depth == 0 {
            return self.one_of(&NUMBERS);
        }
        let depth = depth - 1;
        match self.chance.random_range(0..18) {
            0..3 => self.one_of(&NUMBERS),
            3..6 => {
                let operator = self.one_of(&["+", "-", "*"]);
                format!("({} {operator} {})", self.number(depth), self.number(depth))
            }
            // Only whole numbers: Go and C print different last digits of others.
            6 if self.chance.random() => {
                format!("({} % {})", self.place(), self.one_of(&["2", "3", "-4", "7"]))
            }
            6 => format!(
                "({} ^ {})",
                self.one_of(&["2", "3", "10", "0.5"]),
                self.chance.random_range(0..6)
            ),
            7 if self.chance.random() => {
                format!("({} / {})", self.number(depth), self.one_of(&["2", "3", "-0.5"]))
            }
            7 => format!("-({})", self.number(depth)),
            8 => {
                let function = self.one_of(&["floor", "ceil", "abs", "sqrt", "modf"]);
                format!("(math.{function}({}))", self.number(depth))
            }
            9 => {
                let function = self.one_of(&["max", "min"]);
                format!("math.{function}({}, {})", self.number(depth), self.number(depth))
            }
            10 => format!("#{}", self.text(depth)),
            11 => format!("#{}", self.list(depth)),
            12 => format!("(tonumber({}) or -7)", self.text(depth)),
            13 => format!("({}:byte({}) or -8)", self.text(depth), self.place()),
            14 => format!("({}:find({}) or -9)", self.text(depth), self.pattern()),
            15 => format!("(select(2, {}:find({})) or -9)", self.text(depth), self.pattern()),
            16 => format!(
                "select('#', {}, {})",
                self.any_below(depth),
                self.any_below(depth)
            ),
            _ => format!(
                "({} and {} or {})",
                self.truth(depth),
                self.number(depth),
                self.number(depth)
            ),
        }
    }

    fn text(&mut self, depth: u32) -> String {
        if depth == 0 {
            return format!("({})", self.one_of(&TEXTS));
        }
        let depth = depth - 1;
        match self.chance.random_range(0..16) {
            0..3 => format!("({})", self.one_of(&TEXTS)),
            3 => format!("({} .. {})", self.text(depth), self.text(depth)),
            4 | 5 => format!("(tostring({}))", self.number(depth)),
            6 => format!("(tostring({}))", self.truth(depth)),
            7 => format!("({}:sub({}, {}))", self.text(depth), self.place(), self.place()),
            // Only ASCII letters, since Go also changes the case of others.
            8 => format!(
                "(({}):{}())",
                self.one_of(&TEXTS[..8]),
                self.one_of(&["upper", "lower", "reverse"])
            ),
            // A capture can be a position, which is a number.
            9 | 10 => format!(
                "tostring({}:match({}) or 'none')",
                self.text(depth),
                self.pattern()
            ),
            11 => format!(
                "tostring((select(2, {}:match({}))) or 'none')",
                self.text(depth),
                self.pattern()
            ),
            12 => {
                let format = self.one_of(&["%d", "%5d", "%-5d", "%05d", "%+d", "%x", "%X", "%o", "%i"]);
                format!(
                    "(string.format('{format}', {}))",
                    self.chance.random_range(0..100_000)
                )
            }
            13 => {
                let format = self.one_of(&["%.2f", "%8.3f", "%e", "%.0f", "%+.1f"]);
                format!("(string.format('{format}', {}))", self.one_of(&NUMBERS))
            }
            14 => {
                let format = self.one_of(&["%s", "%s%%", "<%s>"]);
                format!("(string.format('{format}', {}))", self.text(depth))
            }
            _ => format!(
                "(table.concat({}, {}))",
                self.list_of(depth, Self::text),
                self.one_of(&TEXTS)
            ),
        }
    }

    fn truth(&mut self, depth: u32) -> String {
        if depth == 0 {
            return self.one_of(&["true", "false"]);
        }
        let depth = depth - 1;
        match self.chance.random_range(0..8) {
            0 => self.one_of(&["true", "false"]),
            1 => format!("not {}", self.truth(depth)),
            2 => {
                let operator = self.one_of(&["<", "<=", ">", ">=", "==", "~="]);
                format!("({} {operator} {})", self.number(depth), self.number(depth))
            }
            3 => {
                let operator = self.one_of(&["<", "<=", "==", "~="]);
                format!("({} {operator} {})", self.text(depth), self.text(depth))
            }
            4 => format!("({} and {})", self.truth(depth), self.truth(depth)),
            5 => format!("({} == {})", self.any_below(depth), self.any_below(depth)),
            6 => format!("(type({}) == 'number')", self.any_below(depth)),
            // An expression that fails inside `pcall`.
            _ => format!(
                "(pcall(function() return {} + {} end))",
                self.any_below(depth),
                self.any_below(depth)
            ),
        }
    }

    fn list(&mut self, depth: u32) -> String {
        if depth == 0 {
            return "{}".to_owned();
        }
        let depth = depth - 1;
        match self.chance.random_range(0..8) {
            0..3 => self.list_of(depth, Self::any_below),
            3 => format!("{{a = {}, b = {}}}", self.any_below(depth), self.any_below(depth)),
            4 => {
                let kind = if self.chance.random() {
                    Self::number
                } else {
                    Self::text
                };
                let list = self.list_of(depth, kind);
                let less = self.one_of(&["", ", function(a, b) return b < a end"]);
                format!("(function() local t = {list} table.sort(t{less}) return t end)()")
            }
            5 => format!(
                "(function() local t = {} table.insert(t, {}) table.insert(t, 1, {}) table.remove(t) return t end)()",
                self.list_of(depth, Self::any_below),
                self.any_below(depth),
                self.any_below(depth)
            ),
            6 => format!(
                "(function() local t = {{}} for part in {}:gmatch({}) do t[#t + 1] = part end return t end)()",
                self.text(depth),
                self.pattern_without_anchor()
            ),
            _ => format!(
                "(function() local n = 0 for i, v in ipairs({}) do n = n + i end \
                 for k, v in pairs({}) do if type(v) == 'number' then n = n + 1 end end return {{n}} end)()",
                self.list(depth),
                self.list(depth)
            ),
        }
    }

    fn list_of(&mut self, depth: u32, item: fn(&mut Self, u32) -> String) -> String {
        let items: Vec<_> = (0..self.chance.random_range(0..4))
            .map(|_| item(self, depth))
            .collect();
        format!("{{{}}}", items.join(", "))
    }

    fn pattern(&mut self) -> String {
        let anchor = self.one_of(&["", "", "^"]);
        format!("'{anchor}{}{}'", self.parts(), self.one_of(&["", "", "$"]))
    }

    fn pattern_without_anchor(&mut self) -> String {
        format!("'{}'", self.parts())
    }

    fn parts(&mut self) -> String {
        let count = self.chance.random_range(1..4);
        (0..count).map(|_| self.part()).collect()
    }

    fn part(&mut self) -> String {
        let class = self.one_of(&CLASSES);
        let repeated = format!("{class}{}", self.one_of(&["", "", "*", "+", "-", "?"]));
        match self.chance.random_range(0..6) {
            0 => format!("({repeated})"),
            1 => format!("({repeated}{})", self.one_of(&CLASSES)),
            2 => "()".to_owned(),
            _ => repeated,
        }
    }
}
