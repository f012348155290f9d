//! Pulls images.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

use super::{
    RegistryError,
    retries::Retries,
    session::{RegistryRequest, RegistrySession},
};
use crate::{
    digest::ContentDigest,
    layers::{ImageFiles, LayerError, LayerLimits},
    manifest::{ACCEPTED, Descriptor, ImageManifest, MANIFEST_BYTES, ManifestDocument, ManifestError},
    reference::ImageReference,
};

/// An image from a registry, verified: every part has the size and digest that its parent states.
#[derive(Clone, Debug)]
pub struct PulledImage {
    /// The name of the image at its location.
    pub location: ImageReference,
    /// The digest that the tag refers to: that of the index if there is one, else of the manifest.
    pub digest: ContentDigest,
    /// The manifest of the image for the chosen platform.
    pub manifest: ImageManifest,
    /// The configuration.
    pub config: Bytes,
    /// The layers, lowest first, as stored.
    pub layers: Vec<Bytes>,
}

/// The maximum nesting of indexes.
const INDEXES: usize = 3;

/// The header with the digest of a manifest (distribution specification, "Pulling manifests").
pub(super) const CONTENT_DIGEST: &str = "docker-content-digest";

impl PulledImage {
    /// Extracts the files in some of its folders.
    ///
    /// # Errors
    ///
    /// The first layer entry that is not allowed.
    pub fn files(
        &self,
        folders: &[&str],
        limits: LayerLimits,
    ) -> Result<BTreeMap<String, Vec<u8>>, LayerError> {
        let mut files = ImageFiles::new(folders, limits);
        for (descriptor, content) in self.manifest.layers.iter().zip(&self.layers) {
            files.add(descriptor.digest.as_str(), &descriptor.media_type, content)?;
        }
        files.into_files()
    }
}

impl RegistrySession {
    pub(super) async fn pull(&mut self) -> Result<PulledImage, RegistryError> {
        let (digest, manifest) = self.image_manifest().await?;
        let config = self.blob("configuration", &manifest.config).await?;
        let mut layers = Vec::with_capacity(manifest.layers.len());
        for layer in &manifest.layers {
            layers.push(self.blob("layer", layer).await?);
        }
        Ok(PulledImage {
            location: self.image.clone(),
            digest,
            manifest,
            config,
            layers,
        })
    }

    /// Loads the manifest for our architecture, and the digest that the tag refers to.
    pub(super) async fn image_manifest(&mut self) -> Result<(ContentDigest, ImageManifest), RegistryError> {
        let (digest, mut document) = self.named_document().await?;
        for _ in 0..INDEXES {
            let ManifestDocument::Index(index) = &document else {
                break;
            };
            let chosen = index.choose(&self.options.architecture);
            let chosen = chosen.map_err(|cause| self.unusable(cause))?.clone();
            document = self.document_of(&chosen).await?;
        }
        let ManifestDocument::Image(manifest) = document else {
            return Err(self.unusable(ManifestError::Nested));
        };
        let parts = || manifest.layers.iter().chain([&manifest.config]);
        let bytes = parts().fold(0_u64, |bytes, part| bytes.saturating_add(part.size));
        if bytes > self.options.largest_image {
            return Err(RegistryError::TooLarge {
                host: self.host(),
                what: self.image.to_string(),
                limit: self.options.largest_image,
            });
        }
        Ok((digest, manifest))
    }

    /// Resolves the image to a digest without downloading it: registries do not count that as a pull.
    pub(super) async fn resolve(&mut self) -> Result<ContentDigest, RegistryError> {
        let mut request = self.manifest_request(self.image.version(), self.image.to_string());
        request.method = Method::HEAD;
        let mut retries = Retries::new(&self.options);
        let head = loop {
            match self
                .expect(&request, &[StatusCode::OK, StatusCode::METHOD_NOT_ALLOWED])
                .await
            {
                Ok(answer) => break answer,
                Err(error) => retries.wait(error).await?,
            }
        };
        match (content_digest(&head.headers), &self.image.digest) {
            (Some(actual), Some(expected)) if actual != *expected => Err(RegistryError::Digest {
                host: head.body.host,
                what: self.image.to_string(),
                expected: expected.clone(),
                actual,
            }),
            (Some(digest), _) if head.status == StatusCode::OK => Ok(digest),
            _ => Ok(self.named_document().await?.0),
        }
    }

