mod copying;
mod finding;
mod parsing;
mod properties;
