//! Errors of pulling and pushing images.

use std::time::Duration;

use http::StatusCode;

use crate::{digest::ContentDigest, manifest::ManifestError, registries::LocationError};

/// Why an image cannot be pulled or pushed. Messages contain neither URLs, which may be signed, nor secrets.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message explains each field")]
pub enum RegistryError {
    /// The CA certificates are invalid.
    #[error("the CA certificates for registries cannot be used: {0}")]
    CertificateAuthorities(String),
    /// The image has no location.
    #[error(transparent)]
    Location(#[from] LocationError),
    /// The connection or its TLS handshake fails.
    #[error("cannot connect to {host}: {cause}")]
    Connect {
        host: String,
        /// The reason, outermost first.
        cause: String,
    },
    /// The connection ended too early.
    #[error("{host} closed the connection before its response was complete: {cause}")]
    Interrupted {
        host: String,
        /// The reason, outermost first.
        cause: String,
    },
    /// No data is transferred.
    #[error("{host} has neither sent nor accepted data for {:.1}s", .after.as_secs_f32())]
    Idle {
        host: String,
        /// The time without data.
        after: Duration,
    },
    /// The whole transfer takes too long.
    #[error("{host} did not finish the transfer of {image} within {:.1}s", .after.as_secs_f32())]
    Timeout {
        host: String,
        image: String,
        after: Duration,
    },
    /// The repository requires credentials.
    #[error(
        "{host} requires credentials for {repository}, and none are configured: configure some, or check that the repository exists"
    )]
    CredentialsMissing { host: String, repository: String },
    /// The credentials are invalid.
    #[error("{host} does not accept the credentials for {repository}")]
    CredentialsRefused {
        /// The registry or its token server.
        host: String,
        repository: String,
    },
    /// The credentials lack permission.
    #[error("{host} forbids access to {repository}{codes}")]
    Forbidden {
        host: String,
        repository: String,
        /// The registry's error codes, in brackets.
        codes: String,
    },
    /// The object does not exist.
    #[error("{what} is not found on {host}")]
    NotFound {
        host: String,
        /// The requested object.
        what: String,
    },
    /// The registry limits the request rate.
    #[error("{host} limits the rate of requests{}", retry_suffix(.retry_after))]
    TooManyRequests {
        host: String,
        /// The delay that the registry requests.
        retry_after: Option<Duration>,
    },
    /// The registry is temporarily unavailable.
    #[error("{host} answers HTTP {status}{}", retry_suffix(.retry_after))]
    Unavailable {
        host: String,
        /// The status: 408, or 500 and above.
        status: StatusCode,
        /// The delay that the registry requests.
        retry_after: Option<Duration>,
    },
    /// The registry responds with an unexpected status.
    #[error("{host} answers HTTP {status}{codes} to {what}")]
    Status {
        host: String,
        status: StatusCode,
        /// The requested object.
        what: String,
        /// The registry's error codes, in brackets.
        codes: String,
    },
    /// The registry requires an unsupported authentication.
    #[error("{host} requires authentication that is not supported: {problem}")]
    Challenge {
        /// The registry or its token server.
        host: String,
        problem: String,
    },
    /// A redirect that is not followed.
    #[error("{host} redirects {what}: {problem}")]
    Redirect {
        host: String,
        /// The requested object.
        what: String,
        problem: String,
    },
    /// The response is incomplete.
    #[error("{host} answers {what} with {problem}")]
    Answer {
        host: String,
        /// The requested object.
        what: String,
        problem: String,
    },
    /// The size differs from that in the manifest.
    #[error("{what} from {host} has {actual} bytes, not {expected}")]
    Size {
        host: String,
        /// The requested object.
        what: String,
        /// The size in the manifest.
        expected: u64,
        /// The actual size; of any excess only one byte is counted.
        actual: u64,
    },
    /// The digest of the content differs.
    #[error("{what} from {host} has the digest {actual}, not {expected}")]
    Digest {
        host: String,
        /// The requested object.
        what: String,
        /// The requested digest.
        expected: ContentDigest,
        actual: ContentDigest,
    },
    /// The object is too large.
    #[error("{what} on {host} is larger than {limit} bytes")]
    TooLarge {
        host: String,
        /// The requested object.
        what: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// The manifest is unusable.
    #[error("{what} on {host}: {cause}")]
    Manifest {
        host: String,
        /// The requested object.
        what: String,
        #[source]
        cause: ManifestError,
    },
    /// The image is at none of several locations.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Everywhere(
        /// The failure of each location, in the order of requests.
        Vec<LocationFailure>,
    ),
}

/// Why a location does not have an image.
#[derive(Debug, thiserror::Error)]
#[error("{location}: {cause}")]
pub struct LocationFailure {
    /// The name of the image at this location.
    pub location: String,
    /// Why the location does not have the image.
    #[source]
    pub cause: RegistryError,
}

impl RegistryError {
    /// The `reason` for a condition. If no location has the image, the reason of its own registry.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::CertificateAuthorities(_) => "CertificateAuthoritiesInvalid",
            Self::Location(LocationError::Blocked(_)) => "RegistryBlocked",
            Self::Location(_) => "ImageNameInvalid",
            Self::Connect { .. } => "RegistryUnreachable",
            Self::Interrupted { .. } | Self::Unavailable { .. } => "RegistryUnavailable",
            Self::Idle { .. } | Self::Timeout { .. } => "RegistryTimeout",
            Self::CredentialsMissing { .. } => "CredentialsMissing",
            Self::CredentialsRefused { .. } => "CredentialsRefused",
            Self::Forbidden { .. } => "RegistryForbids",
            Self::NotFound { .. } => "ImageNotFound",
            Self::TooManyRequests { .. } => "TooManyRequests",
            Self::Status { .. } | Self::Challenge { .. } | Self::Redirect { .. } | Self::Answer { .. } => {
                "RegistryAnswerInvalid"
            }
            Self::Size { .. } => "ImageTruncated",
            Self::Digest { .. } => "ImageDigestMismatch",
            Self::TooLarge { .. } => "ImageTooLarge",
            Self::Manifest { .. } => "ImageManifestInvalid",
            Self::Everywhere(failures) => {
                let own = failures.last().map(|failure| failure.cause.reason());
                own.unwrap_or("ImageNotFound")
            }
        }
    }

    /// Reports whether a retry may succeed soon.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Connect { .. }
            | Self::Interrupted { .. }
            | Self::Idle { .. }
            | Self::Timeout { .. }
            | Self::TooManyRequests { .. }
            | Self::Unavailable { .. } => true,
            // A truncated response may be complete next time.
            Self::Size { expected, actual, .. } => actual < expected,
            Self::Everywhere(failures) => failures.iter().any(|failure| failure.cause.is_transient()),
            _ => false,
        }
    }

    /// The delay that the registry requests.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::TooManyRequests { retry_after, .. } | Self::Unavailable { retry_after, .. } => *retry_after,
            Self::Everywhere(failures) => failures
                .iter()
                .filter_map(|failure| failure.cause.retry_after())
                .min(),
            _ => None,
        }
    }
}

fn retry_suffix(retry_after: &Option<Duration>) -> String {
    match retry_after {
        Some(after) => format!(": retry in {}s", after.as_secs()),
        None => String::new(),
    }
}
