//! Hostile programs fail, and do no other harm.

#![expect(clippy::unwrap_used, reason = "a failure fails the test")]

use std::{cell::Cell, time::Instant};

use policy_cue::{CueBudget, CueInputs, CueProblems, CueProgram, EvaluationError};
use serde_json::{Value, json};

/// The time limit of a hostile program in a build without optimizations.
const PATIENCE_SECONDS: u64 = 20;

fn problems(source: &str) -> CueProblems {
    let started = Instant::now();
    let problems = CueProgram::compile(source).unwrap_err();
    assert!(
        started.elapsed().as_secs() < PATIENCE_SECONDS,
        "{:?}",
        started.elapsed()
    );
    problems
}

fn run(source: &str, object: &Value) -> Result<Option<Value>, EvaluationError> {
    let started = Instant::now();
    let program = CueProgram::compile(source).unwrap();
    let inputs = CueInputs::new().with_input("object", object);
    let output = program.evaluate(&inputs, "patches", &CueBudget::default());
    assert!(
        started.elapsed().as_secs() < PATIENCE_SECONDS,
        "{:?}",
        started.elapsed()
    );
    output
}

fn is_exhausted(source: &str) -> bool {
    let error = run(source, &json!({})).unwrap_err();
    assert!(matches!(error, EvaluationError::Exhausted { .. }), "{error}");
    true
}

#[test]
fn deep_brackets_are_refused() {
    for (open, close) in [
        ("[", "]"),
        ("{a: ", "}"),
        ("(", ")"),
        ("!", ""),
        ("-", ""),
        ("*", ""),
        ("len(", ")"),
        ("\"\\(", ")\""),
        ("[if true {", "}]"),
        ("[for x in ", " {x}]"),
        ("x[", "]"),
        ("a: ", ""),
        ("<", ""),
        ("1 div ", ""),
    ] {
        for depth in [65, 100_000] {
            let source = format!("x: 1\npatches: {}1{}", open.repeat(depth), close.repeat(depth));
            let problems = problems(&source);
            assert!(!problems.to_string().is_empty());
        }
        let unclosed = format!("patches: {}", open.repeat(100_000));
        problems(&unclosed);
        problems(&open.repeat(100_000));
        if !close.is_empty() {
            problems(&close.repeat(100_000));
        }
    }
}

#[test]
fn nesting_within_the_limits_fits_the_stack_of_a_thread() {
    for (open, close, depth) in [
        ("[", "]", 60),
        ("{a: ", "}", 30),
        ("(", ")", 60),
        ("-", "", 60),
        ("len([", "])", 30),
        ("\"\\(", ")\"", 30),
        ("[if true {", "}]", 20),
        ("[for x in [1] {", "}]", 20),
        ("[1][", "]", 30),
        ("(1 & ", ")", 60),
        ("(*2 | ", ")", 1),
    ] {
        let source = format!("patches: [{}0{}]", open.repeat(depth), close.repeat(depth));
        let program = CueProgram::compile(&source);
        let program = program.unwrap_or_else(|problems| panic!("{open}: {problems}"));
        let output = program.evaluate(&CueInputs::new(), "patches", &CueBudget::default());
        assert!(
            output
                .as_ref()
                .err()
                .is_none_or(|error| error.category() == "error"),
            "{open}: {output:?}"
        );
    }
    // The construct that needs the most stack per level of the budget.
    for link in [
        "[NEXT]",
        "{a: NEXT}",
        "[if true {NEXT}]",
        "NEXT & NEXT",
        "(NEXT | *NEXT)",
        "\"\\(NEXT)\"",
    ] {
        let chain: String = (0..500)
            .map(|index| format!("f{index}: {}\n", link.replace("NEXT", &format!("f{}", index + 1))))
            .collect();
        let output = run(&format!("{chain}f500: 1\npatches: [f0]"), &json!({}));
        assert!(output.is_err(), "{link}");
    }
}

