//! Fuzzes paths over objects, which follow the path on separate lines: error positions are within the path,
//! nothing is found twice, copying an absent value changes nothing, and neither does copying an object to
//! itself.

#![no_main]

use std::{collections::HashSet, ptr};

use json_path::Path;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|input: &str| {
    let mut lines = input.splitn(3, '\n');
    let text = lines.next().unwrap_or_default();
    let mut object = || {
        lines
            .next()
            .and_then(|line| serde_json::from_str::<Value>(line).ok())
    };
    let (from, to) = (object().unwrap_or_default(), object().unwrap_or_default());
    let path = match Path::parse(text) {
        Ok(path) => path,
        Err(error) => {
            assert!(
                (1..=text.chars().count() + 1).contains(&error.column()),
                "{error}"
            );
            return;
        }
    };
    let found = path.find(&from);
    let addresses: HashSet<_> = found.iter().map(|found| ptr::from_ref(*found)).collect();
    assert_eq!(addresses.len(), found.len());
    let mut copied = to.clone();
    let wrote = path.copy_by_key("name", &from, &mut copied);
    if !wrote || found.iter().all(|found| found.is_null()) {
        assert_eq!(copied, to);
    }
    let mut same = from.clone();
    path.copy(&from, &mut same);
    assert_eq!(same, from);
});
