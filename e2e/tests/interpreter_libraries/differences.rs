//! Function bodies with different results, and why.

/// Bodies with different results, and why. Where gopher-lua deviates from Lua 5.1, no script relies on it.
pub(crate) const DIFFERENT: &[(&str, &str)] = &[
    (
        "return string.format('%d', 'x')",
        "gopher-lua formats like Go, not like C",
    ),
    (
        r#"return string.format('%q', 'a "b" \\ \n c')"#,
        "gopher-lua formats like Go, not like C",
    ),
    (
        r#"return string.format('%q', 'a\0b')"#,
        "gopher-lua formats like Go, not like C",
    ),
    (
        "return string.format('%u', 5)",
        "gopher-lua formats like Go, not like C",
    ),
    (
        "return string.format('%s')",
        "gopher-lua formats like Go, not like C",
    ),
    (
        "return string.format('%d')",
        "gopher-lua formats like Go, not like C",
    ),
    (
        "return string.format('%y', 1)",
        "gopher-lua formats like Go, not like C",
    ),
    (
        "return string.format('%', 1)",
        "gopher-lua formats like Go, not like C",
    ),
    (
        "return string.format('%5')",
        "gopher-lua formats like Go, not like C",
    ),
    (
        "return string.format('%x', -1)",
        "gopher-lua formats like Go, not like C",
    ),
    (
        "return string.format('%a', 1)",
        "gopher-lua formats like Go, not like C",
    ),
    (
        "return string.format('%g', 123456.75)",
        "gopher-lua formats like Go, not like C",
    ),
    (
        "return string.format('%10s|', 'äö')",
        "gopher-lua formats like Go, not like C",
    ),
    ("return 1e15 .. ''", "Lua 5.1 prints 14 significant digits"),
    ("return 1e14 .. ''", "Lua 5.1 prints 14 significant digits"),
    ("return 1e16 .. ''", "Lua 5.1 prints 14 significant digits"),
    ("return 1/3 .. ''", "Lua 5.1 prints 14 significant digits"),
    ("return -0 .. ''", "Lua 5.1 prints 14 significant digits"),
    ("return 2^53 .. ''", "Lua 5.1 prints 14 significant digits"),
    ("return 2^63 .. ''", "Lua 5.1 prints 14 significant digits"),
    (
        "return 1234567890.5 .. ''",
        "Lua 5.1 prints 14 significant digits",
    ),
    ("return 0.1 + 0.2 .. ''", "Lua 5.1 prints 14 significant digits"),
    (
        "return 12345678901234567890 .. ''",
        "Lua 5.1 prints 14 significant digits",
    ),
    (
        "return 999999999999999 .. ''",
        "Lua 5.1 prints 14 significant digits",
    ),
    ("return -1e15 .. ''", "Lua 5.1 prints 14 significant digits"),
    ("return tonumber('1e3')", "Lua 5.1 converts strings to numbers"),
    ("return tonumber('-0x10')", "Lua 5.1 converts strings to numbers"),
    ("return 0x1p4", "Lua 5.1 converts strings to numbers"),
    (
        "local n = 0 for i = '1', 2 do n = n + i end return n",
        "Lua 5.1 converts strings to numbers",
    ),
    (
        "return table.concat({1, 2.5, 'x'}, 1)",
        "Lua 5.1 converts strings to numbers",
    ),
    (
        "return os.date('!%Y', '0')",
        "Lua 5.1 converts strings to numbers",
    ),
    (
        "return tonumber('-ff', 16)",
        "strtoul of C has no negative numbers in a base",
    ),
    ("return math.huge", "math.huge is infinite in Lua 5.1"),
    ("return string.char(256)", "a byte is between 0 and 255"),
    ("return string.char(-1)", "a byte is between 0 and 255"),
    (
        "return string.lower('ÄÖ')",
        "Lua 5.1 changes the case of ASCII letters only",
    ),
    (
        "return string.find('abc', '', 4)",
        "gopher-lua handles a start behind the end differently",
    ),
    (
        "return string.find('abc', '', 5)",
        "gopher-lua handles a start behind the end differently",
    ),
    (
        "return string.find('abc', '', 10)",
        "gopher-lua handles a start behind the end differently",
    ),
    (
        "return string.match('THE (quick) fox', '%f[%a]%a+')",
        "gopher-lua does not support frontier patterns",
    ),
    (
        "return string.match('abc', '%')",
        "a malformed pattern is an error in Lua 5.1",
    ),
    (
        "local t = {} for w in string.gmatch('aXbX', '^a') do t[#t+1] = w end return t",
        "gmatch patterns have no anchor in Lua 5.1",
    ),
    (
        "return tostring(string.match('abc', 'x'))",
        "Lua 5.1 returns nil without a match, gopher-lua no value",
    ),
    (
        "return table.concat({1, 2, 3}, ',', 2, 2)",
        "gopher-lua returns a single item without converting it to a string",
    ),
    (
        "return table.concat({1, 2}, ',', 1, 5)",
        "a missing item is an error in Lua 5.1",
    ),
    (
        "local t = {1,2,3} table.remove(t, 0) return t",
        "gopher-lua removes the last item",
    ),
    ("return next({}, 'x')", "a missing key is an error in Lua 5.1"),
    (
        "return select(2, pcall(error, 'x'))",
        "Lua 5.1 adds no position if C called error",
    ),
    (
        "return select(2, xpcall(function() return 1 end))",
        "nothing is to be handled",
    ),
    ("goto done ::done:: return 1", "goto was added in Lua 5.2"),
    ("local goto = 1 return goto", "goto was added in Lua 5.2"),
    ("local t = {} return {a=t, b=t}", "a table may occur twice"),
    ("local t = {1} return {a=t, b=t}", "a table may occur twice"),
    (
        "return os.date('!%c', 0)",
        "gopher-lua supports other date directives, some incorrectly",
    ),
    (
        "return os.date('!%x %X %p', 86399)",
        "gopher-lua supports other date directives, some incorrectly",
    ),
    (
        "return os.date('!%a %A %b %B %d %H %I %j %m %M %S %U %w %W %y %Y %Z %%', 1e9)",
        "gopher-lua supports other date directives, some incorrectly",
    ),
    (
        "return os.date('!%D %e %F %R %T %n %t %C %h %u', 1e9)",
        "gopher-lua supports other date directives, some incorrectly",
    ),
    (
        "return os.date('!%Q', 0)",
        "gopher-lua supports other date directives, some incorrectly",
    ),
    (
        "return os.date('!%s', 1e9)",
        "gopher-lua supports other date directives, some incorrectly",
    ),
    (
        "return os.date('!*t', 1e9).yday",
        "gopher-lua does not support the day of the year",
    ),
    ("return os.time({year=2020,month=1})", "a date has a day"),
    (
        "return -8 % 0.1",
        "Go rounds the remainder of fractions differently",
    ),
];
