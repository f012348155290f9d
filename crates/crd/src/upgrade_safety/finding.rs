//! Violations of rules by changes of CustomResourceDefinitions.

use std::{fmt, mem};

use serde::Serialize;
use windlass_object::text::OneLine;

use super::{Enforcement, Policy, UpgradeRule};

/// One violation of a rule. Prints as `CRD VERSION FIELD RULE: message` on one line, with `-` if no version
/// or field applies, and `(warning)` at the end if it does not refuse the change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Finding {
    /// Name of the CustomResourceDefinition.
    pub crd: String,
    /// The version, or `v1beta1->v1` between two served versions.
    pub version: Option<String>,
    /// The field: `^` is the object, `^.spec.ports.items.name` the name of each port.
    pub field: Option<String>,
    /// The violated rule.
    pub rule: UpgradeRule,
    /// What has changed.
    pub message: String,
    /// How the violation is treated; never [`Enforcement::None`].
    pub enforcement: Enforcement,
}

/// The findings of one CustomResourceDefinition, up to a limit.
pub(super) struct Findings<'a> {
    crd: &'a str,
    policy: &'a Policy,
    found: Vec<Finding>,
    bytes: usize,
    compared: usize,
    exceeded: bool,
}

/// Size limit of the findings of one CustomResourceDefinition, in bytes.
const BYTES: usize = 4 << 20;

/// How many properties are compared: the largest published CRDs have about 10 000 per version.
const PROPERTIES: usize = 1_000_000;

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            crd,
            version,
            field,
            rule,
            message,
            enforcement,
        } = self;
        let version = version.as_deref().unwrap_or("-");
        let field = field.as_deref().unwrap_or("-");
        write!(
            f,
            "{} {} {} {rule}: {}",
            OneLine(crd),
            OneLine(version),
            OneLine(field),
            OneLine(message)
        )?;
        if *enforcement == Enforcement::Warn {
            f.write_str(" (warning)")?;
        }
        Ok(())
    }
}

impl<'a> Findings<'a> {
    pub(super) fn new(crd: &'a str, policy: &'a Policy) -> Self {
        Self {
            crd,
            policy,
            found: Vec::new(),
            bytes: 0,
            compared: 0,
            exceeded: false,
        }
    }

    /// Adds a finding, unless the policy ignores it.
    pub(super) fn add(
        &mut self,
        version: Option<&str>,
        field: Option<&str>,
        rule: UpgradeRule,
        message: impl Into<String>,
    ) {
        self.add_at_most(Enforcement::Strict, version, field, rule, message.into());
    }

    /// Adds a finding as a warning, unless the policy ignores it.
    pub(super) fn warn(
        &mut self,
        version: Option<&str>,
        field: Option<&str>,
        rule: UpgradeRule,
        message: impl Into<String>,
    ) {
        self.add_at_most(Enforcement::Warn, version, field, rule, message.into());
    }

    fn add_at_most(
        &mut self,
        most: Enforcement,
        version: Option<&str>,
        field: Option<&str>,
        rule: UpgradeRule,
        message: String,
    ) {
        let enforcement = self.policy.enforcement(self.crd, version, field, rule).min(most);
        if enforcement == Enforcement::None || self.exceeded {
            return;
        }
        let finding = Finding {
            crd: self.crd.to_owned(),
            version: version.map(str::to_owned),
            field: field.map(str::to_owned),
            rule,
            message,
            enforcement,
        };
        self.bytes += mem::size_of_val(&finding)
            + finding.crd.len()
            + finding.message.len()
            + field.map_or(0, str::len);
        if self.bytes > BYTES {
            self.exceeded = true;
            return;
        }
        self.found.push(finding);
    }

    /// Counts a comparison of two properties; returns `false` if the limit is reached.
    pub(super) fn may_compare(&mut self) -> bool {
        self.compared += 1;
        if self.compared > PROPERTIES {
            self.exceeded = true;
        }
        !self.exceeded
    }

    /// Returns the findings in order. Parts that were not compared are refused regardless of the policy,
    /// because their contents are unknown.
    pub(super) fn finish(mut self) -> Vec<Finding> {
        if self.exceeded {
            self.found.push(Finding {
                crd: self.crd.to_owned(),
                version: None,
                field: None,
                rule: UpgradeRule::Unhandled,
                message: "too many properties to compare: the rest is not known to be safe".to_owned(),
                enforcement: Enforcement::Strict,
            });
        }
        self.found.sort();
        self.found.dedup();
        self.found
    }
}
