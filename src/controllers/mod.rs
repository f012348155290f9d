//! Small loops: read what is there, ask `domain` for a plan, hand its steps to `cluster`, report status.
