//! The available and unavailable features of Lua.

use serde_json::json;

use super::{LIMITS, run, run_error};
use crate::{Question, lua::LuaProgram};

#[test]
fn the_libraries_are_those_of_lua_5_1() {
    for (body, expected) in [
        ("return 1 + 1", json!(2)),
        ("return 7 / 2", json!(3.5)),
        ("return tostring(3)", json!("3")),
        ("return 10 % 3", json!(1)),
        ("return #'abc'", json!(3)),
        ("return ('x'):upper()", json!("X")),
        (
            "return math.floor(2.7) + math.ceil(2.1) + math.max(1, 5)",
            json!(10),
        ),
        ("return table.concat({'a', 'b'}, '-')", json!("a-b")),
        (
            "local t = {} table.insert(t, 'a') table.insert(t, 1, 'b') return t",
            json!(["b", "a"]),
        ),
        ("return select('#', 1, 2, 3)", json!(3)),
        ("return unpack({7})", json!(7)),
        (
            "return string.format('%05.1f %s %q', 3.14159, 'x', 'y')",
            json!("003.1 x \"y\""),
        ),
        ("return string.sub('hello', 2, -2)", json!("ell")),
        ("return string.byte('A')", json!(65)),
        ("return string.char(72, 105)", json!("Hi")),
        ("return type(os.time())", json!("number")),
        (
            "return os.date('!%Y-%m-%dT%H:%M:%SZ', 0)",
            json!("1970-01-01T00:00:00Z"),
        ),
        ("return type(require('kube'))", json!("table")),
        ("return tonumber('10', 2)", json!(2)),
        ("local ok, err = pcall(error, 'x') return err", json!("x")),
        ("return next({}) == nil", json!(true)),
        ("return _G.math == math", json!(true)),
        ("x = 1 return _G.x", json!(1)),
        (
            "return select(2, xpcall(error, function(problem) return 'handled' end))",
            json!("handled"),
        ),
        (
            "return select(2, xpcall(function() return 7 end, print))",
            json!(7),
        ),
        ("print('discarded') return 1", json!(1)),
    ] {
        assert_eq!(run(body), Ok(expected), "{body}");
    }
}

#[test]
fn unsafe_functions_are_missing() {
    for name in ["io", "debug", "package", "coroutine", "jit", "bit32", "utf8"] {
        assert_eq!(run(&format!("return {name} == nil")), Ok(json!(true)), "{name}");
    }
    for name in [
        "execute",
        "exit",
        "getenv",
        "remove",
        "rename",
        "setlocale",
        "tmpname",
        "clock",
        "difftime",
    ] {
        assert_eq!(
            run(&format!("return os.{name} == nil")),
            Ok(json!(true)),
            "os.{name}"
        );
    }
    for name in [
        "collectgarbage",
        "dofile",
        "getfenv",
        "getmetatable",
        "load",
        "loadfile",
        "loadstring",
        "rawequal",
        "rawget",
        "rawset",
        "setfenv",
        "setmetatable",
        "module",
        "newproxy",
        "string.gsub",
        "string.rep",
        "string.dump",
    ] {
        assert_eq!(
            run_error(&format!("return {name}('x')")),
            format!("test:1: {name} is not available")
        );
    }
    assert_eq!(run_error("return require('io')"), "test:1: module io not found");
}

