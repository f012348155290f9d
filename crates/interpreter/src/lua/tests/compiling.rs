//! Scripts that attack the compiler, which cannot be interrupted.

use crate::lua::{LuaError, LuaProgram};

#[test]
fn bytecode_is_rejected() {
    for script in ["\u{1b}Lua", "\u{1b}LuaQ\0\u{1}\u{4}\u{8}\u{4}\u{8}\0"] {
        let error = LuaProgram::compile("test", script).unwrap_err();
        assert_eq!(
            error,
            LuaError::Syntax("attempt to load a binary chunk (mode is 't')".to_owned())
        );
    }
}

#[test]
fn scripts_that_compile_slowly_are_rejected() {
    let longest = 64 << 10;
    for (script, expected) in [
        (
            format!("x = a {}", "or a ".repeat(longest / 6)),
            "test: the script has more than 4000 of and, or, break, elseif",
        ),
        (
            format!("while a do {} end", "do break end ".repeat(4001)),
            "test: the script has more than 4000 of and, or, break, elseif",
        ),
        (
            "x = 1 ".repeat(longest),
            "test: the script is longer than 65536 bytes",
        ),
    ] {
        let error = LuaProgram::compile("test", &script).unwrap_err();
        assert_eq!(error, LuaError::Syntax(expected.to_owned()));
    }
    let deep = format!("return {}1{}", "(".repeat(10_000), ")".repeat(10_000));
    let error = LuaProgram::compile("test", &deep).unwrap_err();
    assert!(matches!(error, LuaError::Syntax(_)), "{error:?}");
}

#[test]
fn scripts_at_the_limits_compile_fast() {
    let longest = 64 << 10;
    let level = format!("local {} return function() ", vec!["a"; 190].join(","));
    // Each unresolved name is searched in all enclosing functions.
    let named = |levels: usize| {
        let names = "z=z ".repeat((longest - levels * (level.len() + 4)) / 4);
        format!("{}{names}{}", level.repeat(levels), "end ".repeat(levels))
    };
    for script in [
        format!("x = a {}", "or a ".repeat(3999)),
        format!("while a do {} end", "do break end ".repeat(3999)),
        named(40),
        named(80),
        format!("return {{{}}}", "1,".repeat(longest / 2 - 8)),
    ] {
        LuaProgram::compile("test", &script).unwrap();
    }
}
