//! Bodies of functions for which both do not say the same, and why.

/// What ours says otherwise, and why. Where gopher-lua is not Lua 5.1, no script counts on what it does instead.
pub(crate) const DIFFERENT: &[(&str, &str)] = &[
    (
        "return string.format('%d', 'x')",
        "Go's formatting where C's is meant",
    ),
    (
        r#"return string.format('%q', 'a "b" \\ \n c')"#,
        "Go's formatting where C's is meant",
    ),
    (
        r#"return string.format('%q', 'a\0b')"#,
        "Go's formatting where C's is meant",
    ),
    (
        "return string.format('%u', 5)",
        "Go's formatting where C's is meant",
    ),
    ("return string.format('%s')", "Go's formatting where C's is meant"),
    ("return string.format('%d')", "Go's formatting where C's is meant"),
    (
        "return string.format('%y', 1)",
        "Go's formatting where C's is meant",
    ),
    (
        "return string.format('%', 1)",
        "Go's formatting where C's is meant",
    ),
    ("return string.format('%5')", "Go's formatting where C's is meant"),
    (
        "return string.format('%x', -1)",
        "Go's formatting where C's is meant",
    ),
    (
        "return string.format('%a', 1)",
        "Go's formatting where C's is meant",
    ),
    (
        "return string.format('%g', 123456.75)",
        "Go's formatting where C's is meant",
    ),
    (
        "return string.format('%10s|', 'äö')",
        "Go's formatting where C's is meant",
    ),
    (
        "return 1e15 .. ''",
        "C writes 14 digits where nothing comes between",
    ),
    (
        "return 1e14 .. ''",
        "C writes 14 digits where nothing comes between",
    ),
    (
        "return 1e16 .. ''",
        "C writes 14 digits where nothing comes between",
    ),
    (
        "return 1/3 .. ''",
        "C writes 14 digits where nothing comes between",
    ),
    (
        "return -0 .. ''",
        "C writes 14 digits where nothing comes between",
    ),
    (
        "return 2^53 .. ''",
        "C writes 14 digits where nothing comes between",
    ),
    (
        "return 2^63 .. ''",
        "C writes 14 digits where nothing comes between",
    ),
    (
        "return 1234567890.5 .. ''",
        "C writes 14 digits where nothing comes between",
    ),
    (
        "return 0.1 + 0.2 .. ''",
        "C writes 14 digits where nothing comes between",
    ),
    (
        "return 12345678901234567890 .. ''",
        "C writes 14 digits where nothing comes between",
    ),
    (
        "return 999999999999999 .. ''",
        "C writes 14 digits where nothing comes between",
    ),
    (
        "return -1e15 .. ''",
        "C writes 14 digits where nothing comes between",
    ),
    (
        "return tonumber('1e3')",
        "a number that is written so is one in Lua 5.1",
    ),
    (
        "return tonumber('-0x10')",
        "a number that is written so is one in Lua 5.1",
    ),
    ("return 0x1p4", "a number that is written so is one in Lua 5.1"),
    (
        "local n = 0 for i = '1', 2 do n = n + i end return n",
        "a number that is written so is one in Lua 5.1",
    ),
    (
        "return table.concat({1, 2.5, 'x'}, 1)",
        "a number that is written so is one in Lua 5.1",
    ),
    (
        "return os.date('!%Y', '0')",
        "a number that is written so is one in Lua 5.1",
    ),
    (
        "return tonumber('-ff', 16)",
        "C has no negative numbers of a base",
    ),
    ("return math.huge", "math.huge is infinite in Lua 5.1"),
    ("return string.char(256)", "a byte is one of 0 to 255"),
    ("return string.char(-1)", "a byte is one of 0 to 255"),
    (
        "return string.lower('ÄÖ')",
        "Lua 5.1 knows the case of letters of ASCII",
    ),
    (
        "return string.find('abc', '', 4)",
        "gopher-lua finds nothing behind the end, at the beginning",
    ),
    (
        "return string.find('abc', '', 5)",
        "gopher-lua finds nothing behind the end, at the beginning",
    ),
    (
        "return string.find('abc', '', 10)",
        "gopher-lua finds nothing behind the end, at the beginning",
    ),
    (
        "return string.match('THE (quick) fox', '%f[%a]%a+')",
        "gopher-lua has no frontiers in patterns",
    ),
    (
        "return string.match('abc', '%')",
        "a pattern that is malformed is an error in Lua 5.1",
    ),
    (
        "local t = {} for w in string.gmatch('aXbX', '^a') do t[#t+1] = w end return t",
        "a pattern of gmatch has no anchor in Lua 5.1",
    ),
    (
        "return tostring(string.match('abc', 'x'))",
        "what is not found is nil in Lua 5.1, and not no value",
    ),
    (
        "return table.concat({1, 2, 3}, ',', 2, 2)",
        "gopher-lua returns the only item as it is",
    ),
    (
        "return table.concat({1, 2}, ',', 1, 5)",
        "an item that is not there is an error in Lua 5.1",
    ),
    (
        "local t = {1,2,3} table.remove(t, 0) return t",
        "gopher-lua removes the last item",
    ),
    (
        "return next({}, 'x')",
        "a key that is not there is an error in Lua 5.1",
    ),
    (
        "return select(2, pcall(error, 'x'))",
        "error of Lua 5.1 has no place where C called it",
    ),
    (
        "return select(2, xpcall(function() return 1 end))",
        "nothing is to be handled",
    ),
    ("goto done ::done:: return 1", "goto is of Lua 5.2"),
    ("local goto = 1 return goto", "goto is of Lua 5.2"),
    ("local t = {} return {a=t, b=t}", "a table may be there twice"),
    ("local t = {1} return {a=t, b=t}", "a table may be there twice"),
    (
        "return os.date('!%c', 0)",
        "gopher-lua has other letters for dates, and some wrong",
    ),
    (
        "return os.date('!%x %X %p', 86399)",
        "gopher-lua has other letters for dates, and some wrong",
    ),
    (
        "return os.date('!%a %A %b %B %d %H %I %j %m %M %S %U %w %W %y %Y %Z %%', 1e9)",
        "gopher-lua has other letters for dates, and some wrong",
    ),
    (
        "return os.date('!%D %e %F %R %T %n %t %C %h %u', 1e9)",
        "gopher-lua has other letters for dates, and some wrong",
    ),
    (
        "return os.date('!%Q', 0)",
        "gopher-lua has other letters for dates, and some wrong",
    ),
    (
        "return os.date('!%s', 1e9)",
        "gopher-lua has other letters for dates, and some wrong",
    ),
    (
        "return os.date('!*t', 1e9).yday",
        "gopher-lua does not count days of the year",
    ),
    ("return os.time({year=2020,month=1})", "a date has a day"),
    ("return -8 % 0.1", "Go rounds what is left of fractions otherwise"),
];
