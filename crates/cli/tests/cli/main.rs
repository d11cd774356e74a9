//! The binary as its users meet it: what they type, what they read, how it ends.

// A test that cannot go on says so by a panic.
#![allow(clippy::unwrap_used)]

mod apply;
mod backup;
mod bench;
mod clients;
mod command;
mod config;
mod connection;
mod dead_letters;
mod dev;
mod examples;
mod idle;
mod interruption;
mod killed;
mod killed_server;
mod means;
mod raw_http;
mod resume;
mod run;
mod runs;
mod serve;
mod served;
mod simulate;
mod start;
mod terminal;
mod traces;
mod usage;
mod validate;
mod why;
mod workers;
