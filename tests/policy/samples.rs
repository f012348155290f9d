//! The cases of the sample policies pass.

use crate::{policy, samples};

#[test]
fn all_cases_of_the_samples_pass() {
    let printed = policy(&samples(), &["test", "."]);
    assert_eq!(
        (printed.code, printed.stderr.as_str()),
        (Some(0), ""),
        "{printed:?}"
    );
    let (pass, rest) = printed.stdout.split_once(" of ").unwrap();
    let (all, rest) = rest.split_once(' ').unwrap();
    assert_eq!((pass, rest), (all, "cases pass\n"));
    assert!(all.parse::<usize>().unwrap() >= 40, "{all}");
}

#[test]
fn the_samples_have_no_problems() {
    let printed = policy(&samples(), &["check", "-f", "."]);
    let nothing = (Some(0), "", "");
    assert_eq!((printed.code, &*printed.stdout, &*printed.stderr), nothing);
}

#[test]
fn each_sample_has_cases() {
    for entry in samples().read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            assert!(path.join("cases.yaml").is_file(), "{}", path.display());
        }
    }
}
