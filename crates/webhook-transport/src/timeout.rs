//! The timeout that a caller states in a query parameter.

use std::time::Duration;

use http::Uri;
use windlass_object::GoDuration;

/// The query parameter for the caller's timeout, in Go's duration syntax.
const TIMEOUT: &str = "timeout";

/// Adds the caller's timeout to `path`, in whole milliseconds and at least one.
pub fn with_timeout(path: &str, timeout: Duration) -> String {
    match timeout.as_millis().max(1) {
        milliseconds if milliseconds % 1000 == 0 => format!("{path}?{TIMEOUT}={}s", milliseconds / 1000),
        milliseconds => format!("{path}?{TIMEOUT}={milliseconds}ms"),
    }
}

/// Returns the caller's timeout, at most `longest`; `None` if it is absent or invalid.
pub fn requested_timeout(uri: &Uri, longest: Duration) -> Option<Duration> {
    let mut parameters = uri.query()?.split('&');
    let asked = parameters.find_map(|parameter| parameter.strip_prefix(TIMEOUT)?.strip_prefix('='))?;
    let GoDuration(asked) = asked.parse().ok()?;
    let asked = asked.unsigned_abs();
    (!asked.is_zero()).then_some(asked.min(longest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_of_a_caller_is_parsed() {
        for (uri, expected) in [
            ("/", None),
            ("/?", None),
            ("/?timeout", None),
            ("/?timeout=", None),
            ("/?timeout=5", None),
            ("/?timeout=0s", None),
            ("/?timeout=-5s", None),
            ("/?timeout=soon", None),
            ("/?xtimeout=5s", None),
            ("/?timeouts=5s", None),
            ("/?timeout=5s", Some(5_000)),
            ("/?a=b&timeout=500ms&c", Some(500)),
            ("/?timeout=2s&timeout=5s", Some(2_000)),
            ("/?timeout=0m1.5s", Some(1_500)),
            ("/?timeout=30s", Some(30_000)),
            ("/?timeout=1m30s", Some(30_000)),
            ("/?timeout=1h", Some(30_000)),
        ] {
            let expected = expected.map(Duration::from_millis);
            assert_eq!(
                requested_timeout(&uri.parse().unwrap(), Duration::from_secs(30)),
                expected,
                "{uri}"
            );
        }
    }

    #[test]
    fn the_timeout_is_formatted_for_go() {
        for (timeout, expected) in [
            (0, "/x?timeout=1ms"),
            (1_500, "/x?timeout=1500ms"),
            (10_000, "/x?timeout=10s"),
        ] {
            assert_eq!(with_timeout("/x", Duration::from_millis(timeout)), expected);
        }
    }
}
