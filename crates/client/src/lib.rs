//! A client of the HTTP API: one method for each route, with the documents of [`steadfast_api`].
//!
//! Owns the way to a server and back: requests, what is asked again when a connection breaks, streams that go on where they were, and what is said when
//! something goes wrong. Never decides what an answer means. Start reading at [`Client`]; how a request is sent is in `connection.rs`.

mod connection;
mod dead_letters;
mod definitions;
mod doctor;
mod error;
mod events;
mod key;
mod lines;
mod recover;
mod runs;
mod why;

pub use connection::Client;
pub use definitions::Applying;
pub use error::{Error, InvalidUrl};
pub use events::{Events, Reading};
pub use key::{InvalidKey, Key};
pub use runs::{Control, Started};
