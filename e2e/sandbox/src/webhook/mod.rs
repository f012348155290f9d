//! Calls webhooks as kube-apiserver does: over TLS, with the given bundle and server name.
