//! Tries scripts before they are written.
