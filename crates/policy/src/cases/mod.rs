//! Cases of what policies make of requests, for `windlass policy test` and whoever tests policies from Rust.
//!
//! A file is one document:
//!
//! ```yaml
//! policies:                              # files beside this one, or policies themselves
//! - mirror.yaml
//! objects:                               # objects that several cases are about, by a name of your own
//!   pod: {apiVersion: v1, kind: Pod, metadata: {name: a, namespace: n}, spec: {containers: [{name: c, image: nginx}]}}
//! data:                                  # what else is in the cluster, and what servers answer
//!   objects: []
//!   responses:
//!   - {url: "https://example.com/quota?team=a", body: {cpu: 2}}
//!   - {url: "https://example.com/other", method: POST, error: timed out}
//! cases:
//! - name: an image comes from the mirror
//!   operation: CREATE                    # where it is left out: UPDATE with oldObject, else CREATE
//!   object: pod                          # a name from above, or an object
//!   change: {spec: {nodeName: x}}        # a JSON merge patch (RFC 7386) of it for this case
//!   expect:                              # what is left out is expected not to be
//!     change: {spec: {containers: [{name: c, image: mirror.example.com/nginx}]}}
//! ```
//!
//! | field of a case | is |
//! |---|---|
//! | `name` | what is tried; no two cases of a file have the same |
//! | `object`, `change` | the object that is written or, with `DELETE`, deleted |
//! | `oldObject`, `oldChange` | the object as it was before; `UPDATE` needs it |
//! | `user` | who asks: `name`, `groups` |
//! | `namespaceObject` | the Namespace; where it is left out, the one in `data` |
//! | `dryRun` | whether nothing is stored |
//! | `data` | as above, for this case; it counts first |
//!
//! | field of `expect` | is |
//! |---|---|
//! | `object` | what becomes of the object, the whole of it |
//! | `change` | the same, as a JSON merge patch of the case's object |
//! | `patch` | the JSON patch (RFC 6902) that answers the request |
//! | `denied` | the message with which the request is refused |
//! | `error` | a part of the failure for which it is refused |
//! | `warnings`, `audits` | what is warned of, and what is reported, each in full |
//! | `ignored` | a part of each failure that does not matter |
//!
//! Without `object`, `change` and `patch` the object stays as it is.

mod outcome;
mod policy_case;
mod policy_cases;
mod reader;
#[cfg(test)]
mod tests;
mod case_file;

pub use self::{
    outcome::{CaseDifference, CaseOutcome},
    policy_case::{CaseObject, ExpectedObject, ExpectedOutcome, PolicyCase},
    policy_cases::{CasePolicy, PolicyCases},
    reader::{known_data, merged},
};
