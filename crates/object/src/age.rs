//! Times in a readable form.

use jiff::{SignedDuration, Timestamp};

/// Returns how long ago `moment` was, in its two largest units, as `kubectl` prints it.
pub fn age(moment: Timestamp, now: Timestamp) -> String {
    short(now.duration_since(moment))
}

/// Returns `moment` and the time left until then.
pub fn until(moment: Timestamp, now: Timestamp) -> String {
    format!(
        "{} ({})",
        moment.strftime("%Y-%m-%d %H:%MZ"),
        time_left(moment, now)
    )
}

/// Returns the time until `moment`, or since then, such as `2d ago`.
pub fn time_left(moment: Timestamp, now: Timestamp) -> String {
    let left = moment.duration_since(now);
    if left.is_negative() {
        format!("{} ago", short(-left))
    } else {
        short(left)
    }
}

fn short(time: SignedDuration) -> String {
    let seconds = time.as_secs().max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{minutes}m"),
        7200..172_800 => format!("{hours}h"),
        _ => format!("{days}d"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        for (seconds, expected) in [
            (-5, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (7199, "119m"),
            (7200, "2h"),
            (172_799, "47h"),
            (172_800, "2d"),
            (31_536_000, "365d"),
        ] {
            assert_eq!(short(SignedDuration::from_secs(seconds)), expected);
        }
    }

    #[test]
    fn a_time_in_the_past_is_printed_as_such() {
        let now: Timestamp = "2026-11-21T12:00:00Z".parse().unwrap();
        let ended = "2026-11-20T11:00:00Z".parse().unwrap();
        assert_eq!(until(ended, now), "2026-11-20 11:00Z (25h ago)");
    }
}
