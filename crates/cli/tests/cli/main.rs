//! The binary as its users meet it: what they type, what they read, how it ends.

// A test that cannot go on says so by a panic.
#![allow(clippy::unwrap_used)]

mod backup;
mod bench;
mod command;
mod config;
mod examples;
mod interruption;
mod killed;
mod means;
mod resume;
mod run;
mod serve;
mod simulate;
mod terminal;
mod usage;
mod validate;
