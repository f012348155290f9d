//! Why an image cannot be pulled or pushed.

use std::time::Duration;

use http::StatusCode;

use crate::{digest::ContentDigest, manifest::ManifestError, registries::LocationError};

/// Why an image cannot be pulled or pushed. No message has a URL, which may be signed, or what is secret.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The CAs cannot be used.
    #[error("the CA certificates for registries cannot be used: {0}")]
    CertificateAuthorities(
        /// Why.
        String,
    ),
    /// The image is looked for nowhere.
    #[error(transparent)]
    Location(#[from] LocationError),
    /// No connection, or none on which the registry is trusted.
    #[error("cannot connect to {host}: {cause}")]
    Connect {
        /// Who was called.
        host: String,
        /// Why, from the outermost.
        cause: String,
    },
    /// The connection ended too early.
    #[error("{host} ended the connection before its answer was complete: {cause}")]
    Interrupted {
        /// Who was asked.
        host: String,
        /// Why, from the outermost.
        cause: String,
    },
    /// Nothing comes.
    #[error("{host} has neither sent nor taken anything for {:.1}s", .after.as_secs_f32())]
    Idle {
        /// Who was asked.
        host: String,
        /// For how long.
        after: Duration,
    },
    /// All together takes too long.
    #[error("{host} has not sent or taken all of {image} within {:.1}s", .after.as_secs_f32())]
    Timeout {
        /// Who was asked.
        host: String,
        /// The image.
        image: String,
        /// How long it had.
        after: Duration,
    },
    /// It is only for those who show credentials.
    #[error(
        "{host} asks for credentials for {repository}, and none were given: it needs some, or does not exist there"
    )]
    CredentialsMissing {
        /// The registry.
        host: String,
        /// The repository.
        repository: String,
    },
    /// The credentials are wrong.
    #[error("{host} does not accept the credentials for {repository}")]
    CredentialsRefused {
        /// The registry or its token server.
        host: String,
        /// The repository.
        repository: String,
    },
    /// Who shows these credentials may not.
    #[error("{host} forbids access to {repository}{codes}")]
    Forbidden {
        /// The registry.
        host: String,
        /// The repository.
        repository: String,
        /// The registry's codes of errors, in brackets.
        codes: String,
    },
    /// It is not there.
    #[error("{what} is not found on {host}")]
    NotFound {
        /// The registry.
        host: String,
        /// What was asked for.
        what: String,
    },
    /// It was asked too often.
    #[error("{host} is asked too often{}", retry_words(.retry_after))]
    TooManyRequests {
        /// Who was asked.
        host: String,
        /// When to ask again.
        retry_after: Option<Duration>,
    },
    /// It does not work at present.
    #[error("{host} answers HTTP {status}{}", retry_words(.retry_after))]
    Unavailable {
        /// Who was asked.
        host: String,
        /// Its status, 408 or of 500 and above.
        status: StatusCode,
        /// When to ask again.
        retry_after: Option<Duration>,
    },
    /// It answers something else.
    #[error("{host} answers HTTP {status}{codes} to {what}")]
    Status {
        /// Who was asked.
        host: String,
        /// Its status.
        status: StatusCode,
        /// What was asked for.
        what: String,
        /// The registry's codes of errors, in brackets.
        codes: String,
    },
    /// What it wants to be shown cannot be had.
    #[error("{host} asks for authentication that is not supported: {problem}")]
    Challenge {
        /// The registry or its token server.
        host: String,
        /// What is wrong.
        problem: String,
    },
    /// It sends elsewhere, where nobody follows.
    #[error("{host} sends {what} elsewhere: {problem}")]
    Redirect {
        /// Who was asked.
        host: String,
        /// What was asked for.
        what: String,
        /// Why it is not followed.
        problem: String,
    },
    /// The answer has not what it must have.
    #[error("{host} answers {what} with {problem}")]
    Answer {
        /// Who was asked.
        host: String,
        /// What was asked for.
        what: String,
        /// What is wrong.
        problem: String,
    },
    /// Fewer or more bytes came than the manifest says.
    #[error("{what} from {host} has {actual} bytes, not {expected}")]
    Size {
        /// Who was asked.
        host: String,
        /// What was asked for.
        what: String,
        /// The size that it has in the manifest.
        expected: u64,
        /// How many there are; of more, only one is counted.
        actual: u64,
    },
    /// Something else came.
    #[error("{what} from {host} has the digest {actual}, not {expected}")]
    Digest {
        /// Who was asked.
        host: String,
        /// What was asked for.
        what: String,
        /// The digest that it was asked for by.
        expected: ContentDigest,
        /// The digest that it has.
        actual: ContentDigest,
    },
    /// It is too large.
    #[error("{what} on {host} is larger than {limit} bytes")]
    TooLarge {
        /// Who was asked.
        host: String,
        /// What was asked for.
        what: String,
        /// The limit.
        limit: u64,
    },
    /// Its manifest cannot be used.
    #[error("{what} on {host}: {cause}")]
    Manifest {
        /// Who was asked.
        host: String,
        /// What was asked for.
        what: String,
        /// Why.
        #[source]
        cause: ManifestError,
    },
    /// No location has it.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Everywhere(
        /// Every location, in the order in which they were asked.
        Vec<LocationFailure>,
    ),
}

/// Why a location does not have an image.
#[derive(Debug, thiserror::Error)]
#[error("{location}: {cause}")]
pub struct LocationFailure {
    /// The image, as it is called there.
    pub location: String,
    /// Why.
    #[source]
    pub cause: RegistryError,
}

// === impl RegistryError ===

impl RegistryError {
    /// A word for it, as a condition's `reason`. That of an image which no location has is its own registry's.
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

    /// Whether the same request may fare better soon.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Connect { .. }
            | Self::Interrupted { .. }
            | Self::Idle { .. }
            | Self::Timeout { .. }
            | Self::TooManyRequests { .. }
            | Self::Unavailable { .. } => true,
            // What was cut off may be whole the next time.
            Self::Size { expected, actual, .. } => actual < expected,
            Self::Everywhere(failures) => failures.iter().any(|failure| failure.cause.is_transient()),
            _ => false,
        }
    }

    /// When the registry wants to be asked again.
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

fn retry_words(retry_after: &Option<Duration>) -> String {
    match retry_after {
        Some(after) => format!(": ask again in {}s", after.as_secs()),
        None => String::new(),
    }
}
