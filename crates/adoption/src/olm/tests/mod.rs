//! Each write is tried as the last one, with whatever OLM and the garbage collector do then.

mod release;
mod tables;
mod world;