    /// Loads the manifest or index that the image's digest or tag refers to, with its digest.
    async fn named_document(&mut self) -> Result<(ContentDigest, ManifestDocument), RegistryError> {
        let request = self.manifest_request(self.image.version(), self.image.to_string());
        let (headers, content) = self.manifest(&request).await?;
        let reported = content_digest(&headers);
        let digest = self.image.digest.clone().or(reported);
        let digest = digest.unwrap_or_else(|| ContentDigest::compute(&content));
        let document = self.parse_manifest(&request.what, &digest, &headers, &content)?;
        Ok((digest, document))
    }

    /// Loads the manifest or index of a descriptor in an index.
    async fn document_of(&mut self, descriptor: &Descriptor) -> Result<ManifestDocument, RegistryError> {
        let what = format!("manifest {}", descriptor.digest);
        let request = self.manifest_request(descriptor.digest.as_str(), what);
        let (headers, content) = self.manifest(&request).await?;
        self.parse_manifest(&request.what, &descriptor.digest, &headers, &content)
    }

    fn manifest_request(&self, version: &str, what: String) -> RegistryRequest {
        let mut request = RegistryRequest::new(Method::GET, format!("manifests/{version}"), what);
        for media_type in ACCEPTED {
            let value = HeaderValue::from_static(media_type);
            request.headers.append(header::ACCEPT, value);
        }
        request
    }

    async fn manifest(&mut self, request: &RegistryRequest) -> Result<(HeaderMap, Bytes), RegistryError> {
        let mut retries = Retries::new(&self.options);
        loop {
            let read = match self.expect(request, &[StatusCode::OK]).await {
                Ok(answer) => {
                    let content = answer.body.read(&request.what, MANIFEST_BYTES).await;
                    content.map(|content| (answer.headers, content))
                }
                Err(error) => Err(error),
            };
            match read {
                Ok(read) => return Ok(read),
                Err(error) => retries.wait(error).await?,
            }
        }
    }

    fn parse_manifest(
        &self,
        what: &str,
        digest: &ContentDigest,
        headers: &HeaderMap,
        content: &[u8],
    ) -> Result<ManifestDocument, RegistryError> {
        let mut verifier = digest.verifier();
        verifier.update(content);
        verifier.finish().map_err(|actual| RegistryError::Digest {
            host: self.host(),
            what: what.to_owned(),
            expected: digest.clone(),
            actual,
        })?;
        let media_type = headers.get(header::CONTENT_TYPE);
        let media_type = media_type.and_then(|value| value.to_str().ok());
        ManifestDocument::parse(content, media_type).map_err(|cause| self.unusable(cause))
    }

    pub(super) async fn blob(&mut self, kind: &str, descriptor: &Descriptor) -> Result<Bytes, RegistryError> {
        let Descriptor { digest, size, .. } = descriptor;
        let what = format!("{kind} {digest}");
        let request = RegistryRequest::new(Method::GET, format!("blobs/{digest}"), what);
        let mut retries = Retries::new(&self.options);
        loop {
            let read = match self.expect(&request, &[StatusCode::OK]).await {
                Ok(answer) => answer.body.verified(&request.what, *size, digest).await,
                Err(error) => Err(error),
            };
            match read {
                Ok(content) => return Ok(content),
                Err(error) => retries.wait(error).await?,
            }
        }
    }

    fn unusable(&self, cause: ManifestError) -> RegistryError {
        RegistryError::Manifest {
            host: self.host(),
            what: self.image.to_string(),
            cause,
        }
    }
}

/// The digest of a manifest according to the registry.
pub(super) fn content_digest(headers: &HeaderMap) -> Option<ContentDigest> {
    headers.get(CONTENT_DIGEST)?.to_str().ok()?.parse().ok()
}
