//! The HTTP API as both sides see it: paths, and the documents that go over the wire.
//!
//! Owns their form and their names, from which `/openapi.json` is made. Has no behaviour, and knows neither the engine nor HTTP. Values of users are
//! passed through as the JSON text they came as. Start reading at [`v1`]; errors are in [`problem`].

pub mod problem;
pub mod v1;
