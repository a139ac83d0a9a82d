//! Elections in virtual time, with injected server and network faults.

mod handing_over;
mod never_two;
mod property;
mod rig;
mod settings;
