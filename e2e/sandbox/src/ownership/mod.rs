//! Field ownership: server-side apply, and tracking of every other write.
