//! Unescapes string literals.

/// Unescapes the text between the quotes of a literal with this number of `#`, or returns the problem.
pub(crate) fn unescape(written: &str, hashes: usize) -> Result<String, String> {
    let escape = format!("\\{}", "#".repeat(hashes));
    let mut text = String::with_capacity(written.len());
    let mut rest = written;
    while let Some(at) = rest.find(&escape) {
        push_plain(&mut text, &rest[..at]);
        rest = &rest[at + escape.len()..];
        let Some(kind) = rest.chars().next() else {
            return Err("a backslash ends the string; double it".to_owned());
        };
        rest = &rest[kind.len_utf8()..];
        text.push(match kind {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            '/' => '/',
            '\\' => '\\',
            '"' => '"',
            'u' | 'U' => {
                let length = if kind == 'u' { 4 } else { 8 };
                let first = hexadecimal(&mut rest, length)?;
                let code = if (0xD800..0xDC00).contains(&first) {
                    let low = rest.strip_prefix(&format!("{escape}u"));
                    rest = low.ok_or_else(|| unpaired(first))?;
                    let low = hexadecimal(&mut rest, 4)?;
                    if !(0xDC00..0xE000).contains(&low) {
                        return Err(unpaired(first));
                    }
                    0x1_0000 + (first - 0xD800) * 0x400 + (low - 0xDC00)
                } else {
                    first
                };
                char::from_u32(code).ok_or_else(|| unpaired(code))?
            }
            other => {
                return Err(format!(
                    "{escape}{other} is not an escape of CUE; double the backslash"
                ));
            }
        });
    }
    push_plain(&mut text, rest);
    Ok(text)
}

/// CUE drops carriage returns of a source, also in strings.
fn push_plain(text: &mut String, plain: &str) {
    text.extend(plain.split('\r'));
}

fn hexadecimal(rest: &mut &str, length: usize) -> Result<u32, String> {
    let wrong = || format!("\\u takes 4 hexadecimal digits and \\U takes 8; there are not {length} here");
    let digits = rest.get(..length).ok_or_else(wrong)?;
    if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(wrong());
    }
    *rest = &rest[length..];
    u32::from_str_radix(digits, 16).map_err(|_| wrong())
}

fn unpaired(code: u32) -> String {
    format!("U+{code:04X} is not a character; write the character itself")
}
