//! Scripts that use excessive resources.

use std::time::{Duration, Instant};

use serde_json::json;

use super::LIMITS;
use crate::{
    Answer, Question,
    lua::{LuaError, LuaLimits, LuaProgram},
};

const QUESTION: &str = "function InterpretHealth(obj) if obj.hostile then HOSTILE end return true end";

/// Runs a script that is hostile for one object and not for the next, which must be answered normally.
fn run_hostile(body: &str, limits: &LuaLimits) -> Result<Answer, LuaError> {
    let program = LuaProgram::compile("test", &QUESTION.replace("HOSTILE", body)).unwrap();
    let (bad, good) = (json!({"hostile": true}), json!({"hostile": false}));
    let answer = program.interpret(Question::Health { object: &bad }, limits);
    let next = program.interpret(Question::Health { object: &good }, limits);
    assert_eq!(
        next,
        Ok(Answer::Health(true)),
        "the next call is clean after {body}"
    );
    answer
}

/// Returns the error of a hostile script.
fn hostile_error(body: &str, limits: &LuaLimits) -> LuaError {
    run_hostile(body, limits).unwrap_err()
}

#[test]
fn endless_scripts_are_interrupted() {
    for body in [
        "while true do end",
        "repeat until false",
        "for i = 1, 1e300 do end",
        "local function f() return f() end f()",
        // A limit cannot be caught.
        "while true do pcall(function() while true do end end) end",
        "pcall(function() while true do pcall(function() while true do end end) end end) while true do end",
        "local function f() pcall(f) f() end f()",
        "while true do xpcall(function() while true do end end, function() while true do end end) end",
        "local t = {} for i = 1, 1000 do t[i] = i end while true do table.sort(t, function(a, b) return a < b end) end",
        "while true do string.find('aaaa', 'b') end",
        "for _ in next, {1} do while true do end end",
        // Patterns that backtrack.
        "local s = 'a' for i = 1, 12 do s = s .. s end string.find(s, 'a*a*a*a*a*a*b')",
        "local s = 'a' for i = 1, 12 do s = s .. s end string.match(s, '(.-)(.-)(.-)(.-)(.-)b')",
        "local s = '(' for i = 1, 15 do s = s .. s end while true do string.find(s, '%b()') end",
        "local s = 'a' for i = 1, 14 do s = s .. s end for _ in string.gmatch(s, '.-b') do end",
        "while true do pcall(string.match, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', '.-.-.-.-.-.-.-.-.-b') end",
    ] {
        let failed = hostile_error(body, &LIMITS);
        assert!(
            matches!(failed, LuaError::TooMuch { .. } | LuaError::TooSlow { .. }),
            "{body}: {failed}"
        );
    }
}

#[test]
fn time_is_limited() {
    let limits = LuaLimits {
        time: Duration::from_millis(50),
        instructions: u64::MAX,
        ..LIMITS
    };
    for body in [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "local s = 'a' for i = 1, 12 do s = s .. s end string.find(s, 'a*a*a*a*a*a*b')",
        "while true do string.format('%99.99f', 1e308) end",
        "while true do os.date('%c', 2^33) end",
        "local s = '0' for i = 1, 20 do s = s .. s end while true do tonumber(s) tonumber(s, 2) end",
    ] {
        let started = Instant::now();
        let failed = hostile_error(body, &limits);
        assert!(matches!(failed, LuaError::TooSlow { .. }), "{body}: {failed}");
        assert!(started.elapsed() < Duration::from_secs(10), "{body}");
    }
}

#[test]
fn memory_is_limited() {
    for body in [
        "local s = 'x' while true do s = s .. s end",
        "local t = {} local i = 0 while true do i = i + 1 t[i] = {} end",
        "local t = {} local i = 0 while true do i = i + 1 t['key' .. i] = i end",
        "local t = {} for i = 1, 200 do t[i] = ('x'):upper() end local s = table.concat(t) while true do s = s .. s .. s end",
        "local s = 'x' for i = 1, 19 do s = s .. s end local t = {} local i = 0 while true do i = i + 1 t[i] = s .. i end",
    ] {
        let failed = hostile_error(body, &LIMITS);
        assert!(matches!(failed, LuaError::OutOfMemory(_)), "{body}: {failed}");
    }
}

#[test]
fn too_deep_or_long_values_are_errors() {
    for (body, expected) in [
        ("local function f() return 1 + f() end f()", "stack overflow"),
        ("return string.rep('x', 1e9)", "string.rep is not available"),
        ("unpack({}, 1, 1e8)", "too many results to unpack"),
        (
            "local s = 'x' for i = 1, 21 do s = s .. s end return s:upper()",
            "longer than 1000000 bytes",
        ),
        (
            "local s = 'x' for i = 1, 21 do s = s .. s end return s:find('y')",
            "longer than 1000000 bytes",
        ),
        (
            "local p = 'a*' for i = 1, 9 do p = p .. p end return ('a'):match(p .. 'b')",
            "pattern too complex",
        ),
        ("string.format('%9999d', 1)", "invalid"),
        ("('x').y = 1", "attempt to index"),
        ("error({})", ""),
        ("error()", ""),
        (
            "error(setmetatable({}, {__tostring = function() while true do end end}))",
            "setmetatable is not available",
        ),
    ] {
        let failed = hostile_error(body, &LIMITS).to_string();
        assert!(failed.contains(expected), "{body}: {failed}");
    }
}