#[test]
fn patterns_are_those_of_lua() {
    for (body, expected) in [
        ("return string.find('hello', 'l')", json!(3)),
        ("return select(2, string.find('hello', 'l+'))", json!(4)),
        ("return string.find('a.b', '.', 1, true)", json!(2)),
        ("return string.find('abc', 'b', -1)", json!(null)),
        ("return string.find('', '')", json!(1)),
        ("return string.find('abc', '', 10)", json!(4)),
        ("return string.match('key=value', '(%w+)=(%w+)')", json!("key")),
        (
            "return select(2, string.match('key=value', '(%w+)=(%w+)'))",
            json!("value"),
        ),
        ("return string.match('  x  ', '^%s*(.-)%s*$')", json!("x")),
        ("return string.match('v1.23.4', '^v(%d+)%.(%d+)')", json!("1")),
        ("return string.match('hello', '()ll()')", json!(3)),
        ("return string.match('f(a(b)c)d', '%b()')", json!("(a(b)c)")),
        (
            "return string.match('THE (quick) fox', '%f[%a]%a+%f[%A]')",
            json!("THE"),
        ),
        ("return string.match('abcabc', '(abc)%1')", json!("abc")),
        ("return string.match('a]b', '[]]')", json!("]")),
        ("return string.match('a-b', '[a%-]+')", json!("a-")),
        ("return string.match('abc', '[^b]+')", json!("a")),
        ("return string.match('x1', '%u')", json!(null)),
        ("return string.match('aaa', 'a-')", json!("")),
        ("return string.match('aaa', 'a?a?a?a?')", json!("aaa")),
        ("return string.match('a\\0b', '%z')", json!("\0")),
        ("return ('a,b,,c'):match('[^,]*$')", json!("c")),
        (
            "local t = {} for w in string.gmatch('one two', '%a+') do t[#t + 1] = w end return t",
            json!(["one", "two"]),
        ),
        (
            "local t = {} for k, v in ('a=1,b=2'):gmatch('(%w)=(%w)') do t[k] = v end return t",
            json!({"a": "1", "b": "2"}),
        ),
        (
            "local n = 0 for _ in string.gmatch('abc', '') do n = n + 1 end return n",
            json!(4),
        ),
    ] {
        assert_eq!(run(body), Ok(expected), "{body}");
    }
    for (pattern, expected) in [
        ("[a", "malformed pattern (missing ']')"),
        ("%", "malformed pattern (ends with '%')"),
        ("(a", "unfinished capture"),
        ("a)", "invalid pattern capture"),
        ("%1", "invalid capture index"),
        ("%b", "unbalanced pattern"),
        ("%fa", "missing '[' after '%f' in pattern"),
    ] {
        assert_eq!(
            run_error(&format!("return string.match('a', '{pattern}')")),
            format!("test:1: {expected}")
        );
    }
}

#[test]
fn errors_name_the_script_and_its_line() {
    assert_eq!(
        run_error("local x = nil\n return x.y"),
        "test:2: attempt to index local 'x' (a nil value)"
    );
    assert_eq!(run_error("error('own words')"), "test:1: own words");
    assert_eq!(run_error("\n\n return ("), "test:3: unexpected symbol near 'end'");
    assert_eq!(
        run_error("for i = 1, 2 do goto continue ::continue:: end"),
        "test:1: '=' expected near 'continue'; Lua 5.1 has no goto: use if, or return from a function"
    );
    assert_eq!(
        run_error("return require('kube').resourceAdd('much')"),
        "test:1: \"much\" is not a quantity: use for example 500m, 2, 1Gi or 1e3"
    );
}

#[test]
fn the_kube_library_handles_quantities_and_pods() {
    for (body, expected) in [
        ("return kube.resourceAdd('500m', nil, '1')", json!("1500m")),
        ("return kube.resourceAdd(1, 2)", json!("3")),
        ("return kube.resourceAdd()", json!("0")),
        ("return kube.getResourceQuantity('1Ki')", json!(1024)),
        ("return kube.getResourceQuantity(nil)", json!(0)),
        ("return kube.accuratePodRequirements({spec = {}})", json!(null)),
        (
            "return kube.accuratePodRequirements({spec = {containers = {{resources = {limits = {cpu = 1}}}}, nodeSelector = {a = 'b'}}})",
            json!({"nodeClaim": {"nodeSelector": {"a": "b"}}, "resourceRequest": {"cpu": "1"}}),
        ),
        (
            "return kube.getPodDependencies({spec = {serviceAccountName = 'a'}}, 'n')",
            json!([{"apiVersion": "v1", "kind": "ServiceAccount", "namespace": "n", "name": "a"}]),
        ),
        (
            "return kube.getPodDependencies({spec = {serviceAccountName = 'a'}})[1].namespace",
            json!("default"),
        ),
        ("return #kube.getPodDependencies({spec = {}}, 'n')", json!(0)),
    ] {
        assert_eq!(
            run(&format!("local kube = require('kube') {body}")),
            Ok(expected),
            "{body}"
        );
    }
    assert_eq!(
        run_error("return require('kube').getResourceQuantity('-1')"),
        "test:1: quantity cannot be negative"
    );
}

