//! The code blocks, headings and links of a Markdown file.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use regex::Regex;

/// A Markdown file of the repository.
pub(crate) struct Page {
    /// Relative to the root of the repository.
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

/// A fenced code block.
pub(crate) struct CodeBlock<'a> {
    pub(crate) language: &'a str,
    pub(crate) text: &'a str,
}

impl Page {
    /// Returns the README, CONTRIBUTING.md and all pages in `docs`.
    pub(crate) fn all() -> Vec<Self> {
        let mut paths = vec![PathBuf::from("README.md"), PathBuf::from("CONTRIBUTING.md")];
        for folder in ["docs", "docs/runbooks"] {
            let entries = fs::read_dir(root().join(folder)).unwrap();
            let files = entries.map(|entry| Path::new(folder).join(entry.unwrap().file_name()));
            paths.extend(files.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
        }
        paths.sort();
        paths.into_iter().map(Self::read).collect()
    }

    pub(crate) fn read(path: PathBuf) -> Self {
        let text = fs::read_to_string(root().join(&path)).unwrap_or_default();
        Self { path, text }
    }

    pub(crate) fn code_blocks(&self) -> impl Iterator<Item = CodeBlock<'_>> {
        static FENCED: LazyLock<Regex> =
            LazyLock::new(|| Regex::new(r"(?ms)^ *```(\w*)\n(.*?)^ *```$").unwrap());
        FENCED.captures_iter(&self.text).map(|captures| CodeBlock {
            language: captures.get(1).unwrap().as_str(),
            text: captures.get(2).unwrap().as_str(),
        })
    }

    /// Returns the anchors of headings, as GitHub and mdBook create them.
    pub(crate) fn anchors(&self) -> Vec<String> {
        let outside = self.without_code();
        let headings = outside.lines().filter(|line| line.starts_with('#'));
        headings
            .map(|heading| {
                let title = heading.trim_start_matches('#').trim().to_lowercase();
                let kept = title
                    .chars()
                    .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
                kept.map(|c| if c == ' ' { '-' } else { c }).collect()
            })
            .collect()
    }

    /// Returns the targets of links, except for those to other sites.
    pub(crate) fn links(&self) -> Vec<String> {
        static LINK: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\]\(([^)\s]+)\)").unwrap());
        let outside = self.without_code();
        let links = LINK
            .captures_iter(&outside)
            .map(|captures| captures[1].to_owned());
        links.filter(|link| !link.contains("://")).collect()
    }

    pub(crate) fn without_code(&self) -> String {
        let mut is_code = false;
        let mut lines = Vec::new();
        for line in self.text.lines() {
            if line.trim_start().starts_with("```") {
                is_code = !is_code;
            } else if !is_code {
                lines.push(line);
            }
        }
        lines.join("\n")
    }
}

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
