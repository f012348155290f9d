//! Scripts that take what they can.

use std::time::{Duration, Instant};

use serde_json::json;

use super::LIMITS;
use crate::{
    Answer, Question,
    lua::{LuaError, LuaLimits, LuaProgram},
};

const QUESTION: &str = "function InterpretHealth(obj) if obj.hostile then HOSTILE end return true end";

/// Runs a script that is hostile to one object and not to the next, which must be answered as if nothing had been.
fn hostile(body: &str, limits: &LuaLimits) -> LuaError {
    let program = LuaProgram::compile("test", &QUESTION.replace("HOSTILE", body)).unwrap();
    let (bad, good) = (json!({"hostile": true}), json!({"hostile": false}));
    let failed = program
        .interpret(Question::Health { object: &bad }, limits)
        .unwrap_err();
    let next = program.interpret(Question::Health { object: &good }, limits);
    assert_eq!(next, Ok(Answer::Health(true)), "the next call is clean");
    failed
}

#[test]
fn what_does_not_end_is_ended() {
    for body in [
        "while true do end",
        "repeat until false",
        "for i = 1, 1e300 do end",
        "local function f() return f() end f()",
        // The limit cannot be caught.
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
        let failed = hostile(body, &LIMITS);
        assert!(
            matches!(failed, LuaError::TooMuch { .. } | LuaError::TooSlow { .. }),
            "{body}: {failed}"
        );
    }
}

#[test]
fn time_is_limited_as_well() {
    let limits = LuaLimits {
        time: Duration::from_millis(50),
        instructions: u64::MAX,
        ..LIMITS
    };
    for body in [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "local s = 'a' for i = 1, 12 do s = s .. s end string.find(s, 'a*a*a*a*a*a*b')",
    ] {
        let started = Instant::now();
        let failed = hostile(body, &limits);
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
        let failed = hostile(body, &LIMITS);
        assert!(matches!(failed, LuaError::OutOfMemory(_)), "{body}: {failed}");
    }
}

#[test]
fn what_is_too_deep_or_too_long_is_an_error() {
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
        let failed = hostile(body, &LIMITS).to_string();
        assert!(failed.contains(expected), "{body}: {failed}");
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
fn nothing_stays_of_a_call() {
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
fn arguments_count_as_well() {
    let program = LuaProgram::compile("test", "function InterpretHealth(obj) return true end").unwrap();
    let list: Vec<_> = (0..20_000).map(|number| format!("{number:01000}")).collect();
    let large = json!({ "list": list });
    let failed = program
        .interpret(Question::Health { object: &large }, &LIMITS)
        .unwrap_err();
    assert!(matches!(failed, LuaError::OutOfMemory(_)), "{failed}");
}
