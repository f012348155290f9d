//! Work outside of Lua, where instructions and memory are not counted by the state.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{LIMITS, run, run_error};
use crate::{
    Answer, Question,
    lua::{LuaError, LuaLimits, LuaProgram},
};

/// Lua source of a text of `2^power` bytes.
fn long(power: u32) -> String {
    format!("local long = 'x' for i = 1, {power} do long = long .. long end")
}

#[test]
fn empty_fields_below_a_long_name_are_fast() {
    let script = format!(
        "function Retain(desired)
          {}
          local many = {{}}
          for i = 1, 40000 do many[i] = {{}} end
          return {{kind = 'x', [long] = many}}
        end",
        long(22)
    );
    let program = LuaProgram::compile("test", &script).unwrap();
    let desired = json!({"object": {}, "list": []});
    let question = Question::Retain {
        desired: &desired,
        observed: &Value::Null,
    };
    let started = Instant::now();
    let limits = LuaLimits {
        memory: 32 << 20,
        ..LIMITS
    };
    let Ok(Answer::Object(kept)) = program.interpret(question, &limits) else {
        panic!("not kept")
    };
    assert_eq!(kept.as_object().map(serde_json::Map::len), Some(2));
    assert!(
        started.elapsed() < Duration::from_secs(10),
        "{:?}",
        started.elapsed()
    );
}

#[test]
fn error_messages_are_shortened() {
    let long = long(21);
    for body in [
        "error(long)",
        "error(long, 0)",
        "require(long)",
        "return {[long] = 0/0}",
        "return {[long] = {print}}",
        "local t = {[long] = 1} return t[long].x.y",
        "local _, e = pcall(error, long) error(e)",
        "require('kube').resourceAdd(long)",
        "require('kube').resourceAdd('1' .. ('x'):upper() .. long:sub(-900000))",
        "require('kube').accuratePodRequirements({spec = {nodeSelector = {[long] = 1}}})",
        "require('kube').accuratePodRequirements({[long] = print})",
        "string.format('%d', long:sub(-900000))",
        "tostring(nil)[long] = 1 local x = nil + 1",
    ] {
        let failed = run_error(&format!("{long} {body}"));
        assert!((1..1200).contains(&failed.len()), "{body}: {}", failed.len());
    }
    let name = "function GetDependencies() ".to_owned()
        + &long
        + " return {{apiVersion = 'v1', kind = long, name = {}}} end";
    let program = LuaProgram::compile("test", &name).unwrap();
    let question = Question::Dependency { object: &json!({}) };
    let failed = program.interpret(question, &LIMITS).unwrap_err().to_string();
    assert!(failed.len() < 1200, "{}", failed.len());
}

#[test]
fn the_kube_library_has_limits_on_length() {
    let volumes = "local volumes = {} for i = 1, 5000 do volumes[i] = {secret = {secretName = 's' .. i}} end
        local function named(namespace) return require('kube').getPodDependencies({spec = {volumes = volumes}}, namespace) end";
    assert_eq!(
        run_error(&format!("{} {volumes} named(long)", long(20))),
        "test:1: bad argument #2 to 'getPodDependencies' (longer than 253 bytes)".replace("test:1", "test:2")
    );
    assert_eq!(run(&format!("{volumes} return #named('n')")), Ok(json!(5000)));
    let many = volumes.replace("5000", "30000");
    let limits = LuaLimits {
        instructions: 20_000_000,
        ..LIMITS
    };
    let script = format!("function ReflectStatus(obj) {many} named('n') return {{}} end");
    let program = LuaProgram::compile("test", &script).unwrap();
    let answer = program.interpret(Question::Status { object: &json!({}) }, &limits);
    assert_eq!(
        answer
            .map_err(|error| error.to_string().contains("larger than")
                || matches!(error, LuaError::OutOfMemory(_))),
        Err(true)
    );
    for (body, expected) in [
        (
            "require('kube').resourceAdd(long .. long)",
            "bad argument #1 to 'resourceAdd' (longer than 1000000 bytes)",
        ),
        (
            "require('kube').getResourceQuantity(long .. long)",
            "bad argument #1 to 'getResourceQuantity' (longer than 1000000 bytes)",
        ),
    ] {
        assert_eq!(
            run_error(&format!("{} {body}", long(19))),
            format!("test:1: {expected}")
        );
    }
    let joined = run_error(&format!(
        "{} return table.concat({{'', '', '', ''}}, long)",
        long(22)
    ));
    assert_eq!(joined, LuaError::OutOfMemory(LIMITS.memory).to_string());
}

#[test]
fn sets_count_as_steps_at_the_end_of_the_text() {
    let body = format!(
        "{} return ('aa'):find('a?' .. long:sub(1, 0) .. many .. '[' .. long .. ']')",
        long(19)
    );
    let many = "local many = 'a?' for i = 1, 6 do many = many .. many end";
    let failed = run_error(&format!("{many} {body}"));
    assert!(
        failed.ends_with("took more than 2000000 instructions"),
        "{failed}"
    );
}

#[test]
fn errors_only_have_positions_in_the_script() {
    assert_eq!(
        run_error("table.insert({}, 0/0, 1)"),
        "test:1: bad argument #2 to 'insert' (not a number)"
    );
    assert_eq!(
        run_error("local t = {} for i = 1, 10 do t[i] = 0/0 end table.sort(t) return t"),
        "the result of ReflectStatus: value[1]: is not a finite number"
    );
}
