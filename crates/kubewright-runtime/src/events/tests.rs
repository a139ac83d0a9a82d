//! Events from the recorder to a server in memory, in virtual time.

mod correlating;
mod support;
mod writing;
