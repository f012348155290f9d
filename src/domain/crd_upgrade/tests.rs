//! Each rule, the scopes, and what no input may do.
