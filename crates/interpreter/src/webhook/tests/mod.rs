//! Row by row of what Karmada does.