#[test]
fn hostile_scripts_end_without_side_effects() {
    for body in [
        "for i = 1, 1e6 do obj['key' .. i] = i end",
        "for i = 1, 1e6 do obj[i] = i end for i = 1, 1e6 do obj[i] = nil end while true do next(obj) end",
        "local t = {} for i = 1, 1e5 do t[i] = i end while true do t[1e5] = nil t[{}] = 1 end",
        "for key in pairs(obj) do obj[key] = nil obj[{}] = 1 end",
        "table.sort({3, 1, 2}, function() error('x') end)",
        "local t = {3, 1, 2} table.sort(t, function(a, b) t[1] = nil return not a < b end)",
        "table.sort({3, 1, 2}, function() while true do end end)",
        "table.sort({0/0, 1, 0/0, 2})",
        "table.insert({}, 2^53, 1) local t = {} t[2^53] = '' table.concat(t, '', 2^53, 2^53 + 2)",
        "table.concat({[2^53] = ''}, '', 2^53, 1/0)",
        "table.concat({}, 'x', -2^52, 1/0)",
        "table.insert({}, 0/0, 1)",
        "table.remove({1, 2}, 0/0) math.random(0/0)",
        "math.random(-1/0, 1/0) math.randomseed(0/0) math.random(2^53) error()",
        "error({setmetatable = 1})",
        "error(function() while true do end end)",
        "pcall(error, error) xpcall(error, error) xpcall(error, xpcall) xpcall(pcall, pcall) error(error)",
        "local function f() return xpcall(f, f) end f() while true do f() end",
        "local function f(...) return pcall(f, ..., ...) end f(1) while true do f(1) end",
        "local function f(...) return f(1, ...) end f()",
        "while true do string.char(unpack({1, 2, 3})) end",
        "string.format('%s %s', {}, print)",
        "string.format('%' .. '0')",
        "string.byte(('x'):upper(), -1/0, 1/0) string.sub('x', 0/0, 2^63) string.char(2^31)",
        "os.time({year = 1/0, month = 0/0, day = -1/0})",
        "os.time({year = 2^53, month = 2^53, day = 2^53, hour = 2^53, min = 2^53, sec = 2^53}) error()",
        "local k = require('kube') for _, f in pairs({k.resourceAdd, k.getResourceQuantity, k.accuratePodRequirements, \
         k.getPodDependencies}) do for _, v in pairs({1, -1, 0/0, 1/0, true, 'x', {}, print, {{}}, {spec = 1}}) do pcall(f, v, v, v) end end \
         k.resourceAdd(0/0)",
        "require('kube').resourceAdd = nil require('kube').resourceAdd()",
        "string = nil table = nil math = nil pcall = nil _G = nil next = nil error()",
        "('x'):nothing()",
        "string.upper = string.lower string.format = nil string.format()",
        "_G._G = nil for name in pairs(_G) do _G[name] = nil end tostring()",
        "InterpretHealth = nil InterpretHealth()",
        "return InterpretHealth(obj)",
    ] {
        let started = Instant::now();
        let answer = run_hostile(body, &LIMITS);
        assert!(
            started.elapsed() < LIMITS.time + Duration::from_secs(5),
            "{body}: {:?}",
            started.elapsed()
        );
        assert!(!format!("{answer:?}").contains("[sandbox]"), "{body}: {answer:?}");
    }
}

#[test]
fn results_are_bounded() {
    let status = |body: &str| {
        let program =
            LuaProgram::compile("test", &format!("function ReflectStatus(obj) {body} end")).unwrap();
        let question = Question::Status { object: &json!({}) };
        program.interpret(question, &LIMITS).unwrap_err().to_string()
    };
    let deep = status("local t = {1} for i = 1, 1000 do t = {a = t} end return t");
    assert!(deep.ends_with("tables are more than 128 deep"), "{deep}");
    let wide = status("local t = {1} for i = 1, 40 do t = {t, t} end return {t = t}");
    assert!(wide.ends_with("it is larger than 16777216 bytes"), "{wide}");
}

#[test]
fn globals_do_not_persist() {
    let script = "
        counter = (counter or 0) + 1
        function ReflectStatus(obj)
          seen = (seen or 0) + 1
          string_x = rawequal and 1
          pcall(function() string.leaked = 1 end)
          pcall(function() _G.string = nil end)
          pcall(function() table.insert = nil end)
          return { counter = counter, seen = seen, leaked = string and string.leaked or 'none', insert = table.insert ~= nil }
        end";
    let program = LuaProgram::compile("test", script).unwrap();
    for _ in 0..3 {
        let question = Question::Status { object: &json!({}) };
        assert_eq!(
            program.interpret(question, &LIMITS),
            Ok(Answer::Status(Some(
                json!({"counter": 1, "seen": 1, "leaked": "none", "insert": true})
            )))
        );
    }
}

#[test]
fn arguments_count_as_memory() {
    let program = LuaProgram::compile("test", "function InterpretHealth(obj) return true end").unwrap();
    let list: Vec<_> = (0..20_000).map(|number| format!("{number:01000}")).collect();
    let large = json!({ "list": list });
    let failed = program
        .interpret(Question::Health { object: &large }, &LIMITS)
        .unwrap_err();
    assert!(matches!(failed, LuaError::OutOfMemory(_)), "{failed}");
}
