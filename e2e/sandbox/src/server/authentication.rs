//! Authentication: client certificates and ServiceAccount tokens.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use rand::{Rng, distr::Alphanumeric};
use serde_json::{Value, json};

/// A user as authorization and webhooks see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    /// The groups, without `system:authenticated`.
    pub groups: Vec<String>,
}

/// The tokens that were issued.
#[derive(Default)]
pub(super) struct Tokens(Mutex<BTreeMap<String, (User, Instant)>>);

impl User {
    /// Returns a member of `system:masters`, who has every right.
    pub fn master(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            groups: vec!["system:masters".to_owned()],
        }
    }

    /// Returns the user of a ServiceAccount, with its groups.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        Self {
            name: format!("system:serviceaccount:{namespace}:{name}"),
            groups: vec![
                "system:serviceaccounts".to_owned(),
                format!("system:serviceaccounts:{namespace}"),
            ],
        }
    }

    /// Returns the user of requests without credentials.
    pub fn anonymous() -> Self {
        Self {
            name: "system:anonymous".to_owned(),
            groups: vec!["system:unauthenticated".to_owned()],
        }
    }

    /// Returns all groups of the user.
    pub(super) fn all_groups(&self) -> Vec<String> {
        let mut groups = self.groups.clone();
        if self.name != "system:anonymous" {
            groups.push("system:authenticated".to_owned());
        }
        groups
    }

    /// Returns the `userInfo` of an AdmissionReview.
    pub(super) fn info(&self) -> Value {
        json!({"username": self.name, "groups": self.all_groups()})
    }
}

impl Tokens {
    /// Issues a token for `user`.
    pub(super) fn issue(&self, user: User, lifetime: Duration) -> String {
        let random: String = rand::rng()
            .sample_iter(Alphanumeric)
            .take(40)
            .map(char::from)
            .collect();
        let token = format!("sandbox-{random}");
        self.0
            .lock()
            .insert(token.clone(), (user, Instant::now() + lifetime));
        token
    }

    /// Returns the user of a token; `None` when it is unknown or has expired.
    pub(super) fn user(&self, token: &str) -> Option<User> {
        let tokens = self.0.lock();
        let (user, expires) = tokens.get(token)?;
        (*expires > Instant::now()).then(|| user.clone())
    }
}
