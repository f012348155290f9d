use crate::Path;

#[test]
fn an_invalid_path_is_reported_with_its_column() {
    for (text, problem, column) in [
        (".a[", "expected \"]\"", 4),
        (
            ".a[]",
            "expected an index, a slice, \"*\", a filter or a name in quotes",
            4,
        ),
        (
            ".a[b]",
            "expected an index, a slice, \"*\", a filter or a name in quotes",
            4,
        ),
        (".a['b]", "expected '\\''", 7),
        (".a[0", "expected \"]\"", 5),
        (
            ".a[0,]",
            "expected an index, a slice, \"*\", a filter or a name in quotes",
            6,
        ),
        (".a[--1]", "expected an index", 4),
        (".a[99999999999999999999]", "expected an index", 4),
        (".a[::0]", "expected a step above 0", 6),
        (".a[1:2:-1]", "expected a step above 0", 8),
        (".a.", "expected the name of a field", 4),
        (".a..", "", 0),
        (".a....b", "\"..\" twice", 5),
        ("..a..b..c..d..e", "more than four \"..\"", 13),
        (".a b", "unexpected 'b'", 4),
        (".ä b", "unexpected 'b'", 4),
        (".a,b", "unexpected ','", 3),
        (".a\\", "expected a character after \"\\\"", 4),
        ("{.a", "expected \"}\"", 4),
        ("{.a}{.b}", "text after \"}\"", 5),
        ("{range .a[*]}{.b}{end}", "expected \"}\"", 8),
        (".a}", "unexpected '}'", 3),
        (".a[?@.b]", "expected \"(\"", 5),
        (".a[?(@.b]", "expected \")\" or one of == != < <= > >=", 9),
        (
            ".a[?(@.b==)]",
            "expected \"@\", a number, true, false, null or a text in quotes",
            11,
        ),
        (
            ".a[?(@.b==c)]",
            "expected \"@\", a number, true, false, null or a text in quotes",
            11,
        ),
        (
            ".a[?($.b==1)]",
            "expected \"@\", a number, true, false, null or a text in quotes",
            6,
        ),
        (".a[?(@.b=~'c')]", "expected \")\" or one of == != < <= > >=", 9),
        (".a[?(@.b==1 && @.c==2)]", "only one comparison is allowed", 13),
        (".a[?(@.b && @.c)]", "only one comparison is allowed", 10),
        (".a[?(@..b)]", "\"..\" in a filter", 7),
        (".a[?(1)]", "expected \"@\"", 6),
        (".a[?(@.)]", "expected the name of a field", 8),
        (".a[?(@.b==1]", "expected \")\"", 12),
        (".a[?(@.b==1)", "expected \"]\"", 13),
    ] {
        let parsed = Path::parse(text);
        if problem.is_empty() {
            assert!(parsed.is_ok(), "{text}");
            continue;
        }
        let error = parsed.unwrap_err();
        let expected = format!("{text:?} is not a JSONPath: {problem} at column {column}");
        assert_eq!(error.to_string(), expected);
        assert_eq!(error.column(), column);
    }
}

#[test]
fn the_size_of_paths_is_limited() {
    let long = ".a".repeat(2049);
    let error = Path::parse(&long).unwrap_err().to_string();
    assert!(
        error.ends_with("is not a JSONPath: more than 4096 bytes at column 1"),
        "{error}"
    );
    assert!(error.len() < 400);
    let nested = |depth| format!("{}.a{}", "[?(@".repeat(depth), ")]".repeat(depth));
    assert!(Path::parse(&nested(8)).is_ok());
    let error = Path::parse(&nested(9)).unwrap_err().to_string();
    assert!(error.contains("filters nested more than eight deep"), "{error}");
}

#[test]
fn a_path_displays_its_source() {
    for text in ["{ .a }", " .a[0] ", "$['b']"] {
        assert_eq!(text.parse::<Path>().unwrap().to_string(), text);
    }
}
