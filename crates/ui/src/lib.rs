//! Serves the page of `windlass-report` to users whom the API server allows to see it.
//!
//! ```text
//! request -> BearerToken -> TokenReview -> SubjectAccessReview (get /ui) -> page
//!                                                                            ^
//!                              BundleDeployments, ServingCertificates, targets
//! ```
//!
//! Permissions are not stored here: the API server identifies the user of a token and decides whether that
//! user may `get` the path ("Authorization Overview" in the Kubernetes documentation: requests for
//! non-resource endpoints). The page is read-only, and only `GET` is allowed.

mod access;
mod bearer_token;
mod gather;
mod page;
mod server;
#[cfg(test)]
mod tests;

pub use access::PATH;
pub use gather::gather;
pub use server::router;
