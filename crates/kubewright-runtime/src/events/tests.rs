//! Events from recorder to server, in virtual time.

mod correlating;
mod support;
mod writing;
