//! Maps unexpected statuses of registries to errors.

use std::time::Duration;

use http::{HeaderMap, StatusCode, header};

use super::{RegistryError, session::RegistryAnswer};
use crate::reference::ImageReference;

impl RegistryAnswer {
    /// The error for this response.
    pub(super) async fn refusal(
        self,
        image: &ImageReference,
        has_credential: bool,
        what: &str,
    ) -> RegistryError {
        let (host, status) = (self.body.host.clone(), self.status);
        let repository = image.repository.clone();
        let retry_after = retry_after(&self.headers);
        match status {
            StatusCode::TOO_MANY_REQUESTS => RegistryError::TooManyRequests { host, retry_after },
            StatusCode::REQUEST_TIMEOUT => RegistryError::Unavailable {
                host,
                status,
                retry_after,
            },
            status if status.is_server_error() => RegistryError::Unavailable {
                host,
                status,
                retry_after,
            },
            // A server other than the registry does not know the repository and its users, so do not
            // interpret its status.
            _ if self.is_foreign => self.other_refusal(what).await,
            StatusCode::UNAUTHORIZED if has_credential => {
                RegistryError::CredentialsRefused { host, repository }
            }
            StatusCode::UNAUTHORIZED => RegistryError::CredentialsMissing { host, repository },
            StatusCode::FORBIDDEN => RegistryError::Forbidden {
                host,
                repository,
                codes: self.body.error_codes().await,
            },
            StatusCode::NOT_FOUND => RegistryError::NotFound {
                host,
                what: what.to_owned(),
            },
            _ => self.other_refusal(what).await,
        }
    }

    async fn other_refusal(self, what: &str) -> RegistryError {
        RegistryError::Status {
            host: self.body.host.clone(),
            status: self.status,
            what: what.to_owned(),
            codes: self.body.error_codes().await,
        }
    }
}

/// `Retry-After` in seconds (RFC 9110 §10.2.3); dates would need synchronized clocks.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?;
    text.trim().parse().ok().map(Duration::from_secs)
}
