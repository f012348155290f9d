//! The time on the API servers' clocks: they, not this machine, judge whether a certificate is valid.
//!
//! The `Date` header of every response says when it was sent. Between responses the steady clock of this
//! machine counts.
//!
//! # Several API servers
//!
//! Responses come from several API servers and do not identify the sender. The slowest recently observed
//! clock wins. Certificates are backdated by the tolerance of the rotation's `Timing`; only this tolerance
//! keeps a slow API server from considering a new certificate not yet valid. Certificates are renewed weeks
//! before they expire, so an API server whose clock is ahead does no harm. A time that is too early therefore
//! costs next to nothing, and one that is too late makes calls fail.
//!
//! For the same reason a response is assumed to be as old as possible: sent at its `Date` or up to a second
//! later, and received now.

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, Request, header};
use jiff::{SignedDuration, Timestamp, fmt::rfc2822::DateTimeParser};
use kube::{Client, client::Body};
use parking_lot::Mutex;
use tower::{BoxError, service_fn};

use crate::{clock::Clock, lease::Moment};

/// The clock of the slowest API server that responded recently; this machine's clock before the first
/// response.
#[derive(Debug, Default)]
pub struct ApiServerClock {
    observations: Mutex<Option<Observations>>,
}

/// Recent observations: those of the current span of time and of the previous one.
#[derive(Clone, Copy, Debug)]
struct Observations {
    now: Span,
    before: Option<Span>,
}

/// Observations in a span of time.
#[derive(Clone, Copy, Debug)]
struct Span {
    /// Its start on the steady clock.
    start: Duration,
    /// The difference between the calendar and the steady clock of this machine at its start.
    calendar: Timestamp,
    /// The slowest API server's time at the epoch of the steady clock.
    slowest: Timestamp,
    /// The fastest API server's time at the epoch of the steady clock.
    fastest: Timestamp,
}

/// Responses that took longer do not tell precisely enough when they were sent.
const MAX_ROUND_TRIP: Duration = Duration::from_secs(2);

/// The length of a span. Every watch reconnects within that time, to any API server.
const SPAN: Duration = Duration::from_secs(300);

/// The maximum drift between the clocks of this machine; a larger one means that a clock was set or stopped.
const MAX_DRIFT: SignedDuration = SignedDuration::from_secs(5);

impl ApiServerClock {
    /// Creates a clock without observations.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a client that sends through `client` and sets this clock by the responses.
    pub fn observe_responses(self: &Arc<Self>, client: Client) -> Client {
        let namespace = client.default_namespace().to_owned();
        let clock = self.clone();
        let listening = service_fn(move |request: Request<Body>| {
            let (client, clock) = (client.clone(), clock.clone());
            async move {
                let sent = Moment::now();
                let answer = client.send(request).await.map_err(BoxError::from)?;
                // A load balancer that responds instead of an API server never reports success.
                if answer.status().is_success()
                    && let Some(date) = date(answer.headers())
                {
                    clock.record_response(date, sent, Moment::now());
                }
                Ok::<_, BoxError>(answer)
            }
        });
        Client::new(listening, namespace)
    }

    /// Records a response of an API server that was sent at `date`.
    fn record_response(&self, date: Timestamp, sent: Moment, received: Moment) {
        if received.since_boot.saturating_sub(sent.since_boot) > MAX_ROUND_TRIP {
            return;
        }
        let observed = Span {
            start: received.since_boot,
            calendar: before(received.wall, received.since_boot),
            slowest: before(date, received.since_boot),
            fastest: before(date, received.since_boot),
        };
        let mut observations = self.observations.lock();
        *observations = Some(match *observations {
            Some(known) if known.now.has_same_clocks(&observed) => known.with(observed),
            _ => Observations {
                now: observed,
                before: None,
            },
        });
    }

    /// Returns the API servers' time at a moment: the slowest and the fastest clock.
    fn at(&self, moment: Moment) -> Option<(Timestamp, Timestamp)> {
        let observations = (*self.observations.lock())?;
        let (slowest, fastest) = observations.extremes();
        let later = |origin: Timestamp| origin.checked_add(moment.since_boot).unwrap_or(Timestamp::MAX);
        Some((later(slowest), later(fastest)))
    }

    fn now_at(&self, moment: Moment) -> Timestamp {
        self.at(moment).map_or(moment.wall, |(slowest, _)| slowest)
    }

    fn ahead_at(&self, moment: Moment) -> Option<SignedDuration> {
        let (slowest, fastest) = self.at(moment)?;
        let ahead = [slowest, fastest].map(|theirs| moment.wall.duration_since(theirs));
        ahead.into_iter().max_by_key(|ahead| ahead.abs())
    }
}

impl Clock for ApiServerClock {
    fn now(&self) -> Timestamp {
        self.now_at(Moment::now())
    }

    fn ahead(&self) -> Option<SignedDuration> {
        self.ahead_at(Moment::now())
    }
}

impl Observations {
    fn with(self, observed: Span) -> Self {
        if observed.start.saturating_sub(self.now.start) > SPAN {
            return Self {
                now: observed,
                before: Some(self.now),
            };
        }
        let now = Span {
            slowest: self.now.slowest.min(observed.slowest),
            fastest: self.now.fastest.max(observed.fastest),
            ..self.now
        };
        Self { now, ..self }
    }

