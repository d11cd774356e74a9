//! What graphs do to the outside world, with real servers on the loopback and real programs.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

mod asker;
mod command;
mod function;
mod http;
mod mock;
mod secrets;
mod server;
#[path = "../support/mod.rs"]
mod support;
