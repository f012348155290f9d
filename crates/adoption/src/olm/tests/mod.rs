//! Every write is tested as the last one, followed by any reaction of OLM and the garbage collector.

mod release;
mod tables;
mod world;
