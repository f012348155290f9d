//! Any script ends within its limits, and does not affect the next call of the same program.

#![no_main]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    fmt::Write,
    sync::{
        LazyLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use arbitrary::{Arbitrary, Unstructured};
use interpreter::{
    Answer, Operation, Question,
    lua::{LuaLimits, LuaProgram},
};
use libfuzzer_sys::fuzz_target;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

/// Counts allocated memory of Lua and Rust.
struct Counting;

static USED: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let used = USED.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(used, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        USED.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let used = USED.fetch_add(size, Ordering::Relaxed) + size;
        let used = used - layout.size();
        USED.fetch_sub(layout.size(), Ordering::Relaxed);
        MOST.fetch_max(used, Ordering::Relaxed);
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// A generated script.
#[derive(Arbitrary, Debug)]
enum Script {
    /// Arbitrary text.
    Text(String),
    /// Mostly valid Lua.
    Statements(Vec<Statement>),
}

#[derive(Arbitrary, Debug)]
enum Statement {
    Local(Variable, Expression),
    Global(Variable, Expression),
    Index(Expression, Expression, Expression),
    Library(Function, Expression),
    Do(Expression),
    While(Expression, Vec<Statement>),
    For(Expression, Expression, Expression, Vec<Statement>),
    Pairs(Expression, Vec<Statement>),
    If(Expression, Vec<Statement>, Vec<Statement>),
    Function(Variable, Vec<Statement>),
    Double(Variable, u8),
    Deeper(Variable, u16),
    Return(Expression),
    Break,
}

#[derive(Arbitrary, Debug)]
enum Expression {
    Nil,
    True,
    Number(f64),
    Small(i8),
    Special(Special),
    Text(String),
    Pattern(Vec<PatternPart>),
    Variable(Variable),
    Object,
    Global(Function),
    Table(Vec<Field>),
    Function(Vec<Statement>),
    Index(Box<Expression>, Box<Expression>),
    Binary(Operator, Box<Expression>, Box<Expression>),
    Length(Box<Expression>),
    Not(Box<Expression>),
    Call(Function, Vec<Expression>),
    CallValue(Box<Expression>, Vec<Expression>),
    Method(Box<Expression>, Function, Vec<Expression>),
    Protected(Vec<Statement>),
    Handled(Vec<Statement>, Vec<Statement>),
}

#[derive(Arbitrary, Debug)]
enum Field {
    Item(Expression),
    Keyed(Expression, Expression),
}

#[derive(Debug)]
struct Variable(&'static str);

#[derive(Debug)]
struct Function(&'static str);

#[derive(Debug)]
struct Special(&'static str);

#[derive(Debug)]
struct Operator(&'static str);

#[derive(Debug)]
struct PatternPart(&'static str);

/// Generates types whose values are chosen from a list.
macro_rules! one_of {
    ($name:ident: $($choice:literal)+) => {
        impl<'a> Arbitrary<'a> for $name {
            fn arbitrary(input: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
                input.choose(&[$($choice),+]).map(|choice| Self(choice))
            }

            fn size_hint(_: usize) -> (usize, Option<usize>) {
                (1, Some(1))
            }
        }
    };
}

one_of!(Variable: "a" "b" "c" "d" "f" "t" "s" "i");
one_of!(Special: "1/0" "-1/0" "0/0" "2^31" "2^53" "2^63" "-2^31" "1e300" "1e6" "0.5" "-0" "'1e308'" "'0x7fffffff'");
one_of!(Operator: "+" "-" "*" "/" "%" "^" ".." "==" "~=" "<" "<=" ">" ">=" " and " " or ");
one_of!(PatternPart: "." "a" "%a" "%1" "%2" "(" ")" "()" "*" "+" "-" "?" "^" "$" "%b" "%bab" "%f" "%f[a]" "[" "]" "[^a]" "[a-z]" "[%a-]" "%" "%z" ".-" "a*");
one_of!(Function:
    "_G" "assert" "error" "ipairs" "next" "pairs" "select" "tonumber" "tostring" "type" "unpack" "pcall" "xpcall" "print" "require"
    "collectgarbage" "getmetatable" "setmetatable" "rawget" "rawset" "rawequal" "load" "loadstring" "setfenv" "getfenv" "newproxy"
    "coroutine" "debug" "io" "package" "os" "math" "string" "table" "kube" "_VERSION"
    "string.byte" "string.char" "string.find" "string.format" "string.gmatch" "string.gsub" "string.len" "string.lower" "string.match"
    "string.rep" "string.reverse" "string.sub" "string.upper" "string.dump" "string.own"
    "table.concat" "table.insert" "table.remove" "table.sort" "table.getn" "table.maxn" "table.foreach" "table.setn"
    "math.abs" "math.ceil" "math.floor" "math.fmod" "math.frexp" "math.huge" "math.ldexp" "math.log" "math.max" "math.min" "math.modf"
    "math.pi" "math.pow" "math.random" "math.randomseed" "math.sqrt" "os.time" "os.date" "os.exit" "os.getenv"
    "kube.resourceAdd" "kube.getResourceQuantity" "kube.accuratePodRequirements" "kube.getPodDependencies"
    "ReflectStatus" "InterpretHealth" "Retain" "GetReplicas" "GetDependencies");

impl Script {
    fn source(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Statements(statements) => block(statements),
        }
    }
}

/// A block may end with one statement that leaves it.
fn block(statements: &[Statement]) -> String {
    let mut source = String::new();
    for statement in statements {
        statement.write(&mut source);
    }
    source
}

impl Statement {
    fn write(&self, source: &mut String) {
        let written = match self {
            Self::Local(variable, value) => format!("local {} = {}", variable.0, value.source()),
            Self::Global(variable, value) => format!("{} = {}", variable.0, value.source()),
            Self::Index(table, key, value) => {
                format!(
                    "local t = {} t[{}] = {}",
                    table.source(),
                    key.source(),
                    value.source()
                )
            }
            Self::Library(function, value) if function.0.contains('.') => {
                format!("{} = {}", function.0, value.source())
            }
            Self::Library(function, value) => format!("{}[1] = {}", function.0, value.source()),
            Self::Do(value) => format!("local _ = {}", value.source()),
            Self::While(condition, body) => format!("while {} do {} end", condition.source(), block(body)),
            Self::For(from, to, step, body) => format!(
                "for i = {}, {}, {} do {} end",
                from.source(),
                to.source(),
                step.source(),
                block(body)
            ),
            Self::Pairs(table, body) => {
                format!("for a, b in pairs({}) do {} end", table.source(), block(body))
            }
            Self::If(condition, body, other) => {
                format!(
                    "if {} then {} else {} end",
                    condition.source(),
                    block(body),
                    block(other)
                )
            }
            Self::Function(variable, body) => {
                format!("local function {}(a, b, ...) {} end", variable.0, block(body))
            }
            Self::Double(variable, times) => {
                let name = variable.0;
                format!("local {name} = 'x' for i = 1, {times} do {name} = {name} .. {name} end")
            }
            Self::Deeper(variable, times) => {
                let name = variable.0;
                format!("local {name} = {{}} for i = 1, {times} do {name} = {{{name}, a = {name}}} end")
            }
            Self::Return(value) => format!("do return {} end", value.source()),
            Self::Break => "while true do break end".to_owned(),
        };
        source.push_str(&written);
        source.push('\n');
    }
}

impl Expression {
    fn source(&self) -> String {
        match self {
            Self::Nil => "nil".to_owned(),
            Self::True => "true".to_owned(),
            Self::Number(number) if number.is_finite() => format!("({number:e})"),
            Self::Number(_) => "(0/0)".to_owned(),
            Self::Small(number) => format!("({number})"),
            Self::Special(special) => format!("({})", special.0),
            Self::Text(text) => quote(text.as_bytes()),
            Self::Pattern(parts) => {
                let pattern: String = parts.iter().map(|part| part.0).collect();
                quote(pattern.as_bytes())
            }
            Self::Variable(variable) => variable.0.to_owned(),
            Self::Object => "obj".to_owned(),
            Self::Global(function) => function.0.to_owned(),
            Self::Table(fields) => {
                let fields: String = fields.iter().map(Field::source).collect();
                format!("{{{fields}}}")
            }
            Self::Function(body) => format!("(function(a, b, ...) {} end)", block(body)),
            Self::Index(table, key) => format!("({})[{}]", table.source(), key.source()),
            Self::Binary(operator, left, right) => {
                format!("(({}){}({}))", left.source(), operator.0, right.source())
            }
            Self::Length(value) => format!("(#({}))", value.source()),
            Self::Not(value) => format!("(not ({}))", value.source()),
            Self::Call(function, values) => format!("{}({})", function.0, comma_separated(values)),
            Self::CallValue(function, values) => {
                format!("({})({})", function.source(), comma_separated(values))
            }
            Self::Method(value, function, values) => {
                let name = function.0.rsplit('.').next().unwrap_or(function.0);
                format!("({}):{name}({})", value.source(), comma_separated(values))
            }
            Self::Protected(body) => format!("pcall(function() {} end)", block(body)),
            Self::Handled(body, handler) => {
                format!(
                    "xpcall(function() {} end, function(a) {} end)",
                    block(body),
                    block(handler)
                )
            }
        }
    }
}

fn comma_separated(values: &[Expression]) -> String {
    let values: Vec<_> = values.iter().map(Expression::source).collect();
    values.join(", ")
}

fn quote(text: &[u8]) -> String {
    let mut quoted = String::from("(\"");
    for byte in text {
        let _ = write!(quoted, "\\{byte:03}");
    }
    quoted + "\")"
}

impl Field {
    fn source(&self) -> String {
        match self {
            Self::Item(value) => format!("{},", value.source()),
            Self::Keyed(key, value) => format!("[{}] = {},", key.source(), value.source()),
        }
    }
}

/// Low limits, for many runs.
const LIMITS: LuaLimits = LuaLimits {
    time: Duration::from_millis(300),
    instructions: 500_000,
    memory: 2 << 20,
};

/// Memory that Rust may use for arguments and results, beyond the limits.
const BESIDE: usize = 3 * (2 << 20);

/// Is hostile for one object, and returns everything that it can observe for another.
const SCRIPT: &str = "
local kube = require('kube')
local function hostile(obj)
HOSTILE
end
function ReflectStatus(obj)
  if obj.hostile then
    return hostile(obj)
  end
  local told = {}
  local function tell(name, value)
    told[#told + 1] = name .. ' ' .. type(value)
  end
  local function tell_all(name, table)
    local names = {}
    for key, value in pairs(table) do names[#names + 1] = tostring(key) .. ' ' .. type(value) end
    local function is_less(left, right) return left < right end
    for i = 1, #names do for j = i + 1, #names do if is_less(names[j], names[i]) then names[i], names[j] = names[j], names[i] end end end
    for i = 1, #names do told[#told + 1] = name .. names[i] end
  end
  tell_all('_G.', _G) tell_all('string.', string) tell_all('table.', table) tell_all('math.', math)
  tell_all('os.', os) tell_all('kube.', kube)
  local sorted = {3, 1, 2}
  table.sort(sorted)
  table.insert(sorted, 1, 0)
  tell('own', ('x').own)
  return {
    told = told, sorted = table.concat(sorted, ','), random = math.random(1000), upper = ('x'):upper(), byte = string.byte('a'),
    found = ('key=value'):match('=(.*)'), formatted = string.format('%d %s %.2f', 7, 'x', 1.5), number = tonumber('0x10'),
    quantity = kube.resourceAdd('1', '500m'), date = os.date('!%Y', 0), error = select(2, pcall(error, 'x')), a = tostring(a),
    b = tostring(b), c = tostring(c), f = tostring(f), s = tostring(s), t = tostring(t), i = tostring(i), version = _VERSION,
    handled = select(2, xpcall(error, function() return 'handled' end)), got = select('#', unpack({1, 2, 3})), floor = math.floor(1.5),
  }
end";

static EXPECTED: LazyLock<Answer> = LazyLock::new(|| {
    let program = LuaProgram::compile("good", &SCRIPT.replace("HOSTILE", "")).expect("the script compiles");
    ask(&program, false).expect("it answers")
});

fn ask(program: &LuaProgram, hostile: bool) -> Result<Answer, interpreter::lua::LuaError> {
    let object =
        json!({"hostile": hostile, "spec": {"list": [1, 2, {"a": "b"}], "text": "aaaaaaaaaaaaaaaaaaaaaaaa"}});
    // The harmless call has enough time on a busy machine.
    let patient = LuaLimits {
        time: Duration::from_secs(60),
        ..LuaLimits::default()
    };
    let limits = if hostile { LIMITS } else { patient };
    program.interpret(Question::Status { object: &object }, &limits)
}

/// Runs a call and checks its time and memory.
fn within<T>(what: &str, ask: impl FnOnce() -> T) -> T {
    let (before, started) = (USED.load(Ordering::Relaxed), cpu_time());
    MOST.store(before, Ordering::Relaxed);
    let answer = ask();
    let most = MOST.load(Ordering::Relaxed).saturating_sub(before);
    assert!(most <= LIMITS.memory + BESIDE, "{most} bytes:\n{what}");
    let worked = cpu_time() - started;
    assert!(worked < 2 * LIMITS.time, "{worked:?}:\n{what}");
    answer
}

/// The CPU time of this process, which is independent of other load.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::from_secs(time.tv_sec as u64) + Duration::from_nanos(time.tv_nsec as u64)
}

// Separate functions, because Lua 5.1 merges the constants 0 and -0 of one function.
fuzz_target!(|script: Script| {
    LazyLock::force(&EXPECTED);
    let body = script.source();
    if body.len() > 100_000 {
        return;
    }
    // The text as a whole script, for some operation.
    let objects = json!({"kind": "x", "spec": {"list": [1, {}, []]}});
    let operation = Operation::ALL[body.len() % Operation::ALL.len()];
    if let Ok(program) = LuaProgram::compile_for("any", operation, &body) {
        let question = Question::new(operation, &objects, &objects, 3, Some(&[]));
        let answer = within(&body, || program.interpret(question, &LIMITS));
        check(&answer.map_err(|error| error.to_string()));
    }
    // The text inside a program with other functions, if it does not close the surrounding block.
    let mut blocks = ["do\n", "repeat\n"].into_iter().zip(["\nend", "\nuntil true"]);
    let is_within = |(before, after)| LuaProgram::compile("block", &format!("{before}{body}{after}")).is_ok();
    if matches!(script, Script::Text(_)) && !blocks.all(is_within) {
        return;
    }
    let program = SCRIPT.replace("HOSTILE", &body);
    // The combined program may exceed a limit of the compiler.
    let Ok(program) = LuaProgram::compile("good", &program) else {
        return;
    };
    for _ in 0..2 {
        let answer = within(&body, || ask(&program, true));
        check(&answer.map_err(|error| error.to_string()));
        assert_eq!(ask(&program, false).as_ref(), Ok(&*EXPECTED), "{body}");
    }
});

/// An answer must be JSON, and an error must have a message.
fn check(answer: &Result<Answer, String>) {
    match answer {
        Ok(Answer::Object(value) | Answer::Status(Some(value))) => {
            let text = value.to_string();
            let read: Value = serde_json::from_str(&text).expect("the answer is JSON");
            assert_eq!(&read, value);
        }
        Ok(_) => {}
        Err(problem) => {
            assert!(
                !problem.contains("stack traceback") && !problem.starts_with("[sandbox]"),
                "{problem}"
            );
            assert!(problem.len() < 4096, "{} bytes", problem.len());
        }
    }
}
