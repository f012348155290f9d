//! The controllers of a cluster, as clients of the API.