    fn extremes(&self) -> (Timestamp, Timestamp) {
        let Self { now, before } = *self;
        let before = before.unwrap_or(now);
        (now.slowest.min(before.slowest), now.fastest.max(before.fastest))
    }
}

impl Span {
    /// Reports whether the clocks of this machine have kept their difference. When a paused virtual machine
    /// resumes, its steady clock has not advanced, and earlier observations are useless.
    fn has_same_clocks(&self, later: &Self) -> bool {
        self.calendar.duration_until(later.calendar).abs() <= MAX_DRIFT
    }
}

fn before(moment: Timestamp, duration: Duration) -> Timestamp {
    moment.checked_sub(duration).unwrap_or(Timestamp::MIN)
}

/// Returns when a response was sent (RFC 9110, 6.6.1).
fn date(headers: &HeaderMap) -> Option<Timestamp> {
    let date = headers.get(header::DATE)?;
    DateTimeParser::new().parse_timestamp(date).ok()
}

#[cfg(test)]
mod tests {
    use http::Response;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn start() -> Moment {
        Moment {
            since_boot: Duration::from_secs(1000),
            wall: "2026-11-22T08:00:00Z".parse().unwrap(),
        }
    }

    /// Simulates a response at `moment` from an API server whose clock is off by `off` seconds.
    fn record_response(clock: &ApiServerClock, moment: Moment, off: i64) {
        clock.record_response(moment.wall + SignedDuration::from_secs(off), moment, moment);
    }

    #[test]
    fn the_machines_clock_counts_until_an_api_server_responds() {
        let clock = ApiServerClock::new();
        assert_eq!(
            (clock.now_at(start()), clock.ahead_at(start())),
            (start().wall, None)
        );
        record_response(&clock, start(), -2400);
        let later = start().after(MINUTE);
        assert_eq!(clock.now_at(later), later.wall - SignedDuration::from_mins(40));
        assert_eq!(clock.ahead_at(later), Some(SignedDuration::from_mins(40)));
    }

    #[test]
    fn the_slowest_recent_api_server_counts() {
        let clock = ApiServerClock::new();
        let off = |moment: Moment| moment.wall.duration_until(clock.now_at(moment)).as_secs();
        for seconds in [3, -90, 5] {
            record_response(&clock, start(), seconds);
        }
        assert_eq!(off(start()), -90);
        assert_eq!(clock.ahead_at(start()), Some(SignedDuration::from_secs(90)));
        // The API server's clock was set, or the API server is gone.
        let mut moment = start();
        for _ in 0..12 {
            moment = moment.after(MINUTE);
            record_response(&clock, moment, 4);
        }
        assert_eq!(off(moment), 4);
        record_response(&clock, moment, -3600);
        assert_eq!(off(moment), -3600, "a slower clock counts immediately");
    }

    #[test]
    fn observations_stay_while_there_are_no_responses() {
        let clock = ApiServerClock::new();
        record_response(&clock, start(), -2400);
        let later = start().after(MINUTE * 600);
        assert_eq!(clock.ahead_at(later), Some(SignedDuration::from_mins(40)));
    }

    #[test]
    fn slow_responses_are_ignored() {
        let clock = ApiServerClock::new();
        let received = start().after(MAX_ROUND_TRIP * 2);
        clock.record_response(start().wall, start(), received);
        assert_eq!(clock.now_at(received), received.wall);
        let received = start().after(MAX_ROUND_TRIP);
        clock.record_response(start().wall, start(), received);
        assert_eq!(clock.now_at(received), start().wall, "as old as possible");
    }

    #[test]
    fn observations_before_a_pause_of_the_machine_are_dropped() {
        let clock = ApiServerClock::new();
        record_response(&clock, start(), 0);
        let resumed = Moment {
            wall: start().wall + SignedDuration::from_hours(1),
            ..start()
        };
        record_response(&clock, resumed, 0);
        assert_eq!(clock.now_at(resumed), resumed.wall);
    }

    #[tokio::test]
    async fn only_responses_of_an_api_server_set_the_clock() {
        let server = service_fn(|request: Request<Body>| async move {
            let (status, date) = match request.uri().path() {
                "/api" => (200, Some("Sun, 22 Nov 2026 08:00:00 GMT")),
                "/apis" => (503, Some("Thu, 01 Jan 1970 00:00:00 GMT")),
                _ => (200, None),
            };
            let mut answer = Response::builder().status(status);
            if let Some(date) = date {
                answer = answer.header(header::DATE, date);
            }
            Ok::<_, BoxError>(answer.body(Body::empty())?)
        });
        let clock = Arc::new(ApiServerClock::new());
        let client = clock.observe_responses(Client::new(server, "default"));
        let ask = async |path| {
            let request = Request::get(path).body(Body::empty()).unwrap();
            client.send(request).await.unwrap();
        };
        ask("/version").await;
        assert_eq!(clock.ahead(), None, "no Date, no observation");
        ask("/api").await;
        ask("/apis").await;
        let date: Timestamp = "2026-11-22T08:00:00Z".parse().unwrap();
        assert!(date.duration_until(clock.now()).abs() < SignedDuration::from_mins(10));
    }
}
