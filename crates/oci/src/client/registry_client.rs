//! A client that tries every location of an image.

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

/// Pulls and pushes images.
///
/// Mirrors are tried in the order of `registries.conf`; if one fails to deliver the whole image, the next is
/// tried. Tokens are dropped after each image.
#[derive(Clone)]
pub struct RegistryClient {
    options: Arc<RegistryOptions>,
    clients: HttpClients,
}

impl RegistryClient {
    /// Creates a client without opening a connection.
    ///
    /// # Errors
    ///
    /// If the CA certificates of the options or of the system are invalid.
    pub fn new(options: RegistryOptions) -> Result<Self, RegistryError> {
        Ok(Self {
            clients: HttpClients::new(&options)?,
            options: Arc::new(options),
        })
    }

    /// Pulls an image.
    ///
    /// # Errors
    ///
    /// If no location has it.
    pub async fn pull(
        &self,
        image: &ImageReference,
        credentials: &RegistryCredentials,
    ) -> Result<PulledImage, RegistryError> {
        self.try_locations(image, credentials, |session| session.pull().boxed())
            .await
    }

    /// Opens an image without requesting a layer, so that its layers can be streamed.
    ///
    /// # Errors
    ///
    /// If no location has it.
    pub async fn open(
        &self,
        image: &ImageReference,
        credentials: &RegistryCredentials,
    ) -> Result<OpenImage, RegistryError> {
        self.try_locations(image, credentials, |session| session.open().boxed())
            .await
    }

    /// Resolves the tag of an image to its current digest.
    ///
    /// # Errors
    ///
    /// If no location has it.
    pub async fn resolve(
        &self,
        image: &ImageReference,
        credentials: &RegistryCredentials,
    ) -> Result<ContentDigest, RegistryError> {
        self.try_locations(image, credentials, |session| session.resolve().boxed())
            .await
    }

    /// Replaces the tag of an image by its current digest. Sends no request if the image has a digest.
    ///
    /// # Errors
    ///
    /// If no location has it.
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
    /// If the registry rejects it.
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
