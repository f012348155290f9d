//! The webhook server that the sample bundles deploy.