#[test]
fn long_flat_constructs_are_allowed() {
    let sum = format!("patches: [1{}]", " + 1".repeat(50_000));
    assert_eq!(run(&sum, &json!({})).unwrap(), Some(json!([50_001])));
    let all = format!("patches: [true{}]", " && true".repeat(50_000));
    assert_eq!(run(&all, &json!({})).unwrap(), Some(json!([true])));
    let path = format!("object: _\npatches: [object{} == _|_]", ".a".repeat(50_000));
    assert_eq!(run(&path, &json!({})).unwrap(), Some(json!([true])));
    let parts = format!("patches: [1{}]", " & 1".repeat(50_000));
    assert_eq!(run(&parts, &json!({})).unwrap(), Some(json!([1])));
}

#[test]
fn large_literals_are_allowed() {
    let text = "x".repeat(1 << 20);
    let source = format!("patches: [{text:?}]");
    assert_eq!(run(&source, &json!({})).unwrap(), Some(json!([text])));
    let fields: String = (0..50_000).map(|index| format!("f{index}: {index}\n")).collect();
    let source = format!("{fields}patches: [f49999]");
    assert_eq!(run(&source, &json!({})).unwrap(), Some(json!([49_999])));
    let items = vec!["1"; 200_000].join(",");
    let source = format!("patches: [{items}]");
    assert!(run(&source, &json!({})).is_err());
    let digits = "9".repeat(300);
    let source = format!("patches: [{digits} + 1]");
    assert!(run(&source, &json!({})).unwrap().is_some());
    problems(&format!("patches: [{}]", "9".repeat(1 << 20)));
}

#[test]
fn doubling_strings_and_lists_are_stopped() {
    for step in [
        "\"\\(PREVIOUS)\\(PREVIOUS)\"",
        "PREVIOUS + PREVIOUS",
        "PREVIOUS * 2",
        "2 * PREVIOUS",
    ] {
        for first in ["\"xxxxxxxxxxxxxxxx\"", "[1, 2, 3, 4]"] {
            if first.starts_with('[') && step.starts_with('"') {
                continue;
            }
            let mut source = format!("f0: {first}\n");
            for index in 1..60 {
                let value = step.replace("PREVIOUS", &format!("f{}", index - 1));
                source.push_str(&format!("f{index}: {value}\n"));
            }
            source.push_str("patches: [f59]");
            assert!(is_exhausted(&source));
        }
    }
    assert!(is_exhausted("x: 1\npatches: 1000000 * [x]"));
    assert!(is_exhausted("patches: 1000000000000 * [1]"));
    assert!(is_exhausted("patches: [\"a\" * 1000000000000]"));
    assert!(is_exhausted(
        "import \"strings\"\npatches: [strings.Repeat(\"ab\", 9223372036854775807)]"
    ));
    assert!(is_exhausted(
        "import \"list\"\npatches: list.Repeat([1], 9223372036854775807)"
    ));
    let replace = format!(
        "import \"strings\"\nx: {:?}\npatches: [strings.Replace(x, \"a\", x, -1)]",
        "a".repeat(10_000)
    );
    assert!(is_exhausted(&replace));
}

#[test]
fn nested_loops_are_stopped() {
    let loops: String = (0..8).map(|index| format!("for x{index} in l ")).collect();
    let source = format!("l: [{}]\npatches: [{loops}{{x0}}]", vec!["1"; 100].join(","));
    assert!(is_exhausted(&source));
}

