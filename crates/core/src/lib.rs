//! What happens next: actors as pure functions over data.
//!
//! Owns the words of the system (ids, time, values, limits) and the model of a turn: what goes in
//! ([`turn::Input`], [`turn::Storage`], a [`time::Timestamp`]) and what comes out ([`turn::Effects`]).
//! Never does I/O, never waits, never reads a clock or a random number: `clippy.toml` beside this
//! crate refuses them. Start reading at [`turn::Actor`].

pub mod catalog;
pub mod definition;
pub mod duration;
pub mod event;
pub mod expression;
pub mod failure;
pub mod graph;
pub mod ids;
pub mod json;
pub mod limits;
pub mod retry;
pub mod schema;
pub mod time;
pub mod timers;
pub mod turn;
