//! Streams images that are too large for memory.

use std::io::{self, Read};

use bytes::{Buf as _, Bytes};
use http::{Method, StatusCode};
use tokio::runtime::Handle;

use super::{
    RegistryError,
    response_body::ResponseBody,
    retries::Retries,
    session::{RegistryRequest, RegistrySession},
};
use crate::{
    digest::{ContentDigest, DigestVerifier},
    manifest::{Descriptor, ImageManifest},
    reference::ImageReference,
};

/// An image whose manifest and configuration are loaded, and whose layers are streamed.
pub struct OpenImage {
    /// The name of the image at its location.
    pub location: ImageReference,
    /// The digest that the tag refers to: that of the index if there is one, else of the manifest.
    pub digest: ContentDigest,
    /// The manifest of the image for the chosen platform.
    pub manifest: ImageManifest,
    /// The configuration.
    pub config: Bytes,
    session: RegistrySession,
}

/// A blocking reader of a layer during its download.
///
/// Its content is unverified until the end: reading fails there if the size or digest differs.
pub struct LayerReader {
    runtime: Handle,
    body: ResponseBody,
    part: Bytes,
    what: String,
    expected: Descriptor,
    received: u64,
    /// `None` after the end.
    verifier: Option<DigestVerifier>,
}

impl RegistrySession {
    /// Loads the image without its layers.
    pub(super) async fn open(&mut self) -> Result<OpenImage, RegistryError> {
        let (digest, manifest) = self.image_manifest().await?;
        let config = self.blob("configuration", &manifest.config).await?;
        Ok(OpenImage {
            location: self.image.clone(),
            digest,
            manifest,
            config,
            session: self.clone(),
        })
    }
}

impl OpenImage {
    /// Starts to download a layer of the manifest.
    ///
    /// # Errors
    ///
    /// If the download cannot start; later errors are reported by the reader.
    pub async fn layer(&mut self, descriptor: &Descriptor) -> Result<LayerReader, RegistryError> {
        let what = format!("layer {}", descriptor.digest);
        let request = RegistryRequest::new(Method::GET, format!("blobs/{}", descriptor.digest), what.clone());
        let mut retries = Retries::new(&self.session.options);
        let answer = loop {
            match self.session.expect(&request, &[StatusCode::OK]).await {
                Ok(answer) => break answer,
                Err(error) => retries.wait(error).await?,
            }
        };
        Ok(LayerReader {
            runtime: Handle::current(),
            body: answer.body,
            part: Bytes::new(),
            what,
            expected: descriptor.clone(),
            received: 0,
            verifier: Some(descriptor.digest.verifier()),
        })
    }
}

impl LayerReader {
    fn wrong_size(&self) -> RegistryError {
        RegistryError::Size {
            host: self.body.host.clone(),
            what: self.what.clone(),
            expected: self.expected.size,
            actual: self.received,
        }
    }

    fn finish(&mut self) -> Result<(), RegistryError> {
        let Some(verifier) = self.verifier.take() else {
            return Ok(());
        };
        if self.received < self.expected.size {
            return Err(self.wrong_size());
        }
        verifier.finish().map_err(|actual| RegistryError::Digest {
            host: self.body.host.clone(),
            what: self.what.clone(),
            expected: self.expected.digest.clone(),
            actual,
        })
    }
}

impl Read for LayerReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.part.is_empty() && !buffer.is_empty() {
            let Some(verifier) = &mut self.verifier else {
                return Ok(0);
            };
            match self
                .runtime
                .block_on(self.body.next())
                .map_err(io::Error::other)?
            {
                Some(part) => {
                    self.received += part.len() as u64;
                    verifier.update(&part);
                    self.part = part;
                    if self.received > self.expected.size {
                        return Err(io::Error::other(self.wrong_size()));
                    }
                }
                None => self.finish().map_err(io::Error::other)?,
            }
        }
        let length = buffer.len().min(self.part.len());
        self.part.copy_to_slice(&mut buffer[..length]);
        Ok(length)
    }
}
