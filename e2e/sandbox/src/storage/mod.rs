//! Objects, resource versions and watches.
