//! The commands and objects in the pages of the documentation.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;
use serde_json::Value;

/// The content between two fences of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CodeBlock {
    /// Relative to the root of the repository.
    pub(crate) page: PathBuf,
    pub(crate) language: String,
    pub(crate) text: String,
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", ".."].iter().collect()
}

/// Returns all code blocks of the README and of `docs`.
///
/// # Errors
///
/// Fails if a page cannot be read.
pub(crate) fn code_blocks() -> anyhow::Result<Vec<CodeBlock>> {
    let mut pages = vec![PathBuf::from("README.md")];
    for folder in ["docs", "docs/runbooks"] {
        for entry in fs::read_dir(root().join(folder))? {
            let page = Path::new(folder).join(entry?.file_name());
            if page.extension().is_some_and(|extension| extension == "md") {
                pages.push(page);
            }
        }
    }
    pages.sort();
    let mut blocks = Vec::new();
    for page in pages {
        let text = fs::read_to_string(root().join(&page)).with_context(|| page.display().to_string())?;
        collect(&page, &text, &mut blocks);
    }
    Ok(blocks)
}

fn collect(page: &Path, text: &str, blocks: &mut Vec<CodeBlock>) {
    let mut open: Option<CodeBlock> = None;
    for line in text.lines() {
        match (line.trim_start().strip_prefix("```"), &mut open) {
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(language), None) => {
                open = Some(CodeBlock {
                    page: page.to_owned(),
                    language: language.to_owned(),
                    text: String::new(),
                });
            }
            (None, Some(block)) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) => {}
        }
    }
}

impl CodeBlock {
    /// The `windlass` commands that a user types, without anything after `|`, `>` and `#`, and without
    /// output.
    pub(crate) fn commands(&self) -> Vec<String> {
        if !["sh", "console"].contains(&&*self.language) {
            return Vec::new();
        }
        let has_prompts = self.text.lines().any(|line| line.starts_with("$ "));
        let joined = self.text.replace("\\\n", " ");
        let lines = joined.lines().filter_map(|line| match has_prompts {
            true => line.strip_prefix("$ "),
            false => Some(line.trim()),
        });
        lines
            .flat_map(|line| line.split(" #").next().unwrap_or_default().split(" | "))
            .map(|command| command.split(" > ").next().unwrap_or_default())
            .map(|command| command.split_whitespace().collect::<Vec<_>>().join(" "))
            .filter(|command| command.starts_with("windlass "))
            .collect()
    }

    /// Parses the documents of a YAML block.
    ///
    /// # Errors
    ///
    /// Fails if the block is not YAML.
    pub(crate) fn documents(&self) -> anyhow::Result<Vec<Value>> {
        if self.language != "yaml" {
            return Ok(Vec::new());
        }
        windlass_object::yaml::documents(self.text.as_bytes())
            .map_err(|problem| anyhow::anyhow!("{}: {problem}", self.page.display()))
    }
}

/// Splits a line into words as a shell does; quotes come in pairs.
pub(crate) fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for character in line.chars() {
        match (quote, character) {
            (Some(open), _) if character == open => quote = None,
            (None, '\'' | '"') => quote = Some(character),
            (None, ' ') => words.push(String::new()),
            _ => {
                if let Some(word) = words.last_mut() {
                    word.push(character);
                }
            }
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_in_the_blocks_of_a_page() {
        let page = "# Page\n\n```console\n$ windlass certs > file | head -1\nwindlass is installed\n```\n  ```sh\n  \
                    windlass rotate \\\n    a/b   # now\n  ```\n```yaml\na: 1\n---\nb: 2\n```\n";
        let mut blocks = Vec::new();
        collect(Path::new("page.md"), page, &mut blocks);
        let commands: Vec<_> = blocks.iter().flat_map(CodeBlock::commands).collect();
        assert_eq!(commands, ["windlass certs", "windlass rotate a/b"]);
        assert_eq!(blocks[2].documents().unwrap().len(), 2);
        assert_eq!(words("windlass x --version '>=1.2 <2'")[3], ">=1.2 <2");
    }
}
