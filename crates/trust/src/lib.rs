//! Trust: certificates and keys, trust bundles, their rotation, and their injection into objects with a
//! `caBundle`.
//!
//! ```text
//! pki -> trust_bundle -> injection -+-> objects
//!    `-> rotation ------------------'
//! ```
//!
//! No IO, no clock, no randomness: the time, keys and serial numbers are arguments.
//!
//! # Examples
//!
//! A rotation is planned from an observation. For a new ServingCertificate only the Service exists:
//!
//! ```
//! use jiff::SignedDuration;
//! use windlass_trust::rotation::{CaChange, ClockReading, Mark, Observation, Step, Timing, plan};
//!
//! let clock = ClockReading {
//!     now: "2026-11-22T08:00:00Z".parse()?,
//!     mark: Mark { run: 1, uptime: SignedDuration::ZERO },
//! };
//! let mut observation = Observation::new(clock, "hook");
//! observation.service.exists = true;
//!
//! let plan = plan(&observation, &Timing::default());
//! let [Step::ChangeAuthorities { replacing: None, change: CaChange::Create { .. } }] = &plan.steps[..] else {
//!     panic!("the first step creates the CAs: {:?}", plan.steps);
//! };
//! assert_eq!(plan.steps[0].to_string(), "Created CA 1 and next CA 2");
//! # Ok::<(), jiff::Error>(())
//! ```
//!
//! A patch writes a trust bundle into a target. The API server rejects it if the target has changed:
//!
//! ```
//! use jiff::{SignedDuration, Timestamp};
//! use rcgen::KeyPair;
//! use serde_json::json;
//! use windlass_trust::{
//!     injection::{Injection, InjectionScope},
//!     pki::{CertificateAuthority, DnsNames, Terms, Validity},
//!     trust_bundle::TrustBundle,
//! };
//!
//! let names = DnsNames::for_service("hook", "system", &[])?;
//! let now: Timestamp = "2026-11-22T08:00:00Z".parse()?;
//! let validity = Validity { not_before: now, not_after: now + SignedDuration::from_hours(24 * 365) };
//! let terms = Terms { serial: [1; 16], now, validity };
//! let ca = CertificateAuthority::self_signed(&names, 1, KeyPair::generate()?.into(), &terms)?;
//! let trust = TrustBundle::new([ca.certificate().clone()])?;
//!
//! let mut crd = json!({
//!     "apiVersion": "apiextensions.k8s.io/v1",
//!     "kind": "CustomResourceDefinition",
//!     "metadata": {"name": "widgets.example.com"},
//!     "spec": {"conversion": {"strategy": "Webhook", "webhook": {"clientConfig": {
//!         "service": {"namespace": "system", "name": "hook"},
//!     }}}},
//! });
//! let injection = Injection::new(trust, InjectionScope::everything().with_servers(names));
//! let patch = injection.plan(&crd)?.ok_or("it has the trust bundle already")?;
//! json_patch::patch(&mut crd, &patch)?;
//! assert_eq!(injection.plan(&crd)?, None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod injection;
pub mod objects;
pub mod pki;
pub mod rotation;
pub mod trust_bundle;
