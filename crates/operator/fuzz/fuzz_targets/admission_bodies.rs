//! Whatever an API server, or who reaches the port, asks: it is answered or refused, and what is not looked at changes nothing.

#![no_main]
#![allow(dead_code, reason = "the operator has more use for it")]

use libfuzzer_sys::fuzz_target;

mod admission;
mod guard;
mod policies;

fuzz_target!(|body: &[u8]| {
    guard::check(body);
    policies::check(body);
});
