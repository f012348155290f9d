//! Every link has a target, and the table of contents lists every page.

use std::path::{Component, Path, PathBuf};

use crate::page::{Page, root};

/// Returns a path without `..`.
fn normalized(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

#[test]
fn every_link_has_a_target() {
    let mut broken = Vec::new();
    for page in Page::all() {
        for link in page.links() {
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let path = match file {
                "" => page.path.clone(),
                _ => normalized(&page.path.parent().unwrap().join(file)),
            };
            let is_found = root().join(&path).exists();
            let has_anchor =
                anchor.is_empty() || Page::read(path).anchors().iter().any(|found| found == anchor);
            if !is_found || !has_anchor {
                broken.push(format!("{}: {link}", page.path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "links without a target: {broken:#?}");
}

#[test]
fn the_table_of_contents_has_every_page() {
    let summary = Page::read("docs/SUMMARY.md".into());
    let mut listed = summary.links();
    listed.sort();
    let pages = Page::all().into_iter().map(|page| page.path);
    let mut pages: Vec<_> = pages
        .filter(|path| path.starts_with("docs") && !path.ends_with("SUMMARY.md"))
        .filter(|path| !path.starts_with("docs/runbooks"))
        .map(|path| path.strip_prefix("docs").unwrap().display().to_string())
        .collect();
    pages.sort();
    assert_eq!(listed, pages, "docs/SUMMARY.md does not list the pages in docs");
}