#[test]
fn wrong_arguments_are_reported_with_their_line() {
    for (call, expected) in [
        (
            "string.find(nil, 'x')",
            "bad argument #1 to 'find' (string expected, got nil)",
        ),
        (
            "('x'):find()",
            "bad argument #2 to 'find' (string expected, got no value)",
        ),
        (
            "('x'):find('x', {})",
            "bad argument #3 to 'find' (number expected, got table)",
        ),
        (
            "('x'):match()",
            "bad argument #2 to 'match' (string expected, got no value)",
        ),
        (
            "string.gmatch({}, 'x')",
            "bad argument #1 to 'gmatch' (string expected, got table)",
        ),
        (
            "string.upper(nil)",
            "bad argument #1 to 'upper' (string expected, got nil)",
        ),
        ("string.char(-1)", "bad argument #1 to 'char' (invalid value)"),
        (
            "string.format('%d', 'x')",
            "bad argument #2 to 'format' (number expected, got string)",
        ),
        (
            "table.concat({{}})",
            "invalid value (table) at index 1 in table for 'concat'",
        ),
        (
            "table.concat(1)",
            "bad argument #1 to 'concat' (table expected, got number)",
        ),
        (
            "table.concat({}, '', -1 / 0)",
            "bad argument #3 to 'concat' (out of range)",
        ),
        (
            "table.insert(nil, 1)",
            "bad argument #1 to 'insert' (table expected, got nil)",
        ),
        (
            "table.insert({}, 1, 2, 3)",
            "wrong number of arguments to 'insert'",
        ),
        (
            "table.insert({}, 'x', 2)",
            "bad argument #2 to 'insert' (number expected, got string)",
        ),
        (
            "table.remove()",
            "bad argument #1 to 'remove' (table expected, got nil)",
        ),
        ("table.sort({1, 'x'})", "attempt to compare string with number"),
        ("table.sort({{}, {}})", "attempt to compare two table values"),
        (
            "table.sort({}, 1)",
            "bad argument #2 to 'sort' (function expected, got number)",
        ),
        (
            "math.random(0)",
            "bad argument #1 to 'random' (interval is empty)",
        ),
        (
            "ipairs()",
            "bad argument #1 to 'ipairs' (table expected, got no value)",
        ),
        (
            "unpack()",
            "bad argument #1 to 'unpack' (table expected, got no value)",
        ),
        (
            "os.time(1)",
            "bad argument #1 to 'time' (table expected, got number)",
        ),
        ("os.time({year = 1})", "field 'month' missing in date table"),
        ("os.date('%c', 1e300)", "bad argument #2 to 'date' (out of range)"),
        ("require()", "module nil not found"),
        ("tostring()", "bad argument #1 to 'tostring' (value expected)"),
        ("tonumber()", "bad argument #1 to 'tonumber' (value expected)"),
        (
            "require('kube').resourceAdd({})",
            "bad argument #1 to 'resourceAdd' (string expected, got table)",
        ),
        (
            "require('kube').accuratePodRequirements()",
            "bad argument #1 to 'accuratePodRequirements' (table expected, got no value)",
        ),
        (
            "require('kube').getPodDependencies({}, {})",
            "bad argument #2 to 'getPodDependencies' (string expected, got table)",
        ),
        (
            "require('kube').accuratePodRequirements({print})",
            "bad argument #1 to 'accuratePodRequirements' ([1]: cannot encode function to JSON)",
        ),
    ] {
        assert_eq!(
            run_error(&format!("\n{call}")),
            format!("test:2: {expected}"),
            "{call}"
        );
    }
}

#[test]
fn caught_errors_are_the_raised_ones() {
    for (body, expected) in [
        ("local _, e = pcall(error, {code = 7}) return e.code", json!(7)),
        ("local _, e = pcall(error) return e == nil", json!(true)),
        (
            "local _, e = pcall(function() return string.find() end) return type(e)",
            json!("string"),
        ),
        (
            "local _, e = pcall(function() string.rep('x') end) return e",
            json!("test:1: string.rep is not available"),
        ),
        (
            "local _, e = pcall(function() local x = nil + 1 end) return e",
            json!("test:1: attempt to perform arithmetic on a nil value"),
        ),
        (
            "return select('#', pcall(function() return 1, 2, 3 end))",
            json!(4),
        ),
        ("return (pcall())", json!(false)),
        ("return select(2, pcall())", json!("attempt to call a nil value")),
        ("return select(2, pcall(error, 'x', 2))", json!("x")),
        (
            "return select(2, pcall(function() error('x', 2) end))",
            json!("x"),
        ),
        // More values than the C stack reserves.
        (
            "local t = {} for i = 1, 1000 do t[i] = i end
             local n, sum = 0, 0
             for _, v in ipairs({pcall(unpack, t)}) do n = n + 1 sum = sum + (tonumber(v) or 0) end
             return {n, sum, select('#', pcall(unpack, t, 1, 19)), select('#', xpcall(function() return unpack(t) end, print))}",
            json!([1001, 500_500, 20, 1001]),
        ),
        (
            "return select('#', pcall(function() return nil, 1, nil end))",
            json!(4),
        ),
        (
            "return select(2, xpcall(function() error({1}) end, function(e) return e[1] end))",
            json!(1),
        ),
        (
            "return select(2, xpcall(error, function() error('again', 0) end))",
            json!("again"),
        ),
    ] {
        assert_eq!(run(body), Ok(expected), "{body}");
    }
    assert_eq!(run_error("error({})"), "error object is a table value");
    assert_eq!(run_error("error()"), "error object is a nil value");
    assert_eq!(run_error("error('words', 0)"), "words");
    assert_eq!(
        run_error("local function f() f() end f()"),
        "test:1: stack overflow"
    );
}

