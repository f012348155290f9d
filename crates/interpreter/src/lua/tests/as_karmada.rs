//! Behaviour of Karmada's Lua that differs from C, on which scripts rely.

use serde_json::json;

use super::{run, run_error};

#[test]
fn numbers_are_formatted_as_in_karmada() {
    for (body, expected) in [
        ("return tostring(1e15)", json!("1000000000000000")),
        ("return tostring(-2 ^ 53)", json!("-9007199254740992")),
        ("return tostring(1 / 3)", json!("0.3333333333333333")),
        ("return tostring(-0)", json!("0")),
        ("return tostring(1 / 0) .. tostring(0 / 0)", json!("+InfNaN")),
        (
            "return string.format('%s %5s|%-3s|%.2s', 1e15, 7, 0.5, 123)",
            json!("1000000000000000     7|0.5|12"),
        ),
        (
            "return table.concat({1e15, 0.1, 1e100}, ' ')",
            json!("1000000000000000 0.1 1e+100"),
        ),
        // The same result as in C.
        ("return 1e15 .. ''", json!("1e+15")),
    ] {
        assert_eq!(run(body), Ok(expected), "{body}");
    }
}

#[test]
fn a_format_accepts_any_value() {
    for (body, expected) in [
        (
            "return string.format('%s, %s and %s', nil, true, 'x')",
            json!("nil, true and x"),
        ),
        ("return string.format('%d%% of %s', 50, nil)", json!("50% of nil")),
        (
            "return string.format('%s', {}):match('^table: ') ~= nil",
            json!(true),
        ),
    ] {
        assert_eq!(run(body), Ok(expected), "{body}");
    }
    assert_eq!(
        run_error("return string.format('%s')"),
        "test:1: bad argument #2 to 'format' (no value)"
    );
}

#[test]
fn infinite_numbers_are_not_parsed() {
    for text in ["inf", "-inf", "nan", "1e400"] {
        assert_eq!(
            run(&format!("return tonumber('{text}') == nil")),
            Ok(json!(true)),
            "{text}"
        );
    }
    assert_eq!(
        run("return tonumber(1 / 0) == 1 / 0 and tonumber('1e3') == 1000"),
        Ok(json!(true))
    );
}

#[test]
fn libraries_can_be_required() {
    for (body, expected) in [
        ("return require('string').upper('x')", json!("X")),
        ("return require('table').concat({1, 2})", json!("12")),
        ("return require('math').max(1, 2)", json!(2)),
        ("return require('os').date('!%Y', 0)", json!("1970")),
        ("require('math').max = nil return math.max(1, 2)", json!(2)),
        (
            "local t = {} for word in string.gfind('a b', '%a') do t[#t + 1] = word end return t",
            json!(["a", "b"]),
        ),
    ] {
        assert_eq!(run(body), Ok(expected), "{body}");
    }
}

#[test]
fn invalid_utf_8_is_replaced() {
    for (body, expected) in [
        ("return ('€'):sub(1, 2) .. 'x'", json!("\u{fffd}\u{fffd}x")),
        ("return 'a\\255\\195'", json!("a\u{fffd}\u{fffd}")),
        (
            "return {[('ä'):sub(2)] = 1, ['ä'] = 2}",
            json!({"\u{fffd}": 1, "ä": 2}),
        ),
    ] {
        assert_eq!(run(body), Ok(expected), "{body}");
    }
}
