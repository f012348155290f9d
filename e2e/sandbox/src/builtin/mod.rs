//! Built-in kinds: the defaults and validation that operators rely on.

mod decoding;
mod defaults;
mod events;
mod fields;
mod pods;
mod validation;
mod webhooks;

pub use decoding::decoding_error;
pub use defaults::default;
pub use events::event_in;
pub use validation::validate;
