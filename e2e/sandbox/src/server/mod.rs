//! The HTTP front: TLS, authentication, authorization, routing, discovery, the verbs.
