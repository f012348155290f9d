//! Pushes images.

use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, header};

use super::{
    RegistryError,
    pull::content_digest,
    retries::Retries,
    session::{RegistryRequest, RegistrySession, RegistryTarget},
};
use crate::{digest::ContentDigest, manifest::IMAGE_MANIFEST, packed_image::PackedImage};

impl RegistrySession {
    /// Pushes everything that the registry lacks, the manifest last: pulls do not change before that.
    pub(super) async fn push(&mut self, packed: &PackedImage) -> Result<ContentDigest, RegistryError> {
        for content in packed.blobs() {
            self.push_blob(content).await?;
        }
        let digest = ContentDigest::compute(packed.manifest());
        let version = match &self.image.digest {
            Some(named) if *named != digest => {
                return Err(RegistryError::Digest {
                    host: self.host(),
                    what: self.image.to_string(),
                    expected: named.clone(),
                    actual: digest,
                });
            }
            _ => self.image.version().to_owned(),
        };
        let mut request = RegistryRequest::new(
            Method::PUT,
            format!("manifests/{version}"),
            self.image.to_string(),
        );
        let media_type = HeaderValue::from_static(IMAGE_MANIFEST);
        request.headers.insert(header::CONTENT_TYPE, media_type);
        request.body = packed.manifest().clone();
        let mut retries = Retries::new(&self.options);
        let answer = loop {
            match self
                .expect(&request, &[StatusCode::CREATED, StatusCode::OK])
                .await
            {
                Ok(answer) => break answer,
                Err(error) => retries.wait(error).await?,
            }
        };
        match content_digest(&answer.headers) {
            Some(actual) if actual != digest => Err(RegistryError::Digest {
                host: answer.body.host,
                what: request.what,
                expected: digest,
                actual,
            }),
            _ => Ok(digest),
        }
    }

    async fn push_blob(&mut self, content: &Bytes) -> Result<(), RegistryError> {
        let digest = ContentDigest::compute(content);
        let mut retries = Retries::new(&self.options);
        loop {
            match self.upload(&digest, content).await {
                Ok(()) => return Ok(()),
                Err(error) => retries.wait(error).await?,
            }
        }
    }

    /// Uploads a blob in one request (distribution specification, "POST then PUT"), unless it exists.
    async fn upload(&mut self, digest: &ContentDigest, content: &Bytes) -> Result<(), RegistryError> {
        let what = format!("blob {digest}");
        let look = RegistryRequest::new(Method::HEAD, format!("blobs/{digest}"), what.clone());
        let found = self
            .expect(&look, &[StatusCode::OK, StatusCode::NOT_FOUND])
            .await?;
        if found.status == StatusCode::OK {
            return Ok(());
        }
        let begin = RegistryRequest::new(Method::POST, "blobs/uploads/".to_owned(), what.clone());
        let begun = self.expect(&begin, &[StatusCode::ACCEPTED]).await?;
        let location = begun.headers.get(header::LOCATION);
        let location = location.and_then(|location| location.to_str().ok());
        let location = location.ok_or_else(|| RegistryError::Answer {
            host: begun.body.host.clone(),
            what: what.clone(),
            problem: "response 202 has no Location header".to_owned(),
        })?;
        let mut url = self.resolve_location(&begun.url, location, &what)?;
        url.query_pairs_mut().append_pair("digest", digest.as_str());
        let mut send = RegistryRequest::new(Method::PUT, String::new(), what);
        send.target = RegistryTarget::Url(url);
        let octets = HeaderValue::from_static("application/octet-stream");
        send.headers.insert(header::CONTENT_TYPE, octets);
        send.body = content.clone();
        let sent = self
            .expect(&send, &[StatusCode::CREATED, StatusCode::NO_CONTENT])
            .await?;
        drop(sent);
        Ok(())
    }
}
