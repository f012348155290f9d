//! Fuzzes bodies of AdmissionReviews: each is answered or rejected, and fields that the guard skips change no
//! answer.

#![no_main]
#![allow(dead_code, reason = "the operator uses the rest")]

use libfuzzer_sys::fuzz_target;

mod admission;
mod guard;
mod policies;

fuzz_target!(|body: &[u8]| {
    guard::check(body);
    policies::check(body);
});
