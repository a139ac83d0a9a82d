//! Elections in virtual time, against a server and a network that fail on demand.

mod handing_over;
mod never_two;
mod property;
mod rig;
mod settings;
