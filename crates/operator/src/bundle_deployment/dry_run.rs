//! The whole of a plan as a server-side dry run: what the API server would refuse is known before anything is written.
//!
//! Immutable fields, quotas, Pod Security, policy engines and kinds that are not served are all refused at once, with the
//! API server's words. What cannot be tried yet is left to the install: objects in a namespace that is not there, and what
//! a webhook does not let be tried.

use futures::future::join_all;
use serde_json::Value;
use tracing::debug;
use windlass_cluster::{
    RequestError,
    apply::{ApplyError, FieldOwner},
};
use windlass_crd::is_converting;
use windlass_object::{ObjectKey, object, text::Listing};

use super::{
    halt::Halt, memory::Loaded, objects::retention_failed, reconciler::BundleReconciler,
    replacing::selects_other_pods,
};
use crate::install::{
    plan::{Phase, Plan, Stage, staged},
    status::Milestone,
};

/// How many objects are tried at a time.
const CONCURRENCY: usize = 8;

/// For how many looks at a BundleDeployment a refusal is believed.
const REFUSED: u32 = 6;

/// How a message lists refusals.
const REFUSALS: Listing = Listing {
    most: 10,
    separator: "; ",
    way_to_rest: ": to see all, run windlass install --dry-run",
};

/// What to do about a field that cannot change.
const IMMUTABLE: &str = "this field is immutable: keep its current value in the bundle, or delete the object so that it is recreated from the bundle";

impl BundleReconciler {
    /// Rejects a plan if the API server rejects a dry run of its objects. Only objects that differ are sent,
    /// and a result is reused while they are unchanged.
    pub(super) async fn dry_run(&self, owner: &FieldOwner, loaded: &Loaded) -> Result<(), Halt> {
        let name = &owner.bundle_deployment;
        let (bodies, subject) = self.to_try(owner, loaded).await?;
        // What is deleted while the API server answers was refused over.
        let over = bodies.iter().filter_map(ObjectKey::from_object);
        let over = over
            .filter(|key| self.context.index.find(key).is_some())
            .collect();
        if bodies.is_empty() {
            self.dry_runs.forget(name);
            return Ok(());
        }
        let now = self.context.clock.now();
        let believed = self.timing.recheck.saturating_mul(REFUSED);
        let refusals = match self.dry_runs.find(name, &subject, now, believed) {
            Some(known) => known,
            None => {
                let refusals = self.try_all(owner, &bodies).await?;
                self.dry_runs.keep(name, subject, refusals.clone(), over, now);
                refusals
            }
        };
        if refusals.is_empty() {
            return Ok(());
        }
        let message = format!(
            "the API server would reject objects of the bundle, so nothing was changed: {}",
            REFUSALS.summarize(&refusals)
        );
        Err(Halt::failed(Milestone::Accepted, "DryRunRefused", message))
    }

    /// What an install would write, and what tells it, over what is there, from anything else.
    async fn to_try(&self, owner: &FieldOwner, loaded: &Loaded) -> Result<(Vec<Value>, String), Halt> {
        let plan = &loaded.plan;
        let mut bodies = self.crds_to_try(owner, plan).await?;
        let others = plan
            .phases
            .all()
            .filter(|object| !is_crd(object) && !self.is_to_be_replaced(object));
        bodies.extend(others.filter(|object| !self.is_in_place(owner, object)).cloned());
        let states = bodies.iter().filter_map(ObjectKey::from_object).map(|key| {
            let seen = self.context.index.find(&key);
            format!("{key} {}", seen.as_deref().map(state).unwrap_or_default())
        });
        let states: Vec<_> = states.collect();
        let Loaded { bundle, settings, .. } = loaded;
        let states = states.join("\n");
        let subject = format!("{} {settings:?} {:?} {states}", bundle.digest, owner.adopt);
        Ok((bodies, subject))
    }

    /// The CRDs as far as an install would apply them first.
    async fn crds_to_try(&self, owner: &FieldOwner, plan: &Plan) -> Result<Vec<Value>, Halt> {
        let mut bodies = Vec::new();
        for desired in plan.phases.of(Phase::Crds) {
            let Some(key) = ObjectKey::from_object(desired) else {
                continue;
            };
            let live = self.crd(&key, desired).await?;
            let converts = plan.conversion(&key.name).is_some() || live.as_deref().is_some_and(is_converting);
            let is_applied = live.as_deref().is_some_and(|live| {
                Stage::ALL.into_iter().any(|stage| {
                    let body = staged(desired, Some(live), stage, converts);
                    self.context.applier.was_applied(&body, live, owner)
                })
            });
            if !is_applied {
                bodies.push(staged(desired, live.as_deref(), Stage::Rollout, converts));
            }
        }
        Ok(bodies)
    }

    /// Whether another Deployment takes the place of the live one, since the selector of that cannot change.
    fn is_to_be_replaced(&self, object: &Value) -> bool {
        let seen = ObjectKey::from_object(object).and_then(|key| self.context.index.find(&key));
        seen.is_some_and(|seen| selects_other_pods(object, &seen))
    }

