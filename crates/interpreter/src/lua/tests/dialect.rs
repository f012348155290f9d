//! What a script has, and what it has not.

use serde_json::json;

use super::{failed, returned};

#[test]
fn the_libraries_are_those_of_lua_5_1() {
    for (body, expected) in [
        ("return 1 + 1", json!(2)),
        ("return 7 / 2", json!(3.5)),
        ("return tostring(3)", json!("3")),
        ("return tostring(1e15)", json!("1e+15")),
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
        ("print('nobody hears it') return 1", json!(1)),
    ] {
        assert_eq!(returned(body), Ok(expected), "{body}");
    }
}

#[test]
fn what_leads_out_is_not_there() {
    for name in ["io", "debug", "package", "coroutine", "jit", "bit32", "utf8"] {
        assert_eq!(
            returned(&format!("return {name} == nil")),
            Ok(json!(true)),
            "{name}"
        );
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
            returned(&format!("return os.{name} == nil")),
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
            failed(&format!("return {name}('x')")),
            format!("test:1: {name} is not available")
        );
    }
    assert_eq!(failed("return require('os')"), "test:1: module os not found");
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
        assert_eq!(returned(body), Ok(expected), "{body}");
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
            failed(&format!("return string.match('a', '{pattern}')")),
            format!("test:1: {expected}")
        );
    }
}

#[test]
fn errors_name_the_script_and_its_line() {
    assert_eq!(
        failed("local x = nil\n return x.y"),
        "test:2: attempt to index local 'x' (a nil value)"
    );
    assert_eq!(failed("error('own words')"), "test:1: own words");
    assert_eq!(failed("\n\n return ("), "test:3: unexpected symbol near 'end'");
    assert_eq!(
        failed("return require('kube').resourceAdd('much')"),
        "test:1: \"much\" is not a quantity: use for example 500m, 2, 1Gi or 1e3"
    );
}

#[test]
fn the_kube_library_knows_quantities_and_pods() {
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
            returned(&format!("local kube = require('kube') {body}")),
            Ok(expected),
            "{body}"
        );
    }
    assert_eq!(
        failed("return require('kube').getResourceQuantity('-1')"),
        "test:1: quantity cannot be negative"
    );
}
