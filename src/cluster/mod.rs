//! The shell around Kubernetes: watches that feed an index, apply and patch execution, events, the clock.
