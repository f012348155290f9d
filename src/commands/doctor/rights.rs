//! Checks the rights of the current user and of the ServiceAccounts of Windlass.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Value, json};
use windlass_api::{MissingRights, PermissionRule};
use windlass_cluster::{Cluster, Kind, RequestError, ServiceAccount};
use windlass_doctor::DoctorCheck;
use windlass_object::{ObjectKey, names, object, text::Listing};
use windlass_operator::{
    bundle_deployment::held_rights,
    install::tenancy::{NeededRights, RightAtom, atoms, grant, rules_of},
};

use super::{
    examination::Examination,
    versions::{Installation, programs},
};
use crate::commands::manifests;

const SERVICE_ACCOUNT: Kind = Kind::new("v1", "ServiceAccount");

/// The kind of an access review.
const REVIEW: Kind = Kind::new("authorization.k8s.io/v1", "SubjectAccessReview");

const RBAC: &str = "rbac.authorization.k8s.io";

/// How many reviews are sent concurrently.
const AT_ONCE: usize = 8;

/// How many missing rights a message lists.
const RIGHTS: Listing = Listing {
    most: 6,
    separator: "; ",
    way_to_rest: " (windlass doctor --missing-rights)",
};

/// Rules by the namespace in which they are needed; `None` is the whole cluster.
type Places = BTreeMap<Option<String>, Vec<PermissionRule>>;

impl Examination<'_> {
    /// Checks the rights.
    ///
    /// # Errors
    ///
    /// When the manifests cannot be written as JSON.
    pub(super) async fn check_rights(&mut self, installation: &Installation) -> anyhow::Result<()> {
        match installation.is_installed {
            true => self.check_bundle_install_rights().await,
            false => self.check_windlass_install_rights().await?,
        }
        let manifests = manifests::objects()?;
        let optional = manifests::policies_objects()
            .into_iter()
            .chain(manifests::ui_objects());
        let manifests: Vec<_> = manifests.into_iter().chain(optional).collect();
        for name in programs() {
            self.check_service_account(name, &manifests, installation).await;
        }
        Ok(())
    }

    /// Checks the requests of `windlass install BUNDLE`: ConfigMaps and the BundleDeployment.
    async fn check_bundle_install_rights(&mut self) {
        let needed = Places::from([
            (
                None,
                vec![PermissionRule::new(
                    names::GROUP,
                    "bundledeployments",
                    &["get", "list", "create", "patch", "delete"],
                )],
            ),
            (
                Some(self.namespace.to_owned()),
                vec![PermissionRule::new(
                    "",
                    "configmaps",
                    &["get", "list", "create", "patch", "delete"],
                )],
            ),
        ]);
        match missing(self.cluster, None, &needed).await {
            Ok(missing) => self.report_missing_caller_rights(missing, "bundles").await,
            Err(error) => {
                self.report_unchecked("Your rights", &REVIEW, "create", None, &error)
                    .await;
            }
        }
    }

    /// Checks the rights to apply the manifests, which include the rights that they grant.
    async fn check_windlass_install_rights(&mut self) -> anyhow::Result<()> {
        let everything = Places::from([(None, vec![PermissionRule::new("*", "*", &["*"])])]);
        if missing(self.cluster, None, &everything)
            .await
            .is_ok_and(|missing| missing.is_empty())
        {
            self.report_missing_caller_rights(Vec::new(), "Windlass").await;
            return Ok(());
        }
        let objects = manifests::objects()?;
        let needed = NeededRights::to_apply(&objects, |_| None);
        let held = match held_rights(self.cluster, &needed).await {
            Ok(held) => held,
            Err(error) => {
                self.report_unchecked("Your rights", &REVIEW, "create", None, &error)
                    .await;
                return Ok(());
            }
        };
        if !held.incomplete.is_empty() {
            let message = "not checked whether they are enough to install Windlass: an authorizer of this cluster cannot list what it allows. \
                           Run kubectl apply --server-side --dry-run=server instead";
            self.add([DoctorCheck::NotLookedAt.info("Your rights", message)]);
        }
        self.report_missing_caller_rights(needed.missing(&held), "Windlass")
            .await;
        Ok(())
    }

    /// Reports the rights that the current user lacks to install something.
    async fn report_missing_caller_rights(&mut self, missing: Vec<MissingRights>, what: &str) {
        let check = DoctorCheck::CallerLacksRights;
        let user = match self.cluster.user().await {
            Ok(user) => user.to_owned(),
            Err(_) => "you".to_owned(),
        };
        if missing.is_empty() {
            self.add([check.info(format!("User {user}"), format!("can install {what}"))]);
            return;
        }
        let message = format!(
            "cannot install {what}, which needs {}: request access, or use a kubeconfig that has it",
            describe_rights(&missing)
        );
        let subject = format!("User {user}");
        // After Windlass is installed, the current user need not be the one who installs.
        self.add([match what {
            "Windlass" => check.error(subject, message),
            _ => check.warning(subject, message),
        }]);
        self.grants.extend(user_grants(&user, &missing, self.namespace));
    }

    /// Checks the rights of one ServiceAccount of Windlass, if it exists.
    async fn check_service_account(&mut self, name: &str, manifests: &[Value], installation: &Installation) {
        let key = SERVICE_ACCOUNT.object(Some(self.namespace), name);
        let Some(Some(_)) = self.read(&key).await else {
            return;
        };
        let needed = rules_for(name, manifests, self.namespace);
        let account = ServiceAccount::new(self.namespace, name);
        let missing = match missing(self.cluster, Some(&account), &needed).await {
            Ok(missing) => missing,
            Err(error) => {
                let subject = format!("Rights of {account}");
                self.report_unchecked(&subject, &REVIEW, "create", None, &error)
                    .await;
                return;
            }
        };
        let check = DoctorCheck::OperatorLacksRights;
        if missing.is_empty() {
            self.add([check.info(&key, "has every right of the manifests of this version")]);
            return;
        }
        let message = format!(
            "lacks rights of the manifests of this version: {}; apply them again (helm upgrade, or windlass manifests | kubectl apply \
             --server-side -f -)",
            describe_rights(&missing)
        );
        self.add([match installation.is_of_another_version {
            true => check.warning(&key, message),
            false => check.error(&key, message),
        }]);
        self.grants.extend(grant(&missing, name, self.namespace, name));
    }
}