#[test]
fn table_functions_behave_as_in_c() {
    for (body, expected) in [
        (
            "local t = {'a', 'c'} table.insert(t, 2, 'b') return t",
            json!(["a", "b", "c"]),
        ),
        ("local t = {'a'} table.insert(t, 3, 'c') return t[3]", json!("c")),
        (
            "local t = {'a', 'b', 'c'} return table.remove(t, 1) .. t[1] .. #t",
            json!("ab2"),
        ),
        ("local t = {'a', 'b'} return table.remove(t) .. #t", json!("b1")),
        ("return table.remove({}) == nil", json!(true)),
        ("return select('#', table.remove({'a'}, 9))", json!(0)),
        ("return table.getn({1, 2}) + table.maxn({[7] = 1})", json!(9)),
        ("return table.concat({1, 2.5, 'x'}, ', ')", json!("1, 2.5, x")),
        ("return table.concat({'a', 'b', 'c'}, '', 2, 3)", json!("bc")),
        ("return table.concat({}, ',')", json!("")),
        ("local t = {3, 1, 2} table.sort(t) return t", json!([1, 2, 3])),
        (
            "local t = {3, 1, 2, 5, 4} table.sort(t, function(a, b) return a > b end) return t",
            json!([5, 4, 3, 2, 1]),
        ),
        ("local t = {'b', 'a'} table.sort(t) return t", json!(["a", "b"])),
        (
            "function table.contains(t, x) for _, v in ipairs(t) do if v == x then return true end end end return table.contains({1}, 1)",
            json!(true),
        ),
        (
            "local t = {} for i = 1, 1000 do t[i] = i * 7919 % 1009 end table.sort(t) for i = 2, 1000 do if t[i] < t[i - 1] then return i end end return 'sorted'",
            json!("sorted"),
        ),
    ] {
        assert_eq!(run(body), Ok(expected), "{body}");
    }
}

#[test]
fn the_os_library_behaves_as_in_c() {
    for (body, expected) in [
        ("return os.date('!%c', 0)", json!("Thu Jan  1 00:00:00 1970")),
        (
            "return os.date('!%x %X %p %%', 0)",
            json!("01/01/70 00:00:00 AM %"),
        ),
        (
            "local t = os.date('!*t', 86400 * 59) return {t.year, t.month, t.day, t.hour, t.min, t.sec, t.wday, t.yday}",
            json!([1970, 3, 1, 0, 0, 0, 1, 60]),
        ),
        ("return os.date('!*t', 0).isdst", json!(false)),
        (
            "local t = os.date('*t', 1e9) return os.time(t)",
            json!(1_000_000_000),
        ),
        (
            "return os.time({year = 2024, month = 14, day = 35}) - os.time({year = 2025, month = 3, day = 7})",
            json!(0),
        ),
        (
            "return os.time({year = 2024, month = 1, day = 1, hour = 0, min = 0, sec = 90}) - os.time({year = 2024, month = 1, day = 1, hour = 0, min = 1, sec = 30})",
            json!(0),
        ),
        (
            "return os.date('!%F %T', os.time({year = 2020, month = 0, day = 0, hour = 12, min = -1, sec = 61}))",
            json!("2019-11-30 12:00:01"),
        ),
        (
            "return os.time({year = 1e6, month = 1, day = 1}) == nil",
            json!(true),
        ),
        ("return os.time() > 1e9", json!(true)),
        ("return os.date('%c') ~= ''", json!(true)),
    ] {
        assert_eq!(run(body), Ok(expected), "{body}");
    }
}

#[test]
fn errors_have_the_full_name_of_the_script() {
    let name = "a-name-that-is-longer-than-lua-has-names-of-scripts.é.".repeat(3);
    for script in [
        "function ReflectStatus() error('x') end",
        "function ReflectStatus() local x = nil + 1 end",
        "return (",
        "while true do end",
    ] {
        let program = LuaProgram::compile(&name, script);
        let question = Question::Status { object: &json!({}) };
        let error = program.and_then(|program| program.interpret(question, &LIMITS));
        let error = error.unwrap_err().to_string();
        assert!(error.starts_with(&format!("{name}:1: ")), "{error}");
    }
}
