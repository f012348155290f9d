//! Each write is tried as the last one, with whatever OLM and the garbage collector do then.

mod letting_go;
mod tables;
mod world;
