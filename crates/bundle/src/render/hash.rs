//! The hash in the names of roles. It is OLM's, so that a bundle keeps its names when it migrates from or to
//! OLM.

use serde_json::Value;
use sha2::{Digest, Sha224};

const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";

/// Returns the SHA-224 of Go's `json.Encoder` output for `value`, in base 36.
///
/// Keys are hashed in the order of `value`.
pub(super) fn base36_sha224(value: &Value) -> String {
    base36(&Sha224::digest(go_json(value)))
}

/// Encodes compact JSON like Go: escaped for HTML, with a trailing newline.
fn go_json(value: &Value) -> String {
    let mut text = String::new();
    // In compact JSON these characters occur only inside strings.
    for character in value.to_string().chars() {
        match character {
            '<' => text.push_str("\\u003c"),
            '>' => text.push_str("\\u003e"),
            '&' => text.push_str("\\u0026"),
            '\u{2028}' => text.push_str("\\u2028"),
            '\u{2029}' => text.push_str("\\u2029"),
            other => text.push(other),
        }
    }
    text.push('\n');
    text
}

/// Formats a big-endian number in base 36, without padding.
fn base36(number: &[u8]) -> String {
    let mut number = number.to_vec();
    let mut digits = Vec::new();
    while number.iter().any(|byte| *byte != 0) {
        let mut remainder = 0_u16;
        for byte in &mut number {
            let current = remainder * 256 + u16::from(*byte);
            // Below 256, since the remainder is below 36.
            [_, *byte] = (current / 36).to_be_bytes();
            remainder = current % 36;
        }
        digits.push(char::from(DIGITS[usize::from(remainder)]));
    }
    digits.iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hashes_equal_those_of_olm() {
        let object = |number: u8| json!({"Str": "foobar", "Num": number, "Obj": {"Foo": "bar"}, "Arr": [0, 1], "B": true, "N": null});
        for (value, hash) in [
            (object(22), "gta1bt5sybll5qjqxdiekmjm7py93glrinmnrfb31fj"),
            (object(23), "1ftn1z2ieih8hsmi2a8c6mkoef6uodrtn4wtt1qapioh"),
            (json!({}), "16jfjhihxbzhfhs1k5mimq740kvioi98pfbea9q6qtf9"),
            (json!("a"), "1lu1qv1451mq7gv9upu1cx8ffffi07rel5xvbvvc44dh"),
            (Value::Null, "2im0kl1kwvzn46sr4cdtkvmdzrlurvj51xdzhwdht8l0"),
        ] {
            assert_eq!(base36_sha224(&value), hash, "{value}");
        }
    }

    #[test]
    fn json_is_escaped_as_in_go() {
        assert_eq!(
            go_json(&json!({"a<b": "c>d & \u{2028}\u{2029} é \u{8}\u{c}\u{1}"})),
            "{\"a\\u003cb\":\"c\\u003ed \\u0026 \\u2028\\u2029 é \\b\\f\\u0001\"}\n"
        );
    }

    #[test]
    fn base_36_has_no_padding() {
        assert_eq!(base36(&[0, 35]), "z");
        assert_eq!(base36(&[0, 0, 36]), "10");
        assert_eq!(base36(&[1, 0]), "74");
    }
}
