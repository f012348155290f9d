//! The page of `windlass-report`, served to whoever the API server lets see it.
//!
//! ```text
//! request -> BearerToken -> TokenReview -> SubjectAccessReview (get /ui) -> page
//!                                                                            ^
//!                              BundleDeployments, ServingCertificates, targets
//! ```
//!
//! Nothing is kept here about who may do what: the API server says who a token is of, and whether that user may `get` the path
//! ("Authorization Overview" in the Kubernetes documentation: requests for non-resource endpoints). Nothing can be changed through
//! the page, and nothing but `GET` is answered.

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
