//! Pages that are generated from the program.

use std::{env, fs, process::Command};

use crate::{
    api,
    page::{Page, root},
};

/// Compares a page with its generated content, or writes it.
fn check_page(path: &str, made: &str) {
    if env::var_os("WINDLASS_WRITE_DOCS").is_some() {
        fs::write(root().join(path), made).unwrap();
    }
    assert!(
        Page::read(path.into()).text == made,
        "{path} is out of date: run WINDLASS_WRITE_DOCS=1 cargo test --test documentation"
    );
}

#[test]
fn the_rules_page_is_up_to_date() {
    let printed = Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(["check", "--rules"])
        .output()
        .unwrap();
    let printed = String::from_utf8(printed.stdout).unwrap();
    let mut made = "# Rules of windlass check\n\nAs `windlass check --rules` prints them.\n\n| rule | says |\n|---|---|\n".to_owned();
    for line in printed.lines() {
        let (rule, says) = line.split_once(": ").unwrap();
        made.push_str(&format!("| `{rule}` | {} |\n", api::cell(says)));
    }
    check_page("docs/rules.md", &made);
}

#[test]
fn the_api_page_is_up_to_date() {
    check_page("docs/api.md", &api::reference());
}

/// Compares the section between two marks of a page with its generated content, or writes it.
fn check_section(path: &str, mark: &str, made: &str) {
    let page = Page::read(path.into()).text;
    let (begin, end) = (format!("<!-- {mark} -->\n"), format!("<!-- end of {mark} -->\n"));
    let (before, rest) = page.split_once(&begin).unwrap();
    let (_, after) = rest.split_once(&end).unwrap();
    check_page(path, &format!("{before}{begin}{made}{end}{after}"));
}

#[test]
fn the_doctor_page_is_up_to_date() {
    let printed = Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(["doctor", "--checks"])
        .output()
        .unwrap();
    let printed = String::from_utf8(printed.stdout).unwrap();
    let mut made = "\n| reason | group | expected state, or information |\n|---|---|---|\n".to_owned();
    for line in printed.lines() {
        let (check, says) = line.split_once("): ").unwrap();
        let (name, group) = check.split_once(" (").unwrap();
        made.push_str(&format!("| `{name}` | {group} | {} |\n", api::cell(says)));
    }
    made.push('\n');
    check_section("docs/doctor.md", "checks", &made);
}
