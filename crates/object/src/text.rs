//! Text for people: escaping of untrusted text, and short lists.

use std::fmt;

/// Text that prints with every character escaped that could forge a line of output, move the cursor, or hide
/// or reorder adjacent text.
#[derive(Clone, Copy, Debug)]
pub struct OneLine<'a>(pub &'a str);

/// The format of a short list on one line.
#[derive(Clone, Copy, Debug)]
pub struct Listing {
    /// The maximum number of items to show.
    pub most: usize,
    /// The text between two items.
    pub separator: &'static str,
    /// The text after the number of further items.
    pub way_to_rest: &'static str,
}

/// Reports whether a terminal may do more with a character than show it: control characters, including C1,
/// and characters that are invisible or change the direction of writing.
pub fn is_hostile(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// Returns text on one line, without hostile characters.
pub fn tidied(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().filter(|character| !is_hostile(*character)).collect()
}

/// Returns bytes as lower-case hexadecimal digits.
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Truncates `text` to `longest` bytes and adds an ellipsis.
pub fn shortened(mut text: String, longest: usize) -> String {
    if text.len() > longest {
        let end = (0..=longest)
            .rev()
            .find(|end| text.is_char_boundary(*end))
            .unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|character| {
            if is_hostile(character) {
                write!(f, "{}", character.escape_default())
            } else {
                write!(f, "{character}")
            }
        })
    }
}

impl Listing {
    /// Lists the first of `items`, and the number of further ones.
    pub fn summarize(&self, items: &[impl fmt::Display]) -> String {
        let mut shown: Vec<_> = items.iter().take(self.most).map(ToString::to_string).collect();
        let more = items.len().saturating_sub(self.most);
        if more > 0 {
            shown.push(format!("and {more} more{}", self.way_to_rest));
        }
        shown.join(self.separator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_line_text_has_no_control_characters() {
        for (text, expected) in [
            (" größer\n\tals  1 µs\r\n", "größer als 1 µs"),
            ("a\u{1b}[0mb\u{202e}c\u{2028}d", "a[0mbc d"),
            ("\u{0}", ""),
        ] {
            assert_eq!(tidied(text), expected);
        }
    }

    #[test]
    fn long_text_is_truncated_between_characters() {
        for (text, longest, expected) in [
            ("abc", 3, "abc"),
            ("abcd", 3, "abc…"),
            ("aäb", 2, "a…"),
            ("ä", 0, "…"),
            ("", 0, ""),
        ] {
            assert_eq!(shortened(text.to_owned(), longest), expected);
        }
    }

    #[test]
    fn a_list_shows_the_first_few_and_counts_the_others() {
        let listing = Listing {
            most: 2,
            separator: "; ",
            way_to_rest: ": look there",
        };
        for (items, expected) in [
            (&[][..], ""),
            (&["a"], "a"),
            (&["a", "b"], "a; b"),
            (&["a", "b", "c", "d"], "a; b; and 2 more: look there"),
        ] {
            assert_eq!(listing.summarize(items), expected);
        }
    }

    #[test]
    fn terminal_control_characters_are_escaped() {
        for (text, expected) in [
            ("größer als 1 µs, 你好", "größer als 1 µs, 你好"),
            ("a\nb\tc\r", "a\\nb\\tc\\r"),
            ("\u{1b}[2J\u{9b}2J\u{7f}", "\\u{1b}[2J\\u{9b}2J\\u{7f}"),
            ("a\u{202e}b\u{200b}c\u{2028}", "a\\u{202e}b\\u{200b}c\\u{2028}"),
        ] {
            assert_eq!(OneLine(text).to_string(), expected);
        }
    }
}
