//! Values that the decoder of the real server rejects.

use serde_json::Value;

/// Returns why an object cannot be decoded, with the message of the real server.
pub fn decoding_error(kind: &str, object: &Value) -> Option<String> {
    match kind {
        "Lease" => ["acquireTime", "renewTime"]
            .into_iter()
            .find_map(|field| micro_time(object["spec"][field].as_str()?)),
        "Secret" => base64(object),
        _ => None,
    }
}

/// A `MicroTime` has exactly six fractional digits, as its layout in Go requires.
fn micro_time(text: &str) -> Option<String> {
    const SECONDS: usize = "2006-01-02T15:04:05".len();
    let problem = |rest: &str, layout: &str| {
        let whole = "2006-01-02T15:04:05.000000Z07:00";
        Some(format!(
            "parsing time {text:?} as {whole:?}: cannot parse {rest:?} as {layout:?}"
        ))
    };
    if text.parse::<jiff::Timestamp>().is_err() {
        return problem(text, "2006");
    }
    let fraction = text.get(SECONDS..).unwrap_or_default();
    let digits = fraction
        .chars()
        .skip(1)
        .take(6)
        .filter(char::is_ascii_digit)
        .count();
    if !fraction.starts_with('.') || digits < 6 {
        return problem(fraction, ".000000");
    }
    let rest = fraction.get(".000000".len()..).unwrap_or_default();
    if rest.starts_with(|c: char| c.is_ascii_digit()) {
        return problem(rest, "Z07:00");
    }
    None
}

fn base64(object: &Value) -> Option<String> {
    use base64::{DecodeError, Engine, engine::general_purpose::STANDARD};
    let values = object["data"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(_, value)| value);
    values.filter(|value| !value.is_null()).find_map(|value| {
        match STANDARD.decode(value.as_str().unwrap_or("%")) {
            Ok(_) => None,
            Err(DecodeError::InvalidByte(offset, _)) => {
                Some(format!("illegal base64 data at input byte {offset}"))
            }
            Err(_) => Some(format!(
                "illegal base64 data at input byte {}",
                value.as_str().map_or(0, str::len)
            )),
        }
    })
}
