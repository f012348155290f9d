//! Conversions, from the seat of the API server: it lists an object of each version, and has it converted for that.

use std::collections::BTreeMap;

use futures::{StreamExt as _, stream};
use windlass_cluster::{Kind, RequestError};
use windlass_doctor::DoctorCheck;
use windlass_object::ObjectKey;

use super::{callers::Callers, examination::Examination};

/// How many are asked for at once: each may keep a webhook busy.
const AT_ONCE: usize = 4;

// === impl Examination ===

impl Examination<'_> {
    /// Has the API server convert an object of each kind that is converted. Only those are looked at whose servers are there.
    pub(super) async fn conversions(&mut self, callers: &Callers) {
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
                Err(error @ RequestError::UnknownKind { .. }) => self.cannot_list(kind, &error).await,
                Err(error) if error.is_forbidden() => self.cannot_list(kind, &error).await,
                Err(error) => {
                    let version = kind.group_version().1;
                    let message = format!(
                        "an object of it cannot be read in version {version}: {error}; look at the pods behind its conversion webhook and \
                         at the caBundle"
                    );
                    self.note([check.error(crd, message)]);
                }
            }
        }
        let stored = converted.values().filter(|count| **count > 0).count();
        if stored > 0 {
            let message = format!(
                "the API server has read an object in each version of {stored} of them; of {} no object is stored",
                converted.len() - stored
            );
            self.note([check.info("Converted CustomResourceDefinitions", message)]);
        }
    }

    async fn cannot_list(&mut self, kind: &Kind, error: &RequestError) {
        let subject = format!("Conversion of {}", kind.kind);
        self.unseen(&subject, kind, "list", None, error).await;
    }
}
