//! Checks conversions: the API server lists an object in each version, and converts it for that.

use std::collections::BTreeMap;

use futures::{StreamExt as _, stream};
use windlass_cluster::{Kind, RequestError};
use windlass_doctor::DoctorCheck;
use windlass_object::ObjectKey;

use super::{callers::Callers, examination::Examination};

/// How many lists are sent concurrently: each may keep a webhook busy.
const AT_ONCE: usize = 4;

impl Examination<'_> {
    /// Makes the API server convert an object of each converted kind whose server is available.
    pub(super) async fn check_conversions(&mut self, callers: &Callers) {
        let check = DoctorCheck::ConversionFails;
        let cluster = self.cluster;
        let versions = callers
            .converted
            .iter()
            .flat_map(|(crd, kinds)| kinds.iter().map(move |kind| (crd, kind)));
        let lists = stream::iter(versions).map(async |(crd, kind)| {
            let listed = cluster.objects(kind, None, 1, None).await;
            (crd, kind, listed.map(|page| page.objects.len()))
        });
        let listed: Vec<_> = lists.buffered(AT_ONCE).collect().await;
        let mut converted = BTreeMap::<&ObjectKey, usize>::new();
        for (crd, kind, count) in listed {
            match count {
                Ok(count) => *converted.entry(crd).or_default() += count,
                Err(error @ RequestError::UnknownKind { .. }) => self.report_unlistable(kind, &error).await,
                Err(error) if error.is_forbidden() => self.report_unlistable(kind, &error).await,
                Err(error) => {
                    let version = kind.group_version().1;
                    let message = format!(
                        "its objects cannot be read in version {version}: {error}. Check the pods behind its conversion webhook and \
                         its caBundle"
                    );
                    self.add([check.error(crd, message)]);
                }
            }
        }
        let stored = converted.values().filter(|count| **count > 0).count();
        if stored > 0 {
            let message = format!(
                "the API server can read an object in each version of {stored} of them; {} have no stored objects",
                converted.len() - stored
            );
            self.add([check.info("Converted CustomResourceDefinitions", message)]);
        }
    }

    async fn report_unlistable(&mut self, kind: &Kind, error: &RequestError) {
        let subject = format!("Conversion of {}", kind.kind);
        self.report_unchecked(&subject, kind, "list", None, error).await;
    }
}
