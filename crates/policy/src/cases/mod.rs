//! Test cases for policies, for `windlass policy test` and tests in Rust.
//!
//! A file is one document:
//!
//! ```yaml
//! policies:                              # files next to this one, or policies themselves
//! - mirror.yaml
//! objects:                               # objects that several cases use, by name
//!   pod: {apiVersion: v1, kind: Pod, metadata: {name: a, namespace: n}, spec: {containers: [{name: c, image: nginx}]}}
//! data:                                  # other objects in the cluster, and responses of servers
//!   objects: []
//!   responses:
//!   - {url: "https://example.com/quota?team=a", body: {cpu: 2}}
//!   - {url: "https://example.com/other", method: POST, error: timed out}
//! cases:
//! - name: an image comes from the mirror
//!   operation: CREATE                    # default: UPDATE with oldObject, else CREATE
//!   object: pod                          # a name from above, or an object
//!   change: {spec: {nodeName: x}}        # a JSON merge patch (RFC 7386) of it for this case
//!   expect:                              # an omitted field is expected to be empty
//!     change: {spec: {containers: [{name: c, image: mirror.example.com/nginx}]}}
//! ```
//!
//! | field of a case | meaning |
//! |---|---|
//! | `name` | the tested behaviour; unique in the file |
//! | `object`, `change` | the object that is written or, with `DELETE`, deleted |
//! | `oldObject`, `oldChange` | the previous object; required for `UPDATE` |
//! | `user` | the user of the request: `name`, `groups` |
//! | `namespaceObject` | the Namespace; by default the one in `data` |
//! | `dryRun` | whether the request is a dry run |
//! | `data` | as above, for this case; takes precedence |
//!
//! | field of `expect` | meaning |
//! |---|---|
//! | `object` | the complete resulting object |
//! | `change` | the result, as a JSON merge patch of the case's object |
//! | `patch` | the JSON patch (RFC 6902) in the response |
//! | `denied` | the message of the refusal |
//! | `error` | a part of the failure for which the request is refused |
//! | `warnings`, `audits` | the warnings and the reported messages, each in full |
//! | `ignored` | a part of each ignored failure |
//!
//! Without `object`, `change` and `patch` the object must stay unchanged.

mod case_file;
mod outcome;
mod policy_case;
mod policy_cases;
mod reader;
#[cfg(test)]
mod tests;

pub use self::{
    outcome::{CaseDifference, CaseOutcome},
    policy_case::{CaseObject, ExpectedObject, ExpectedOutcome, PolicyCase},
    policy_cases::{CasePolicy, PolicyCases},
    reader::{known_data, merged},
};
