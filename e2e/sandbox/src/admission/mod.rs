//! Admission webhooks: which are called for a request, in which order, and what their answers do.
