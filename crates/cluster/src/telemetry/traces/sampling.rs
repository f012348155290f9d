//! Sampling, configured by the environment. It decides on whole traces, so that all processes agree.

use opentelemetry::trace::{SpanKind, TraceId};
use opentelemetry_sdk::trace::{Sampler, SamplingDecision, ShouldSample};

/// Returns a sampler by name and argument (`OTEL_TRACES_SAMPLER`, `OTEL_TRACES_SAMPLER_ARG`); `None` if the
/// name is unknown. No trace has a remote parent, so `parentbased_` samplers behave like the others.
pub(super) fn sampler(name: Option<&str>, argument: Option<&str>) -> Option<Sampler> {
    let name = name.filter(|name| !name.is_empty()).unwrap_or("always_on");
    match name.strip_prefix("parentbased_").unwrap_or(name) {
        "always_on" => Some(Sampler::AlwaysOn),
        "always_off" => Some(Sampler::AlwaysOff),
        "traceidratio" => {
            let ratio = argument.filter(|argument| !argument.is_empty()).unwrap_or("1");
            let ratio = ratio.parse().ok().filter(|ratio| (0.0..=1.0).contains(ratio))?;
            Some(Sampler::TraceIdRatioBased(ratio))
        }
        _ => None,
    }
}

/// Reports whether a trace is sampled.
pub(super) fn is_sampled(sampler: &Sampler, trace: TraceId) -> bool {
    let result = sampler.should_sample(None, trace, "", &SpanKind::Internal, &[], &[]);
    result.decision == SamplingDecision::RecordAndSample
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::traces::TraceKey;

    #[test]
    fn the_environment_selects_the_sampler() {
        for (name, argument, expected) in [
            (None, None, Some(100)),
            (Some(""), Some(""), Some(100)),
            (Some("always_on"), None, Some(100)),
            (Some("always_off"), None, Some(0)),
            (Some("parentbased_always_off"), None, Some(0)),
            (Some("traceidratio"), None, Some(100)),
            (Some("parentbased_traceidratio"), Some("0"), Some(0)),
            (Some("traceidratio"), Some("1.5"), None),
            (Some("traceidratio"), Some("half"), None),
            (Some("jaeger_remote"), None, None),
        ] {
            let sampler = sampler(name, argument);
            let sampled = sampler.map(|sampler| {
                let traces = (0..100).map(|number| TraceKey::new("rotation", "uid", number).trace());
                traces.filter(|trace| is_sampled(&sampler, *trace)).count()
            });
            assert_eq!(sampled, expected, "{name:?} {argument:?}");
        }
    }

    #[test]
    fn a_ratio_samples_some_traces() {
        let sampler = sampler(Some("traceidratio"), Some("0.5")).unwrap();
        let traces = (0..1000).map(|number| TraceKey::new("rotation", "uid", number).trace());
        let expected = traces.filter(|trace| is_sampled(&sampler, *trace)).count();
        assert!((400..600).contains(&expected), "{expected}");
    }
}