#[test]
fn infinite_recursion_is_stopped() {
    for source in [
        "a: {b: a}\npatches: [a]",
        "a: {b: a & {c: 1}}\npatches: [a]",
        "a: [a]\npatches: a",
        "a: b\nb: {c: a}\npatches: [a]",
        "a: {for k, v in a {b: 1}}\npatches: [a]",
        "import \"list\"\na: list.Concat([a, [1]])\npatches: a",
        "a: [for x in a {x}]\npatches: a",
        "a: a + 1\npatches: [a]",
        "a: b\nb: a\npatches: [a]",
        "a: b & {x: 1}\nb: a & {y: 1}\npatches: [a.z]",
        "a: {x: a.y, y: a.x}\npatches: [a.x]",
        "a: *a | 1\nb: a + b\npatches: [b]",
        "a: (a)\nb: \"\\(b)\"\npatches: [b]",
        "patches: [patches]",
        "patches: patches & [patches]",
        "if a {a: true}\na: bool\npatches: [a]",
    ] {
        run(source, &json!({})).unwrap_err();
    }
    let chain: String = (0..10_000)
        .map(|index| format!("f{index}: f{}\n", index + 1))
        .collect();
    assert!(is_exhausted(&format!("{chain}f10000: 1\npatches: [f0]")));
    // A value that many fields share is evaluated once.
    let shared: String = (1..50)
        .map(|index| format!("f{index}: f{0} + f{0}\n", index - 1))
        .collect();
    let output = run(&format!("f0: 1\n{shared}patches: [f49]"), &json!({})).unwrap();
    assert_eq!(output, Some(json!([1_u64 << 49])));
    let structs: String = (1..50)
        .map(|index| format!("f{index}: {{a: f{0}, b: f{0}}}\n", index - 1))
        .collect();
    assert!(is_exhausted(&format!("f0: 1\n{structs}patches: [f49]")));
}

#[test]
fn huge_numbers_are_refused_or_exact() {
    problems("patches: [1e1000000000]");
    problems("patches: [1e-1000000000]");
    assert!(run("patches: [1e100000 * 1e100000]", &json!({})).is_err());
    assert!(run("patches: [1e100000 + 1e-100000]", &json!({})).is_err());
    assert!(run("patches: [1e100000 / 3]", &json!({})).is_err());
    assert_eq!(
        run("patches: [1e100000 > 1e99999]", &json!({})).unwrap(),
        Some(json!([true]))
    );
    assert!(run("import \"math\"\npatches: [math.Round(1e100000)]", &json!({})).is_err());
    let source = "import \"math\"\npatches: [math.Round(1e999) > math.Ceil(1e-100000)]";
    assert_eq!(run(source, &json!({})).unwrap(), Some(json!([true])));
    let source = "import \"strconv\"\npatches: [strconv.FormatInt(1e100000, 2)]";
    run(source, &json!({})).unwrap_err();
}

