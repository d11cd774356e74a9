//! Graph workflows, as their specification describes them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod artifacts;
mod at_rest;
mod controls;
mod doctor;
mod errors;
mod events;
mod fan_in;
mod fan_out;
mod isolation;
mod loops;
mod merge;
mod properties;
mod retries;
mod routing;
mod signals;
mod size;
mod sleep;
mod start;
mod subworkflows;
mod timeouts;
mod tokens;
mod why;
mod world;
