//! The HTTP server: the engine and its graph workflows, over a socket.
//!
//! Owns HTTP: routes, streams, keys, limits, and how an error looks from outside. Never decides what a run does, and keeps nothing: all
//! that is answered comes from the engine or from what is on disk. The documents themselves are in [`steadfast_api`].
//! Start reading at [`Server`], then `router.rs` and `routes/`.

mod app;
mod connections;
mod description;
mod error;
mod exposition;
mod guard;
mod history;
mod idle;
mod keys;
mod limits;
mod patient;
mod request;
mod router;
mod routes;
mod stream;
mod traffic;
mod waits;
mod wire;

pub use connections::{BindError, Server};
pub use guard::Access;
pub use keys::{InvalidKeys, Keys, Role};
pub use limits::Limits;
pub use router::openapi;
pub use routes::doctor::checkup;
