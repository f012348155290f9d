//! Untrusted text in messages.

/// The maximum number of characters.
const LONGEST: usize = 1000;

/// Escapes control characters and truncates the text, so that it fits on one line.
pub(crate) fn one_line(text: &str) -> String {
    let shown: String = text.chars().take(LONGEST).flat_map(escape).collect();
    match text.char_indices().nth(LONGEST) {
        Some(_) => shown + "…",
        None => shown,
    }
}

fn escape(character: char) -> impl Iterator<Item = char> {
    // Characters that could end a line or change the text direction.
    let is_hostile =
        character.is_control() || matches!(character, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let escaped = is_hostile.then(|| character.escape_default());
    let plain = (!is_hostile).then_some(character);
    escaped.into_iter().flatten().chain(plain)
}

/// Joins the first few names.
pub(crate) fn join_names<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    const FEW: usize = 10;
    let names: Vec<_> = names.into_iter().collect();
    let shown = names[..names.len().min(FEW)].join(", ");
    match names.len().checked_sub(FEW) {
        Some(more) if more > 0 => format!("{shown} and {more} more"),
        _ => shown,
    }
}
