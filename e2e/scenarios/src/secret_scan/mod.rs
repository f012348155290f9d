//! Searches output of programs for private keys and parts of them.
//!
//! The secret part of a key are some integers: the scalar of an elliptic key; the exponents, primes and
//! coefficient of an RSA key. The search ignores the rest of the file and the public half, and covers the
//! usual encodings of these integers: raw; base64 at each alignment, of the key and of its PEM, in both
//! alphabets; hexadecimal; a list of numbers; escaped text; each also with line breaks.

mod der;
mod patterns;
mod pem;
mod scan;
#[cfg(test)]
mod tests;

pub use self::{pem::private_keys, scan::SecretScan};
