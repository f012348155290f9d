//! For how long a caller waits, which it says in a parameter of the path.

use std::time::Duration;

use http::Uri;
use windlass_object::GoDuration;

/// What a caller adds to the path to say for how long it waits, in Go's syntax.
const TIMEOUT: &str = "timeout";

/// `path` with the parameter that says for how long its caller waits, as Go reads it: in whole milliseconds, never none at all.
pub fn with_timeout(path: &str, timeout: Duration) -> String {
    match timeout.as_millis().max(1) {
        milliseconds if milliseconds % 1000 == 0 => format!("{path}?{TIMEOUT}={}s", milliseconds / 1000),
        milliseconds => format!("{path}?{TIMEOUT}={milliseconds}ms"),
    }
}

/// For how long a caller says that it waits, and no longer than `longest`. Where that makes no sense, it says nothing.
pub fn asked_timeout(uri: &Uri, longest: Duration) -> Option<Duration> {
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
    fn a_caller_says_for_how_long_it_waits() {
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
                asked_timeout(&uri.parse().unwrap(), Duration::from_secs(30)),
                expected,
                "{uri}"
            );
        }
    }

    #[test]
    fn it_is_said_as_go_reads_it() {
        for (timeout, expected) in [
            (0, "/x?timeout=1ms"),
            (1_500, "/x?timeout=1500ms"),
            (10_000, "/x?timeout=10s"),
        ] {
            assert_eq!(with_timeout("/x", Duration::from_millis(timeout)), expected);
        }
    }
}
