//! CustomResourceDefinitions: what one says, how its objects are converted, what a change of it breaks, how its stored
//! objects follow, and who may claim it.

pub mod accessors;
pub mod claims;
pub mod conversion_review;
pub mod round_trip;
pub mod storage_migration;
pub mod upgrade_safety;
