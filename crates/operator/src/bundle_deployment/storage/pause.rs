//! Why rewriting objects pauses.

use std::time::Duration;

use windlass_cluster::{RequestError, telemetry::chain};
use windlass_crd::storage_migration::Migration;

use super::super::halt::Halt;
use crate::install::status::{InstallOutcome, Milestone};

/// When the API server is asked again that could not reach a webhook.
const PAUSE: Duration = Duration::from_secs(5);

/// Where the API server can do nothing with objects for now, as when their conversion webhook is down: goes on when it can.
pub(super) fn paused(migration: &Migration, error: RequestError) -> Halt {
    if error.is_rejection() || !matches!(error, RequestError::Refused { .. }) {
        return error.into();
    }
    let message = format!(
        "{migration}; paused until the API server can process them: {}",
        chain(&error)
    );
    Halt::Later(
        InstallOutcome::waiting(Milestone::Migrated, "RewritingPaused", message),
        PAUSE,
    )
}
