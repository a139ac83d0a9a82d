//! The boxes between an API server and a worker, one short program each.
