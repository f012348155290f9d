//! Attacks with knowledge of the implementation of Lua, its C library and mlua.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{LIMITS, run, run_error};
use crate::{
    Answer, Operation, Question,
    lua::{LuaError, LuaLimits, LuaProgram},
};

fn health(body: &str, limits: &LuaLimits) -> Result<Answer, LuaError> {
    let script = format!("function InterpretHealth(obj) {body} return true end");
    let program = LuaProgram::compile("test", &script)?;
    program.interpret(Question::Health { object: &json!({}) }, limits)
}

#[test]
fn long_running_c_functions_are_interrupted() {
    for body in [
        // Two billion indexes.
        "table.insert({}, -2^31, 1)",
        "table.insert({}, -1 / 0, 1)",
        "local t = {} for i = 1, 1000 do t[i] = i end while true do table.insert(t, 1, 0) table.remove(t, 1) end",
        // An inconsistent order, and the worst case of quicksort.
        "local t = {} for i = 1, 5000 do t[i] = i end while true do table.sort(t, function() return true end) end",
        "local t = {} for i = 1, 20000 do t[i] = i % 2 == 0 and i or -i end while true do table.sort(t) end",
        "local t = {} for i = 1, 5000 do t[i] = 0.5 end while true do table.concat(t) end",
        // A long set that is compared with each byte.
        "local s, t = 'b', 'a' for i = 1, 17 do s, t = s .. s, t .. t end t:find('[' .. s .. ']')",
        // A number of steps that is not a multiple of the check interval.
        "local s = 'a' for i = 1, 17 do s = s .. s end s:find('(.-)%1%1b')",
    ] {
        let answer = health(body, &LIMITS);
        assert!(
            matches!(answer, Err(LuaError::TooMuch { .. } | LuaError::TooSlow { .. })),
            "{body}: {answer:?}"
        );
    }
}

#[test]
fn slow_instructions_are_checked_often() {
    let limits = LuaLimits {
        instructions: u64::MAX,
        time: Duration::from_millis(300),
        ..LIMITS
    };
    let product = "s".to_owned() + &"*s".repeat(80);
    for body in [
        // Four megabytes of digits for each operand.
        format!("local s = '1' for i = 1, 22 do s = s .. s end while true do local x = {product} end"),
        "local s = 'x' for i = 1, 21 do s = s .. s end local a, b = s .. '1', s .. '2' while true do local x = a < b end".to_owned(),
    ] {
        let started = Instant::now();
        let answer = health(&body, &limits);
        assert!(matches!(answer, Err(LuaError::TooSlow { .. })), "{answer:?}");
        assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
    }
}

#[test]
fn a_limit_cannot_be_caught() {
    let full = "local t = {} pcall(function() while true do t[#t + 1] = {} end end)";
    let fuller = "local t = {} for i = 1, 3 do pcall(function() while true do t = {t} end end) end";
    let for_ever = "while true do pcall(function() while true do end end) end";
    for (body, expected) in [
        (
            "pcall(function() local s = 'x' while true do s = s .. s end end)".to_owned(),
            true,
        ),
        (
            "xpcall(function() local s = 'x' while true do s = s .. s end end, function() end)".to_owned(),
            true,
        ),
        (format!("{full} {for_ever}"), true),
        (format!("{fuller} {for_ever}"), true),
        (
            "pcall(pcall, pcall, function() while true do end end)".to_owned(),
            false,
        ),
        ("pcall(function() while true do end end)".to_owned(), false),
        (
            "xpcall(function() error('x') end, function() while true do end end)".to_owned(),
            false,
        ),
        (
            "xpcall(function() while true do end end, function() while true do end end)".to_owned(),
            false,
        ),
        (
            "pcall(string.find, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', '.-.-.-.-.-.-.-.-.-b')".to_owned(),
            false,
        ),
    ] {
        let answer = health(&body, &LIMITS);
        let is_expected = match expected {
            true => matches!(answer, Err(LuaError::OutOfMemory(_))),
            false => matches!(answer, Err(LuaError::TooMuch { .. } | LuaError::TooSlow { .. })),
        };
        assert!(is_expected, "{body}: {answer:?}");
    }
}

#[test]
fn results_that_are_large_as_json_are_rejected() {
    let shared = "local s = 'x' for i = 1, 19 do s = s .. s end local t = {} for i = 1, 400 do t[i] = s end";
    assert_eq!(
        run_error(&format!("{shared} return t")),
        "the result of ReflectStatus: it is larger than 16777216 bytes"
    );
    let named =
        "local s = 'x' for i = 1, 19 do s = s .. s end local t = {} for i = 1, 400 do t[i] = {[s] = 1} end";
    assert_eq!(
        run_error(&format!("{named} return t")),
        "the result of ReflectStatus: it is larger than 16777216 bytes"
    );
    let template = run_error(&format!(
        "{shared} require('kube').accuratePodRequirements({{spec = t}})"
    ));
    assert!(
        template.starts_with("test:1: bad argument #1 to 'accuratePodRequirements' (it is larger than 1"),
        "{template}"
    );
    let joined = health(&format!("{shared} table.concat(t)"), &LIMITS);
    assert_eq!(joined, Err(LuaError::OutOfMemory(LIMITS.memory)));
}

#[test]
fn garbage_does_not_count_as_used_memory() {
    let body = "local live = {}
        for i = 1, 6 do local s = 'x' for j = 1, 20 do s = s .. s end live[i] = s .. i end
        local length = 0
        for i = 1, 50 do length = length + #(live[1] .. i) end
        return length";
    assert_eq!(run(body), Ok(json!(52_428_941)));
}

#[test]
fn calls_share_no_state() {
    let script = "
        function ReflectStatus(obj)
          local seen = {
            math[1] or 'none', table[1] or 'none', _G[1] or 'none', require('kube')[1] or 'none',
            string.own or 'none', ('x').own or 'none', math.random(1e6), tostring(table.insert ~= print),
          }
          for _, library in pairs({ math, table, _G, require('kube'), string, os }) do
            table.insert(library, 'leak')
          end
          string.own = 'leak'
          math.randomseed(7)
          table.insert = print
          return { seen = seen }
        end";
    let program = LuaProgram::compile("test", script).unwrap();
    let question = Question::Status { object: &json!({}) };
    let first = program.interpret(question, &LIMITS).unwrap();
    let Answer::Status(Some(status)) = &first else {
        panic!("{first:?}")
    };
    let seen = status["seen"].as_array().unwrap();
    assert!(seen[..6].iter().all(|seen| seen == "none"), "{seen:?}");
    assert_eq!(seen[7], "true");
    for _ in 0..3 {
        assert_eq!(program.interpret(question, &LIMITS).as_ref(), Ok(&first));
    }
}

#[test]
fn an_endless_top_level_is_interrupted() {
    let program = LuaProgram::compile("test", "\n\nwhile true do end").unwrap();
    let error = program
        .interpret(Question::Health { object: &json!({}) }, &LIMITS)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "test:3: the script took more than 2000000 instructions"
    );
    let error = program.defines(Operation::InterpretHealth).unwrap_err();
    assert!(
        matches!(error, LuaError::TooMuch { .. } | LuaError::TooSlow { .. }),
        "{error:?}"
    );
}

#[test]
fn limits_may_be_at_their_maximum() {
    let limits = LuaLimits {
        time: Duration::MAX,
        instructions: u64::MAX,
        memory: usize::MAX,
    };
    assert_eq!(health("", &limits), Ok(Answer::Health(true)));
}
