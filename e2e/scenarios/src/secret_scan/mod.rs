//! A search for private keys, or parts of them, in whatever a program lets out.
//!
//! What is secret of a key are some integers: the scalar of an elliptic key; the exponents, primes and the coefficient of
//! an RSA key. What surrounds them in a file, and the public half, is in every certificate. So the search is for the
//! bytes of those integers in every way in which bytes are written down: raw; base64 at each alignment, of the key and of
//! its PEM, in both alphabets; hexadecimal; a list of numbers; escaped text; each also with line breaks inside.

mod der;
mod patterns;
mod pem;
mod scan;
#[cfg(test)]
mod tests;

pub use self::{pem::private_keys, scan::SecretScan};