    fn was_applied(&self, owner: &FieldOwner, object: &Value) -> bool {
        let seen = ObjectKey::from_object(object).and_then(|key| self.context.index.find(&key));
        seen.is_some_and(|seen| self.context.applier.was_applied(object, &seen, owner))
    }

    fn is_in_place(&self, owner: &FieldOwner, object: &Value) -> bool {
        let seen = ObjectKey::from_object(object).and_then(|key| self.context.index.find(&key));
        seen.is_some_and(|seen| self.context.applier.is_applied(object, &seen, owner))
    }

    /// Why the API server would refuse any of them.
    async fn try_all(&self, owner: &FieldOwner, bodies: &[Value]) -> Result<Vec<String>, Halt> {
        let mut refusals = Vec::new();
        for some in bodies.chunks(CONCURRENCY) {
            let tried = some.iter().map(|body| self.context.applier.dry_run(body, owner));
            for (body, answer) in some.iter().zip(join_all(tried).await) {
                match answer {
                    Ok(_) => {}
                    Err(ApplyError::Request(error)) => refusals.extend(refusal(error)?),
                    // It stays as it is.
                    Err(ApplyError::Retention { .. })
                        if self.was_applied(owner, body)
                            || self
                                .context
                                .interpretation
                                .can_stay_unchanged(&owner.bundle_deployment, body) => {}
                    Err(error @ ApplyError::Retention { .. }) => {
                        return Err(retention_failed(Milestone::Accepted, &error));
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(refusals)
    }
}

/// What an answer says against an install; nothing, where it says nothing either way.
fn refusal(error: RequestError) -> Result<Option<String>, RequestError> {
    if matches!(error, RequestError::UnknownKind { .. }) {
        return Ok(Some(error.to_string()));
    }
    let says_nothing = error.is_not_found() || error.is_conflict() || error.is_dry_run_unsupported();
    if says_nothing || error.is_inconclusive() || error.is_namespace_terminating() {
        debug!(%error, "The dry run is inconclusive and will be repeated");
        return Ok(None);
    }
    if error.is_immutable() {
        return Ok(Some(format!("{error} ({IMMUTABLE})")));
    }
    if error.is_rejection() {
        return Ok(Some(error.to_string()));
    }
    Err(error)
}

/// Tells an object, as far as others than its own controller write it, from the same one at another time.
fn state(live: &Value) -> String {
    let metadata = &live["metadata"];
    let uid = object::text(metadata, "/uid").unwrap_or_default();
    match metadata.get("generation") {
        Some(generation) => format!("{uid} {generation}"),
        None => format!("{uid} {}", metadata["resourceVersion"]),
    }
}

fn is_crd(object: &Value) -> bool {
    object::text(object, "/kind") == Some("CustomResourceDefinition")
}

#[cfg(test)]
mod tests {
    use kube::core::Status;
    use serde_json::json;
    use windlass_cluster::kinds;

    use super::*;

    fn refused(code: u16, message: &str) -> RequestError {
        RequestError::Refused {
            operation: "apply (dry run)",
            object: "Deployment a/b".to_owned(),
            status: Box::new(Status::failure(message, "").with_code(code)),
        }
    }

    #[test]
    fn what_the_api_server_does_not_want_is_a_refusal_and_what_it_cannot_say_is_none() {
        for (code, message, expected) in [
            (422, "spec.replicas: must be positive", Some("must be positive")),
            (
                422,
                "spec.selector: Invalid value: field is immutable",
                Some("delete the object"),
            ),
            (
                422,
                "roleRef: Invalid value: cannot change roleRef",
                Some("delete the object"),
            ),
            (403, "exceeded quota", Some("exceeded quota")),
            (
                400,
                "admission webhook \"p\" denied the request: no",
                Some("denied the request"),
            ),
            (400, "admission webhook \"p\" does not support dry run", None),
            (
                403,
                "unable to create new content in namespace a because it is being terminated",
                None,
            ),
            (404, "namespaces \"a\" not found", None),
            (409, "conflict", None),
            (429, "later", None),
            (500, "failed calling webhook", None),
        ] {
            let said = refusal(refused(code, message)).unwrap();
            match (said, expected) {
                (Some(said), Some(expected)) => assert!(said.contains(expected), "{said}"),
                (said, expected) => assert_eq!(said.as_deref(), expected, "{message}"),
            }
        }
        let unknown = RequestError::UnknownKind {
            kind: kinds::SERVING_CERTIFICATE,
        };
        assert!(refusal(unknown).unwrap().unwrap().contains("does not serve"));
        let timeout = RequestError::Timeout {
            operation: "apply",
            object: String::new(),
            after: std::time::Duration::ZERO,
        };
        assert!(refusal(timeout).is_err(), "it has to be asked again");
    }

    #[test]
    fn the_status_of_an_object_does_not_make_it_another() {
        let rolling =
            |version: &str| json!({"metadata": {"uid": "u", "generation": 1, "resourceVersion": version}});
        assert_eq!(state(&rolling("1")), state(&rolling("2")));
        let plain = |version: &str| json!({"metadata": {"uid": "u", "resourceVersion": version}});
        assert_ne!(state(&plain("1")), state(&plain("2")));
    }
}
