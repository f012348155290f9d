//! Every command of ours on a page is valid, with its arguments.

use std::process::Command;

use clap::Parser as _;
use windlass::commands::Cli;

use crate::page::Page;

/// Returns the `windlass` commands in a shell block, without their output.
fn typed_commands(language: &str, block: &str) -> Vec<String> {
    let has_prompts = language == "console" && block.lines().any(|line| line.starts_with("$ "));
    let joined = block.replace("\\\n", " ");
    let lines = joined.lines().filter_map(|line| match has_prompts {
        true => line.strip_prefix("$ "),
        false => Some(line.trim()),
    });
    lines
        .flat_map(|line| line.split(" #").next().unwrap_or_default().split(" | "))
        .map(|command| command.split(" > ").next().unwrap_or_default().trim().to_owned())
        .filter(|command| command.starts_with("windlass "))
        .collect()
}

/// Splits a line into words like a shell, with pairs of quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, ' ') if !words.last().unwrap().is_empty() => words.push(String::new()),
            (None, ' ') => {}
            _ => words.last_mut().unwrap().push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[test]
fn every_command_is_valid() {
    let mut seen = 0;
    let mut refused = Vec::new();
    for page in Page::all() {
        let shells = page
            .code_blocks()
            .filter(|block| ["sh", "console"].contains(&block.language));
        for command in shells.flat_map(|block| typed_commands(block.language, block.text)) {
            seen += 1;
            if let Err(error) = Cli::try_parse_from(words(&command))
                && error.exit_code() != 0
            {
                refused.push(format!("{}: {command}: {error}", page.path.display()));
            }
        }
    }
    assert!(seen > 10, "only {seen} commands found");
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

#[test]
fn exit_codes_match_the_page() {
    for (arguments, expected) in [
        (&["check", "--rules"][..], 0),
        (&["check", "/nowhere"], 1),
        (&["policy", "check", "-f", "/nowhere"], 1),
        (&["check"], 2),
        (&["policy", "test", "/nowhere"], 1),
        (
            &["policy", "apply", "--policy", "/nowhere", "--object", "/nowhere"],
            2,
        ),
        (
            &[
                "policy", "explain", "--policy", "/nowhere", "--object", "/nowhere",
            ],
            2,
        ),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_windlass"))
            .args(arguments)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(expected), "{arguments:?}");
    }
}

#[test]
fn output_and_comments_are_ignored() {
    let block = "$ windlass certs > file | head -1\nwindlass is installed\n$ kubectl get pods\n";
    assert_eq!(typed_commands("console", block), ["windlass certs"]);
    assert_eq!(
        typed_commands("sh", "windlass rotate \\\n  a/b   # now\n"),
        ["windlass rotate    a/b"]
    );
    assert_eq!(
        words("windlass x --version '>=1.2 <2'"),
        ["windlass", "x", "--version", ">=1.2 <2"]
    );
}
