//! Asking wherever an image may be.

use std::{fmt, sync::Arc};

use futures::future::{BoxFuture, FutureExt as _};

use super::{
    LocationFailure, OpenImage, PulledImage, RegistryError, RegistryOptions, http_clients::HttpClients,
    session::RegistrySession,
};
use crate::{
    credentials::RegistryCredentials, digest::ContentDigest, packed_image::PackedImage,
    reference::ImageReference, registries::ImageLocation,
};

/// Pulls images and pushes them.
///
/// Mirrors are asked in the order of `registries.conf`; whatever keeps one from giving all of an image, the next is asked.
/// Tokens are forgotten when an image is pulled.
#[derive(Clone)]
pub struct RegistryClient {
    options: Arc<RegistryOptions>,
    clients: HttpClients,
}

// === impl RegistryClient ===

impl RegistryClient {
    /// A client without any connection.
    ///
    /// # Errors
    ///
    /// When the CA certificates of the options or of the system cannot be used.
    pub fn new(options: RegistryOptions) -> Result<Self, RegistryError> {
        Ok(Self {
            clients: HttpClients::new(&options)?,
            options: Arc::new(options),
        })
    }

    /// All of an image.
    ///
    /// # Errors
    ///
    /// Why no location has it.
    pub async fn pull(
        &self,
        image: &ImageReference,
        credentials: &RegistryCredentials,
    ) -> Result<PulledImage, RegistryError> {
        self.try_locations(image, credentials, |session| session.pull().boxed())
            .await
    }

    /// An image of which no layer was asked for yet: they can be read as they come.
    ///
    /// # Errors
    ///
    /// Why no location has it.
    pub async fn open(
        &self,
        image: &ImageReference,
        credentials: &RegistryCredentials,
    ) -> Result<OpenImage, RegistryError> {
        self.try_locations(image, credentials, |session| session.open().boxed())
            .await
    }

    /// The digest to which an image's tag leads now.
    ///
    /// # Errors
    ///
    /// Why no location has it.
    pub async fn resolve(
        &self,
        image: &ImageReference,
        credentials: &RegistryCredentials,
    ) -> Result<ContentDigest, RegistryError> {
        self.try_locations(image, credentials, |session| session.resolve().boxed())
            .await
    }

    /// An image by its digest: what a tag leads to now, whatever it leads to later. One that has a digest is not asked for.
    ///
    /// # Errors
    ///
    /// Why no location has it.
    pub async fn pin(
        &self,
        image: &ImageReference,
        credentials: &RegistryCredentials,
    ) -> Result<ImageReference, RegistryError> {
        let digest = match &image.digest {
            Some(digest) => digest.clone(),
            None => self.resolve(image, credentials).await?,
        };
        Ok(image.with_digest(digest))
    }

    /// Pushes an image to its own registry, not to mirrors, and returns the digest of its manifest.
    ///
    /// # Errors
    ///
    /// Why the registry does not take it.
    pub async fn push(
        &self,
        image: &ImageReference,
        credentials: &RegistryCredentials,
        packed: &PackedImage,
    ) -> Result<ContentDigest, RegistryError> {
        let location = self.options.registries.destination(image)?;
        let mut session = self.session(location, credentials, "pull,push")?;
        self.with_deadline(&mut session, |session| session.push(packed).boxed())
            .await
    }

    fn session(
        &self,
        location: ImageLocation,
        credentials: &RegistryCredentials,
        actions: &'static str,
    ) -> Result<RegistrySession, RegistryError> {
        let (clients, options) = (self.clients.clone(), self.options.clone());
        RegistrySession::new(clients, options, location, credentials, actions)
    }

    async fn try_locations<T>(
        &self,
        image: &ImageReference,
        credentials: &RegistryCredentials,
        ask: impl for<'s> Fn(&'s mut RegistrySession) -> BoxFuture<'s, Result<T, RegistryError>>,
    ) -> Result<T, RegistryError> {
        let mut failures = Vec::new();
        for location in self.options.registries.locations(image)? {
            let name = location.image.to_string();
            let asked = match self.session(location, credentials, "pull") {
                Ok(mut session) => self.with_deadline(&mut session, &ask).await,
                Err(error) => Err(error),
            };
            match asked {
                Ok(found) => return Ok(found),
                Err(cause) => failures.push(LocationFailure {
                    location: name,
                    cause,
                }),
            }
        }
        match failures.pop() {
            Some(only) if failures.is_empty() => Err(only.cause),
            last => {
                failures.extend(last);
                Err(RegistryError::Everywhere(failures))
            }
        }
    }

    async fn with_deadline<'s, T>(
        &self,
        session: &'s mut RegistrySession,
        ask: impl FnOnce(&'s mut RegistrySession) -> BoxFuture<'s, Result<T, RegistryError>>,
    ) -> Result<T, RegistryError> {
        let after = self.options.timeout;
        let late = RegistryError::Timeout {
            host: session.host(),
            image: session.image.to_string(),
            after,
        };
        tokio::time::timeout(after, ask(session))
            .await
            .unwrap_or(Err(late))
    }
}

impl fmt::Debug for RegistryClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegistryClient").finish_non_exhaustive()
    }
}