#[test]
fn patterns_take_linear_time() {
    let text = "a".repeat(60_000);
    let object = json!({"text": text});
    for pattern in [
        "(a+)+$",
        "(a|aa)+b",
        "(x+x+)+y",
        "([a-z]+)*[0-9]",
        "(.*)(.*)(.*)(.*)b",
    ] {
        let source = format!("object: _\npatches: [object.text =~ {pattern:?}]");
        assert!(run(&source, &object).is_ok(), "{pattern}");
    }
    problems(r#"patches: ["a" =~ "((a{900}){900}){900}"]"#);
    problems(r#"patches: ["a" =~ "a{100000}"]"#);
    problems(&format!("patches: [\"a\" =~ \"{}\"]", "(".repeat(100_000)));
    let error = run(
        "object: _\np: \"((a{900}){900})\"\npatches: [object.text =~ p]",
        &object,
    )
    .unwrap_err();
    assert_eq!(error.category(), "error");
    let long = json!({"text": "a".repeat(1 << 20)});
    let error = run("object: _\npatches: [object.text =~ \"b\"]", &long).unwrap_err();
    assert_eq!(error.category(), "error");
}

#[test]
fn large_and_deep_objects_are_allowed() {
    let wide: Value = (0..20_000)
        .map(|index| (format!("key-{index}"), json!({"value": index})))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let object = json!({"metadata": {"labels": wide}});
    let output = run(
        "object: _\npatches: [object.metadata.labels.\"key-19999\".value, len(object.metadata.labels)]",
        &object,
    );
    assert_eq!(output.unwrap(), Some(json!([19_999, 20_000])));
    // When unified with another struct, each of its fields counts.
    let output = run(
        "object: {metadata: {labels: {extra: 1}}}\npatches: [object.metadata.labels.\"key-7\".value]",
        &object,
    );
    assert_eq!(output.unwrap(), Some(json!([7])));
    let mut deep = json!(1);
    for _ in 0..120 {
        deep = json!({ "a": deep });
    }
    assert!(run("object: _\npatches: [object]", &deep).is_err());
    assert!(run("object: _\npatches: [object.a.a.a == object.a.a.a]", &deep).is_err());
}

#[test]
fn all_problems_are_reported_at_once() {
    let source = "#D: 1\n_h: 2\nx: 'bytes'\ny: >5\nz: [1, ...]\n(x): 1\n[string]: 2\nlet a = 1\nX=b: 1\nc: x[1:2]\nd: 7 div 2\ne: \"\"\"\n  a\n  \"\"\"\nf: (1 | 2) | 3";
    let found = problems(source);
    let constructs: Vec<(u32, &str)> = found
        .as_slice()
        .iter()
        .map(|problem| (problem.position.line, problem.construct))
        .collect();
    for expected in [
        (1, "definition"),
        (2, "hidden field"),
        (3, "bytes literal"),
        (4, "bound"),
        (5, "open list"),
        (6, "dynamic field"),
        (7, "pattern constraint"),
        (8, "let clause"),
        (9, "alias"),
        (10, "slice"),
        (11, "integer division"),
        (12, "string of several lines"),
    ] {
        assert!(
            constructs.contains(&expected),
            "{expected:?} is not in {constructs:?}"
        );
    }
    let names = "a: b\nc: strings.ToUpper(\"x\")\nd: int8\ne: close({})\nf: len\n";
    let found = problems(names);
    assert_eq!(found.as_slice().len(), 5, "{found}");
    let many = "a: 'x'\n".repeat(10_000);
    assert!(problems(&many).as_slice().len() <= 64);
    let many = "a: b\n".repeat(10_000);
    assert!(problems(&many).as_slice().len() <= 64);
}

#[test]
fn the_deadline_stops_an_evaluation() {
    let program = CueProgram::compile(
        "l: [1, 2, 3, 4, 5, 6, 7, 8, 9]\npatches: [for a in l for b in l for c in l {a}]",
    )
    .unwrap();
    let asked = Cell::new(0);
    let has_run_out = || {
        asked.set(asked.get() + 1);
        asked.get() > 2
    };
    let budget = CueBudget {
        has_run_out: &has_run_out,
        ..CueBudget::default()
    };
    let error = program
        .evaluate(&CueInputs::new(), "patches", &budget)
        .unwrap_err();
    assert_eq!(error.category(), "exhausted");
    assert_eq!(asked.get(), 3);
    let budget = CueBudget {
        steps: 10,
        ..CueBudget::default()
    };
    let error = program
        .evaluate(&CueInputs::new(), "patches", &budget)
        .unwrap_err();
    assert_eq!(error.category(), "exhausted");
}

#[test]
fn a_program_can_be_evaluated_concurrently() {
    let program = CueProgram::compile("object: _\npatches: [object.n + 1, object.s =~ \"^a\"]").unwrap();
    std::thread::scope(|scope| {
        for number in 0..4 {
            let program = &program;
            scope.spawn(move || {
                let object = json!({"n": number, "s": "abc"});
                let inputs = CueInputs::new().with_input("object", &object);
                for _ in 0..100 {
                    let output = program.evaluate(&inputs, "patches", &CueBudget::default());
                    assert_eq!(output, Ok(Some(json!([number + 1, true]))));
                }
            });
        }
    });
}

#[test]
fn errors_do_not_contain_texts_of_inputs() {
    let object = json!({"secret": "hunter2", "other": "hunter3"});
    for source in [
        "object: _\npatches: [object.secret & object.other]",
        "object: _\npatches: [object.secret + 1]",
        "object: _\npatches: [object.secret.deeper]",
        "object: _\npatches: [if object.secret {1}]",
        "object: _\nimport_: 1\npatches: [object[object.secret]]",
        "object: _\npatches: [(object.secret | object.other) + \"\"]",
        "import \"strconv\"\nobject: _\npatches: [strconv.Atoi(object.secret)]",
        "import \"strconv\"\nobject: _\npatches: [\"a\" =~ object.secret + \"(\"]",
    ] {
        let error = run(source, &object).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter"), "{error}");
    }
}