/// Returns the rules that the manifests grant to the account `name`, by namespace.
fn rules_for(name: &str, manifests: &[Value], namespace: &str) -> Places {
    let mut places = Places::new();
    for role in manifests {
        let Some(key) = ObjectKey::from_object(role).filter(|key| key.name == name && key.group() == RBAC)
        else {
            continue;
        };
        let place = match key.kind.as_str() {
            "ClusterRole" => None,
            "Role" => Some(namespace.to_owned()),
            _ => continue,
        };
        let rules = object::items(role, "/rules").iter();
        let rules = rules.filter_map(|rule| serde_json::from_value(rule.clone()).ok());
        places.entry(place).or_default().extend(rules);
    }
    places
}

/// Returns the part of `needed` that `account`, or the current user, lacks.
async fn missing(
    cluster: &Cluster,
    account: Option<&ServiceAccount>,
    needed: &Places,
) -> Result<Vec<MissingRights>, RequestError> {
    let mut missing = Vec::new();
    for (place, rules) in needed {
        let asked = stream::iter(atoms(rules)).map(async |atom| {
            let attributes = attributes(&atom, place.as_deref());
            let may = cluster.is_allowed(account, &attributes).await?;
            Ok::<_, RequestError>((!may).then_some(atom))
        });
        let lacking: Vec<_> = asked.buffered(AT_ONCE).try_collect().await?;
        let lacking: BTreeSet<_> = lacking.into_iter().flatten().collect();
        if !lacking.is_empty() {
            missing.push(MissingRights {
                namespace: place.clone(),
                rules: rules_of(lacking),
            });
        }
    }
    Ok(missing)
}

/// Returns the attributes of a review of one right.
fn attributes(atom: &RightAtom, namespace: Option<&str>) -> Value {
    match atom {
        RightAtom::Path { path, verb } => json!({"nonResourceAttributes": {"path": path, "verb": verb}}),
        RightAtom::Resource {
            group,
            resource,
            name,
            verb,
        } => {
            let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
            json!({"resourceAttributes": {
                "group": group, "resource": resource, "subresource": subresource, "verb": verb,
                "name": name.as_deref().unwrap_or_default(), "namespace": namespace.unwrap_or_default(),
            }})
        }
    }
}

/// Returns roles and bindings that grant missing rights to a user.
fn user_grants(user: &str, missing: &[MissingRights], namespace: &str) -> Vec<Value> {
    let account = user
        .strip_prefix("system:serviceaccount:")
        .and_then(|account| account.split_once(':'));
    if let Some((namespace, name)) = account {
        return grant(missing, name, namespace, name);
    }
    let mut granted = grant(missing, "windlass-doctor", namespace, "");
    for object in &mut granted {
        if let Some(subjects) = object.get_mut("subjects") {
            *subjects = json!([{"kind": "User", "apiGroup": RBAC, "name": user}]);
        }
    }
    granted
}

fn describe_rights(missing: &[MissingRights]) -> String {
    let rights = missing.iter().flat_map(|MissingRights { namespace, rules }| {
        let place = match namespace {
            Some(namespace) => format!("in namespace {namespace}"),
            None => "in the whole cluster".to_owned(),
        };
        rules.iter().map(move |rule| format!("{rule} {place}"))
    });
    RIGHTS.summarize(&rights.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_right_of_the_manifests_is_reviewed() {
        let manifests = manifests::objects().unwrap();
        let needed = rules_for("windlass", &manifests, "here");
        assert_eq!(
            needed.keys().collect::<Vec<_>>(),
            [&None, &Some("here".to_owned())]
        );
        let rights = atoms(&needed[&None]);
        assert!(rights.len() > 100, "{}", rights.len());
        let status = RightAtom::Resource {
            group: "apps".to_owned(),
            resource: "deployments/status".to_owned(),
            name: Some("a".to_owned()),
            verb: "get".to_owned(),
        };
        let asked = json!({"resourceAttributes": {
            "group": "apps", "resource": "deployments", "subresource": "status", "verb": "get", "name": "a", "namespace": "n",
        }});
        assert_eq!(attributes(&status, Some("n")), asked);
        let path = RightAtom::Path {
            path: "/ui".to_owned(),
            verb: "get".to_owned(),
        };
        assert_eq!(attributes(&path, None)["nonResourceAttributes"]["path"], "/ui");
        assert!(rules_for("unknown", &manifests, "here").is_empty());
    }

    #[test]
    fn missing_rights_are_granted_to_the_current_user() {
        let missing = [MissingRights {
            namespace: None,
            rules: vec![PermissionRule::new("", "pods", &["get"])],
        }];
        let subjects = |user| user_grants(user, &missing, "n")[1]["subjects"][0].clone();
        assert_eq!(
            subjects("jane"),
            json!({"kind": "User", "apiGroup": RBAC, "name": "jane"})
        );
        assert_eq!(
            subjects("system:serviceaccount:a:b"),
            json!({"kind": "ServiceAccount", "namespace": "a", "name": "b"})
        );
        assert_eq!(describe_rights(&missing), "get pods in the whole cluster");
    }
}
